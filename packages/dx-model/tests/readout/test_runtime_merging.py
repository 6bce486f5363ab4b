"""Distributed readouts: the same bits in any grouping and order, as far as the rule goes, and refusals beyond it."""
from fractions import Fraction

import numpy as np
import pytest
from dx_model.readout import AttentionPool, Pooling
from dx_model.runtime import MaxState, SoftmaxState, SumState, global_maximum, merge_all
from dx_model.runtime.exact_sums import deposit, round_quotient, wholes
from hypothesis import given, settings
from hypothesis import strategies as st
from readout_record import refused
from runtime_source import F

FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)


def shards(x, cuts, rng=None):
    """(values, rows) of parts; with rng rows are dealt at random instead of cut."""
    if rng is None:
        edges = [0, *sorted(cuts), len(x)]
        return [(x[a:b], np.arange(a, b)) for a, b in zip(edges, edges[1:]) if b > a]
    owner = rng.integers(0, 4, len(x))
    return [(x[owner == k], np.flatnonzero(owner == k)) for k in range(4) if (owner == k).any()]


def hard(rng, n, d):
    """Values whose float sums depend on every order: twenty orders of magnitude, cancelling."""
    x = (rng.standard_normal((n, d)) * 10.0 ** rng.integers(-12, 8, (n, d))).astype(F)
    x[n // 2:] = -x[:n - n // 2] * F(1 + 2**-20)
    return x


def merged_in_many_ways(states, rng):
    """Results of left folds, right folds, trees and shuffles."""
    yield merge_all(states)
    yield merge_all(states[::-1])
    yield merge_all([states[i] for i in rng.permutation(len(states))])
    level = list(states)
    while len(level) > 1:
        level = [level[i].merge(level[i + 1]) if i + 1 < len(level) else level[i] for i in range(0, len(level), 2)]
    yield level[0]


def test_means_merge_to_the_same_bits_in_any_grouping(rng):
    x = hard(rng, 61, 7)
    want = np.array([F(float(sum(Fraction(float(v)) for v in column) / 61)) for column in x.T])
    for parts in (shards(x, []), shards(x, [1, 17, 40]), shards(x, range(1, 61)), shards(x, None, rng)):
        states = [SumState.of("d", "r", *part) for part in parts]
        for total in merged_in_many_ways(states, rng):
            assert total.finish(61).tobytes() == want.tobytes() and total.count == 61
    one = merge_all([SumState.of("d", "r", *part) for part in shards(x, [5, 9])])
    two = merge_all([SumState.of("d", "r", *part) for part in shards(x, None, rng)])
    assert one.limbs.tobytes() == two.limbs.tobytes() and one.spans == two.spans == ((0, 61),)
    pooled = Pooling("mean").forward(x[None], np.ones((1, 61), bool)).vectors[0]
    assert np.abs(pooled - want).max() <= 61 * 2.0**-23 * np.abs(x).max()


def test_the_mean_of_local_means_is_refused():
    """Shards of 3 and 1 rows: averaging their means gives 6, the mean is 4; a mean is no state and cannot be merged."""
    x = np.array([[1], [2], [3], [10]], F)
    parts = shards(x, [3])
    wrong = np.mean([part.mean(axis=0) for part, _ in parts], axis=0)
    states = [SumState.of("d", "r", *part) for part in parts]
    assert wrong.tolist() == [6.0] and merge_all(states).finish(4).tolist() == [4.0]
    refused(lambda: merge_all([part.mean(axis=0) for part, _ in parts]), "shard")
    refused(lambda: states[0].merge(parts[1][0].mean(axis=0)), "shard")


def test_maxima_keep_their_owner(rng):
    x = rng.integers(-3, 3, (40, 9)).astype(F)
    x[x == 0] = np.where(rng.random((x == 0).sum()) < 0.5, F(0), F(-0.0))
    pooling = Pooling("max")
    pooled = pooling.forward(x[None], np.ones((1, 40), bool))
    for parts in (shards(x, [1, 13, 14]), shards(x, range(1, 40)), shards(x, None, rng)):
        for total in merged_in_many_ways([MaxState.of("d", "r", *part) for part in parts], rng):
            values, owners = total.finish(40)
            assert values.tobytes() == pooled.vectors[0].tobytes()
            assert owners.tolist() == pooling.argmax(pooled)[0].tolist()


def test_attention_merges_under_one_global_maximum(rng):
    """The global denominator: the same bits in any grouping, and the pool's vector up to rounding. Averaging local
    attention vectors is another function."""
    x = rng.standard_normal((50, 6)).astype(F)
    pool = Pooling((AttentionPool(4),))
    parameters = {n: 3 * rng.standard_normal(s).astype(F) for n, s in pool.parameter_shapes(6).items()}
    scores = (np.tanh(x @ parameters["attention.weight"].T + parameters["attention.bias"])
              @ parameters["attention.v"].T)[:, 0].astype(F)
    pooled = pool.forward(x[None], np.ones((1, 50), bool), parameters).vectors[0]
    found = []
    for parts in (shards(x, []), shards(x, [20]), shards(x, range(1, 50)), shards(x, None, rng)):
        top = global_maximum(scores[rows].max() for _, rows in parts)
        states = [SoftmaxState.of("d", "r", scores[rows], values, rows, top) for values, rows in parts]
        found += [total.finish(50) for total in merged_in_many_ways(states, rng)]
    assert len({v.tobytes() for v in found}) == 1 and np.abs(found[0] - pooled).max() < 2e-6
    local = [SoftmaxState.of("d", "r", scores[a:b], x[a:b], np.arange(a, b), scores[a:b].max()) for a, b in
             ((0, 20), (20, 50))]
    refused(lambda: local[0].merge(local[1]), "shard.maximum")
    averaged = [SoftmaxState.of("d", "r", scores[a:b], x[a:b], np.arange(b - a), scores[a:b].max()).finish(b - a)
                for a, b in ((0, 20), (20, 50))]
    assert np.abs(np.mean(averaged, axis=0) - pooled).max() > 1e-3
    refused(lambda: SoftmaxState.of("d", "r", scores, x, np.arange(50), scores.max() - F(1)), "shard.maximum")


def test_rows_are_in_exactly_one_shard(rng):
    x = rng.standard_normal((6, 2)).astype(F)
    for kind in (SumState, MaxState):
        a, b = kind.of("d", "r", x[:4], np.arange(4)), kind.of("d", "r", x[3:], np.arange(3, 6))
        refused(lambda a=a, b=b: a.merge(b), "shard.rows")
        refused(lambda a=a: a.merge(a), "shard.rows")
        refused(lambda a=a: a.finish(6), "shard.rows")
        refused(lambda a=a, k=kind: a.merge(k.of("e", "r", x[4:], [4, 5])), "shard.id")
        refused(lambda a=a, k=kind: a.merge(k.of("d", "s", x[4:], [4, 5])), "shard.release")
        assert merge_all([a, kind.of("d", "r", x[4:], [7, 9])]).spans == ((0, 4), (7, 8), (9, 10))
        merge_all([a, kind.of("d", "r", x[4:], [7, 9])]).finish([0, 1, 2, 3, 7, 9])
    refused(lambda: SumState.of("d", "r", x, np.arange(6)[::-1]), "shard.rows")
    refused(lambda: SumState.of("d", "r", x, np.arange(5)), "shard.rows")
    refused(lambda: SumState.of("d", "r", x[:0], []), "shard.values")
    refused(lambda: SumState.of("d", "r", np.array([[np.inf]], F), [0]), "shard.values")
    refused(lambda: SumState.of("d", "r", x, np.arange(6)).merge(MaxState.of("d", "r", x, np.arange(6, 12))), "shard")
    refused(lambda: merge_all([]), "shards")
    refused(lambda: global_maximum([1.0, float("nan")]), "shard.scores")


@settings(max_examples=200, deadline=None)
@given(st.lists(FINITE, min_size=1, max_size=12))
def test_sums_are_exact_and_rounded_once(values):
    x = np.array(values, F)[:, None]
    total, = wholes(deposit(x))
    exact = sum(Fraction(float(v)) for v in x[:, 0])
    assert Fraction(total, 2**149) == exact
    mean = round_quotient(total, len(values))
    assert F(mean) == mean or np.isinf(mean)
    want = exact / len(values)
    with np.errstate(over="ignore"):
        neighbours = [np.nextafter(F(mean), F(side)) for side in (np.inf, -np.inf)]
    for other in neighbours:
        if np.isfinite(other):
            gap, theirs = abs(Fraction(mean) - want), abs(Fraction(float(other)) - want)
            assert gap < theirs or (gap == theirs and F(mean).view(np.uint32) % 2 == 0)


def test_quotients_at_the_edges():
    unit = 2**149
    assert round_quotient(0, 3) == 0.0 and round_quotient(1, 2) == 0.0 and round_quotient(3, 2) == 2.0**-148
    assert round_quotient(-unit, 3) == float(F(-1 / 3)) and round_quotient(unit * 2**128, 1) == np.inf
    assert round_quotient(unit * (2**128 - 2**103), 1) == np.inf  # half a step above the largest: to even, so beyond
    assert round_quotient(unit * (2**128 - 2**103) - 1, 1) == float(np.finfo(F).max)
    with pytest.raises(ValueError, match="denominator"):
        round_quotient(1, 0)
