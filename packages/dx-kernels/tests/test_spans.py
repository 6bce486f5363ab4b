import dx_kernels as k
import numpy as np
import pytest
from dx_kernels.ref import spans as ref

f32 = np.float32


def best(start, end, pair, context, max_length, most=3):
    found, scores = np.full((most, 2), -7, np.int32), np.full(most, np.nan)
    count = k.best_spans(start, end, pair, np.asarray(context, np.uint8), found, scores, max_length=max_length)
    return [(scores[i], *map(int, found[i])) for i in range(count)]


def the_loop(start, end, context_mask, max_answer_length):
    """The loop that defines the search, with its tie."""
    best = None
    for s in range(len(start)):
        if not context_mask[s]:
            continue
        for e in range(s, min(len(end), s + max_answer_length)):
            if not context_mask[e]:
                continue
            candidate = (start[s] + end[e], s, e)
            if best is None or candidate > best:
                best = candidate
    return best


@pytest.mark.parametrize("n", [0, 1, 2, 17, 60])
@pytest.mark.parametrize("whole", [False, True])
def test_equal_to_reference_and_loop(path, rng, n, whole):
    """Whole numbers make ties."""
    for most in (0, 1, 5):
        start, end, pair = ((rng.integers(-2, 3, s) if whole else rng.standard_normal(s)).astype(f32)
                            for s in (n, n, (n, n)))
        context = rng.random(n) < 0.7
        for length in (1, 4, 10**12):
            for a in ((start, end, None), (None, None, pair), (start, end, pair)):
                assert best(*a, context, length, most) == ref.best_spans(*a, context, length, most)
            found = best(start, end, None, context, length, 1)
            want = the_loop(start.astype(float), end.astype(float), context, length)
            assert found == ([want] if want else [])


def test_ties_go_to_the_larger_tuple():
    zeros = np.zeros(4, f32)
    assert best(zeros, zeros, None, [1, 1, 1, 0], 2) == [(0.0, 2, 2), (0.0, 1, 2), (0.0, 1, 1)]


def test_independent_argmaxes_would_be_inverted_or_overlong():
    start, end = np.array([0, 0, 5, 0], f32), np.array([4, 0, 1, 0], f32)
    assert start.argmax() > end.argmax()
    assert best(start, end, None, [1] * 4, 4, 1) == [(6.0, 2, 2)]
    start, end = np.array([5, 0, 0, 1], f32), np.array([0, 0, 0, 5], f32)
    assert best(start, end, None, [1] * 4, 2, 1) == [(6.0, 3, 3)]


def test_pair_scores_say_what_boundaries_cannot():
    pair = np.full((3, 3), -1, f32)
    pair[0, 1] = pair[1, 2] = 9
    assert [x[1:] for x in best(None, None, pair, [1, 1, 1], 3, 2)] == [(1, 2), (0, 1)]


def test_values_outside_the_context_never_matter():
    start, end = np.array([np.nan, 1, 2], f32), np.array([np.inf, 1, 0], f32)
    assert best(start, end, None, [0, 1, 1], 3, 1) == [(2.0, 2, 2)]
    with pytest.raises(ValueError, match=r"end\[0\] = inf"):
        best(np.zeros(3, f32), end, None, [1, 1, 1], 3)


def test_wrong_arguments_are_named():
    x, c = np.zeros(2, f32), np.ones(2, np.uint8)
    for wrong, message in (
            (lambda: best(x, x, None, c, 0), "max_length = 0"),
            (lambda: best(x, None, None, c, 1), "expected start and end together"),
            (lambda: best(None, None, None, c, 1), "expected start and end together"),
            (lambda: best(x[:1], x, None, c, 1), r"start has shape \(1,\)"),
            (lambda: best(None, None, np.zeros((2, 3), f32), c, 1), r"pair has shape \(2, 3\)"),
            (lambda: best(None, None, np.full((2, 2), np.nan, f32), c, 1), r"pair\[0, 0\] = nan"),
            (lambda: k.best_spans(x, x, None, c, np.zeros((1, 2), np.int32), np.zeros(2), max_length=1), "found has")):
        with pytest.raises(ValueError, match=message):
            wrong()
