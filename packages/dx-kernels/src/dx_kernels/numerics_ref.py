"""The readable references of dx-numerics that packages above need beside those of the kernels (dx_kernels.ref)."""
from .below import ref

dot16, sum16, exp32, tanh32, erf32 = ref.dot16, ref.sum16, ref.exp32, ref.tanh32, ref.erf32
