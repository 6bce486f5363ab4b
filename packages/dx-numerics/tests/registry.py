"""The calls of this package's public functions, for the tests that both compiled packages share."""
import dx_numerics as control  # kernel_path, degree, available_paths
from numerics_calls import NO_KERNELS, REGISTRY, public

__all__ = ["NO_KERNELS", "REGISTRY", "control", "public"]
