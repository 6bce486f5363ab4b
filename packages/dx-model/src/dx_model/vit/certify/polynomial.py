"""Polynomials over the rationals in any number of variables, with formal functions of polynomials among the variables.

A function applied to a polynomial (exp of it, 1 / it, …) becomes a variable of its own, the same for equal arguments,
with its rule of differentiation. An identity between polynomials in these variables therefore holds for all real values
of the base variables at which the functions are defined, whatever relations there are between the variables.
"""
from fractions import Fraction

import numpy as np


class Polynomial:
    """terms: dict from monomials (ascending tuples of variable numbers, repeated by power) to coefficients, none 0."""

    __slots__ = ("terms",)

    def __init__(self, terms):
        self.terms = terms

    @staticmethod
    def of(value):
        """A polynomial of a whole number or fraction; a polynomial as it is."""
        if isinstance(value, Polynomial):
            return value
        return Polynomial({(): value} if value else {})

    def __add__(self, other):
        if isinstance(other, np.ndarray):
            return NotImplemented
        other = Polynomial.of(other)
        large, small = (self, other) if len(self.terms) >= len(other.terms) else (other, self)
        terms = dict(large.terms)
        for monomial, c in small.terms.items():
            add_term(terms, monomial, c)
        return Polynomial(terms)

    def __neg__(self):
        return Polynomial({monomial: -c for monomial, c in self.terms.items()})

    def __sub__(self, other):
        if isinstance(other, np.ndarray):
            return NotImplemented
        return self + -Polynomial.of(other)

    def __rsub__(self, other):
        return Polynomial.of(other) - self

    def __mul__(self, other):
        if isinstance(other, np.ndarray):
            return NotImplemented
        other = Polynomial.of(other)
        terms = {}
        for m1, c1 in self.terms.items():
            for m2, c2 in other.terms.items():
                add_term(terms, tuple(sorted(m1 + m2)) if m1 and m2 else m1 or m2, c1 * c2)
        return Polynomial(terms)

    __radd__, __rmul__ = __add__, __mul__

    def __eq__(self, other):
        return self.terms == Polynomial.of(other).terms

    __hash__ = None

    def key(self):
        """Hashable; equal for equal polynomials."""
        return frozenset(self.terms.items())

    def partials(self):
        """Partial derivatives with respect to every variable that occurs: dict variable → polynomial."""
        found = {}
        for monomial, c in self.terms.items():
            for at, variable in enumerate(monomial):
                rest = monomial[:at] + monomial[at + 1:]
                add_term(found.setdefault(variable, {}), rest, c)
        return {variable: Polynomial(terms) for variable, terms in found.items()}

    def degree_in(self, variables):
        """Largest number of these variables, counted with powers, in one monomial."""
        return max((len([v for v in monomial if v in variables]) for monomial in self.terms), default=0)


def add_term(terms, monomial, c):
    total = terms.get(monomial, 0) + c
    if total:
        terms[monomial] = total
    else:
        terms.pop(monomial, None)


HALF = Fraction(1, 2)


class Algebra:
    """Makes variables and functions, and differentiates."""

    def __init__(self):
        self.count = 0
        self.known = {}  # (function, key of the argument) → its variable, as a polynomial
        self.functions = {}  # number of a function's variable → (argument, derivative with respect to it), as made

    def variable(self):
        self.count += 1
        return Polynomial({(self.count,): 1})

    def variables(self, shape):
        """An object array of fresh variables."""
        made = np.empty(shape, object)
        for at in np.ndindex(*shape):
            made[at] = self.variable()
        return made

    def apply(self, function, argument):
        """function(argument): "exp", "inverse", "inverse_root", "tanh", "normal_cdf", "normal_pdf" or "log"."""
        argument = Polynomial.of(argument)
        key = function, argument.key()
        if key not in self.known:
            y = self.known[key] = self.variable()
            self.functions[number_of(y)] = argument, self.derivative(function, argument, y)
        return self.known[key]

    def derivative(self, function, x, y):
        if function == "exp":
            return y
        if function == "inverse":
            return -(y * y)
        if function == "inverse_root":
            return y * y * y * -HALF
        if function == "tanh":
            return 1 - y * y
        if function == "normal_cdf":
            return self.apply("normal_pdf", x)
        if function == "normal_pdf":
            return -(x * y)
        if function == "log":
            return self.apply("inverse", x)
        raise ValueError(f"function = {function!r}: not known")

    def gradient(self, polynomial):
        """Total derivatives with respect to all variables, functions unfolded: dict variable number → polynomial."""
        total = dict(polynomial.partials())
        for number in sorted(self.functions, reverse=True):  # an argument holds earlier variables only
            if number in total:
                argument, derivative = self.functions[number]
                outer = total[number] * derivative
                for variable, inner in argument.partials().items():
                    total[variable] = total.get(variable, ZERO) + outer * inner
        return total


ZERO = Polynomial({})


def number_of(variable):
    """The number of a polynomial that is one variable."""
    ((monomial, _),) = variable.terms.items()
    return monomial[0]
