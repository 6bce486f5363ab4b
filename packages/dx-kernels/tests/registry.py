"""The calls of this package's public functions, for the tests that both compiled packages share."""
import dx_kernels as control  # kernel_path, degree, available_paths
from kernel_calls import NO_KERNELS, public
from page_calls import REGISTRY

__all__ = ["NO_KERNELS", "REGISTRY", "control", "public"]
