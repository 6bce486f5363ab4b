"""Exact (Clopper-Pearson) intervals of a share, the same bits on every machine."""
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from functools import lru_cache

_CONTEXT = Context(prec=40, rounding=ROUND_HALF_EVEN, Emin=-999999, Emax=999999, traps=[])
STEPS = 60  # halvings: beyond binary64's resolution


def _power(base, exponent):
    """base to a whole exponent by repeated squaring."""
    result = Decimal(1)
    while exponent:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result


def _at_least(k, n, p):
    """Probability of k or more successes in n trials of probability p, 0 < p < 1, summed from the smaller end."""
    odds, term, total = p / (1 - p), _power(1 - p, n), Decimal(0)
    for i in range(n + 1):
        if i >= k:
            total += term
        term = term * (n - i) / (i + 1) * odds
    return total


def _solve(holds):
    """The p in [0, 1] at which holds(p) turns from false to true."""
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if holds(Decimal(middle)):
            high = middle
        else:
            low = middle
    return high


@lru_cache(maxsize=4096)
def clopper_pearson(k, n, level="0.95"):
    """The exact interval of a share of which k of n were seen.

    Parameters
    ----------
    k, n : int, 0 <= k <= n
    level : str, decimal between 0 and 1

    Returns
    -------
    (low, high) : floats; (0, 1) for n = 0. low is the least p with P(X >= k | p) >= (1 - level) / 2 (0 for k = 0), high
        the greatest with P(X <= k | p) >= (1 - level) / 2 (1 for k = n).

    Order
    -----
    Bisection over binary64 (60 halvings of [0, 1], the upper end is taken); the binomial sum in decimal arithmetic of
    40 digits, terms ascending from 0 successes.

    Examples
    --------
    >>> clopper_pearson(5, 5)[0]
    0.4781762498950185
    """
    if not 0 <= k <= n:
        raise ValueError(f"k = {k}, n = {n}: expected 0 <= k <= n")
    if n == 0:
        return 0.0, 1.0
    with localcontext(_CONTEXT):
        tail = (1 - Decimal(level)) / 2
        if not 0 < tail < Decimal("0.5"):
            raise ValueError(f"level = {level!r}: expected a decimal between 0 and 1")
        low = 0.0 if k == 0 else _solve(lambda p: _at_least(k, n, p) >= tail)
        high = 1.0 if k == n else _solve(lambda p: 1 - _at_least(k + 1, n, p) < tail)
    return low, high
