"""The calls of this package's public functions, for dx_numerics.testing.suite."""
from kernel_calls import NO_KERNELS, public
from page_calls import REGISTRY

__all__ = ["NO_KERNELS", "REGISTRY", "public"]
