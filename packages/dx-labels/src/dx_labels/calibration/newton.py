"""Newton's method with exact Hessians, in binary64 and a fixed order: the same parameters everywhere.

Every step is elementwise arithmetic, sums by math.fsum (exactly rounded) or dx_kernels.products64, and a Cholesky
factorisation column by column.
"""
import math

import numpy as np

from ..below import ReadoutError

STEPS = 200
HALVINGS = 60
TOLERANCE = 2.0**-80  # of the squared Newton decrement


def cholesky_solve(matrix, vector) -> np.ndarray:
    """x with matrix x = vector, for a symmetric positive definite matrix (n, n); right-looking, column by column.

    Raises
    ------
    ReadoutError
        A pivot that is not above 0: the problem has no unique minimum.
    """
    a, x, n = np.array(matrix, np.float64), np.array(vector, np.float64), len(vector)
    for k in range(n):
        pivot = a[k, k]
        if not pivot > 0:
            raise ReadoutError("calibration.hessian", float(pivot), "a number > 0: the scores do not determine the fit")
        a[k, k] = math.sqrt(pivot)
        a[k + 1:, k] = a[k + 1:, k] / a[k, k]
        a[k + 1:, k + 1:] = a[k + 1:, k + 1:] - a[k + 1:, k][:, None] * a[k + 1:, k][None, :]
    for k in range(n):
        x[k] = x[k] / a[k, k]
        x[k + 1:] = x[k + 1:] - a[k + 1:, k] * x[k]
    for k in range(n - 1, -1, -1):
        x[k] = x[k] / a[k, k]
        x[:k] = x[:k] - a[k, :k] * x[k]
    return x


def minimise(value, derivatives, start) -> np.ndarray:
    """The minimum of a strictly convex function.

    value : theta → float · derivatives : theta → (gradient (P,), Hessian (P, P)) · start : theta (P,)
    A step is halved until the value does not rise; the end is where the squared Newton decrement is below 2^-80 times
    1 + |value|, or no halved step lowers the value.
    """
    theta, at = np.array(start, np.float64), value(start)
    for _ in range(STEPS):
        gradient, hessian = derivatives(theta)
        step = cholesky_solve(hessian, gradient)
        decrement = math.fsum((gradient * step).tolist())
        if not decrement > TOLERANCE * (1.0 + abs(at)):
            return theta
        factor = 1.0
        for _ in range(HALVINGS):
            moved = theta - factor * step
            there = value(moved)
            if there < at:
                break
            factor = 0.5 * factor
        else:
            return theta
        theta, at = moved, there
    raise ReadoutError("calibration.steps", STEPS, "a fit that settles")
