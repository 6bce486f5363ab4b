"""The operation table over the prime field: functions' values come from a pseudo-random table, derivatives are formal.

An identity between the rational expressions that a pass computes, which holds for all values of exp, 1/sqrt, tanh, …
with their rules of differentiation, holds here; one that does not is rejected but for a chance of degree / 2^61.
"""
import numpy as np

from . import prime
from .arrays import Arrays
from .prime import U


class Functions:
    """Values of the formal functions and constants for one seed; shared by a table and its duals."""

    def __init__(self, seed):
        stream = prime.Stream(seed)
        names = ("exp", "inverse_root", "tanh", "normal_cdf", "normal_pdf", "root")
        self.keys = {name: stream.take((1,))[0] for name in names}
        half = prime.inverse_of(2)
        self.constants = {"one": U(1), "half": half, "three": U(3)}
        self.constants |= {name: stream.take((1,))[0] for name in ("eps", "c0", "c1")}

    def value(self, name, x):
        """The table's value of a function, never 0: a hash of the argument."""
        with np.errstate(over="ignore"):
            z = (x ^ self.keys[name]) * U(0x9E3779B97F4A7C15)
        return prime.nonzero(prime.mix(z))

    def derivative(self, name, x, y):
        """The formal derivative of a function at x, where its value is y."""
        if name == "exp":
            return y
        if name == "inverse_root":
            return prime.sub(U(0), prime.mul(prime.mul(prime.mul(y, y), y), self.constants["half"]))
        if name == "tanh":
            return prime.sub(U(1), prime.mul(y, y))
        if name == "normal_cdf":
            return self.value("normal_pdf", x)
        raise ValueError(f"function = {name!r}: has no derivative here")


class Field(Arrays):
    """uint64 arrays of elements of the field."""

    def __init__(self, config, parameters, functions):
        super().__init__(config, parameters)
        self.functions = functions

    def constant(self, name):
        return self.functions.constants[name]

    def root(self, n):
        return self.functions.value("root", U(n))

    def add(self, a, b):
        return prime.add(a, b)

    def sub(self, a, b):
        return prime.sub(a, b)

    def mul(self, a, b):
        return prime.mul(a, b)

    def div(self, a, b):
        return prime.mul(a, prime.inverse(b) if np.ndim(b) else prime.inverse_of(int(b)))

    def over(self, x, n):
        return prime.mul(x, prime.inverse_of(n))

    def inverse_root(self, x):
        return self.functions.value("inverse_root", x)

    def exp(self, x):
        return self.functions.value("exp", x)

    def tanh(self, x):
        return self.functions.value("tanh", x)

    def normal_cdf(self, x):
        return self.functions.value("normal_cdf", x)

    def normal_pdf(self, x):
        return self.functions.value("normal_pdf", x)

    def matmul(self, a, b, transpose_a=False, transpose_b=False):
        a = np.swapaxes(a, -1, -2) if transpose_a else a
        return prime.matmul(a, np.swapaxes(b, -1, -2) if transpose_b else b)

    def row_sum(self, x):
        return prime.row_sum(x)

    def minus_one_at(self, x, column):
        y = x.copy()
        y[0, column] = prime.sub(y[0, column], U(1))
        return y
