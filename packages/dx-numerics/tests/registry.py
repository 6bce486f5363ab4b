"""The calls of this package's public functions, for dx_numerics.testing.suite."""
from numerics_calls import NO_KERNELS, REGISTRY, public

__all__ = ["NO_KERNELS", "REGISTRY", "public"]
