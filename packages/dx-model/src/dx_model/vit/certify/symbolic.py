"""The operation table over polynomials: object arrays of variables; functions stay formal."""
from fractions import Fraction

import numpy as np

from .arrays import Arrays
from .polynomial import HALF, Polynomial


class Symbolic(Arrays):
    """Object arrays of `Polynomial`. eps, GELU's constants and sqrt(d) are free."""

    def __init__(self, config, parameters, algebra):
        super().__init__(config, parameters)
        self.algebra = algebra
        self.constants = {"one": 1, "half": HALF, "three": 3}

    def each(self, function, x):
        made = np.empty(x.shape, object)
        for at in np.ndindex(*x.shape):
            made[at] = self.algebra.apply(function, x[at])
        return made

    def constant(self, name):
        if name not in self.constants:
            self.constants[name] = self.algebra.variable()
        return self.constants[name]

    def root(self, n):
        return self.constant(f"root of {n}")

    def div(self, a, b):
        return a * (self.algebra.apply("inverse", b) if isinstance(b, Polynomial) else self.each("inverse", b))

    def over(self, x, n):
        return x * Fraction(1, n)

    def inverse_root(self, x):
        return self.each("inverse_root", x)

    def exp(self, x):
        return self.each("exp", x)

    def tanh(self, x):
        return self.each("tanh", x)

    def normal_cdf(self, x):
        return self.each("normal_cdf", x)

    def normal_pdf(self, x):
        return self.each("normal_pdf", x)

    def matmul(self, a, b, transpose_a=False, transpose_b=False):
        a = np.swapaxes(a, -1, -2) if transpose_a else a
        b = np.swapaxes(b, -1, -2) if transpose_b else b
        return np.matmul(a, b)  # exact: polynomials

    def row_sum(self, x):
        return np.add.reduce(x, axis=-1)  # exact: polynomials

    def minus_one_at(self, x, column):
        y = x.copy()
        y[0, column] = y[0, column] - 1
        return y
