"""The operation table over dual numbers of the prime field: a forward pass carries the derivative along one direction.

Only the primitives are differentiated here, each by its own rule; no gradient formula of an operation is used.
"""
import numpy as np

from . import prime
from .arrays import Arrays
from .field import Functions
from .prime import U


class Dual:
    """value + tangent · e, with e² = 0; uint64 arrays of one shape."""

    __slots__ = ("value", "tangent")

    def __init__(self, value, tangent):
        self.value, self.tangent = value, tangent


def parts(x):
    """(value, tangent) of a dual, or of a constant."""
    return (x.value, x.tangent) if isinstance(x, Dual) else (x, np.zeros_like(x))


class Duals(Arrays):
    """The field's table on `Dual` arrays."""

    def __init__(self, config, parameters, functions: Functions):
        super().__init__(config, parameters)
        self.functions = functions

    def shape(self, x):
        return x.value.shape

    def rearrange(self, x, f):
        return Dual(f(x.value), f(x.tangent))

    def concatenate(self, arrays):
        return Dual(np.concatenate([a.value for a in arrays]), np.concatenate([a.tangent for a in arrays]))

    def constant(self, name):
        return self.functions.constants[name]

    def root(self, n):
        return self.functions.value("root", U(n))

    def add(self, a, b):
        (a, da), (b, db) = parts(a), parts(b)
        return Dual(prime.add(a, b), prime.add(da, db))

    def sub(self, a, b):
        (a, da), (b, db) = parts(a), parts(b)
        return Dual(prime.sub(a, b), prime.sub(da, db))

    def mul(self, a, b):
        if not isinstance(b, Dual):
            a, b = b, a
        if not isinstance(a, Dual):
            return Dual(prime.mul(a, b.value), prime.mul(a, b.tangent))
        tangent = prime.add(prime.mul(a.value, b.tangent), prime.mul(a.tangent, b.value))
        return Dual(prime.mul(a.value, b.value), tangent)

    def div(self, a, b):
        if not isinstance(b, Dual):
            return self.mul(prime.inverse_of(int(b)), a)
        b, db = parts(b)
        r = prime.inverse(b)
        return self.mul(a, Dual(r, prime.sub(U(0), prime.mul(prime.mul(r, r), db))))

    def over(self, x, n):
        return self.mul(prime.inverse_of(n), x)

    def function(self, name, x):
        y = self.functions.value(name, x.value)
        return Dual(y, prime.mul(self.functions.derivative(name, x.value, y), x.tangent))

    def inverse_root(self, x):
        return self.function("inverse_root", x)

    def exp(self, x):
        return self.function("exp", x)

    def tanh(self, x):
        return self.function("tanh", x)

    def normal_cdf(self, x):
        return self.function("normal_cdf", x)

    def matmul(self, a, b, transpose_a=False, transpose_b=False):
        a = self.rearrange(a, lambda x: np.swapaxes(x, -1, -2)) if transpose_a else a
        b = self.rearrange(b, lambda x: np.swapaxes(x, -1, -2)) if transpose_b else b
        tangent = prime.add(prime.matmul(a.value, b.tangent), prime.matmul(a.tangent, b.value))
        return Dual(prime.matmul(a.value, b.value), tangent)

    def row_sum(self, x):
        return Dual(prime.row_sum(x.value), prime.row_sum(x.tangent))
