import dx_kernels as k
import numpy as np
import pytest
from dx_kernels.ref import posteriors as ref
from page_cases import SMALL, distribution, page, runs_of, schema


def posteriors(z, repeated, runs=(), floor=np.inf, capacity=4096):
    runs = np.array(runs, np.int32).reshape(-1, 3)
    absent, p = np.full(len(repeated), -1.0), np.full(len(runs), -1.0)
    found, found_p = k.run_posteriors(z, repeated, absent, runs, p, floor=floor, capacity=capacity)
    return absent, p, found, found_p


def by_enumeration(z, exclusive):
    """({run: probability}, [probability that the field has no run])."""
    taggings, _, p = distribution(z, exclusive)
    fields, total = (z.shape[1] - 1) // 2, {}
    for y, q in zip(taggings, p):
        for run in runs_of(y):
            total[run] = total.get(run, 0.0) + q
    absent = [sum(q for y, q in zip(taggings, p) if 1 + 2 * f not in y) for f in range(fields)]
    return total, absent


@pytest.mark.parametrize("scale", [0.5, 4.0])
@pytest.mark.parametrize("n, fields, repeated", SMALL)
def test_sums_over_all_legal_taggings(path, rng, n, fields, repeated, scale):
    z, flags = page(rng, n, fields, scale), schema(fields, repeated)
    assert k.page_model(flags) == "joint"
    want, want_absent = by_enumeration(z, [f for f in range(fields) if not flags[f]])
    runs = sorted(want)
    absent, p, found, found_p = posteriors(z, flags, runs, floor=1e-3)
    np.testing.assert_allclose(p, [want[r] for r in runs], rtol=1e-11)
    for f in range(fields):
        assert absent[f] == pytest.approx(want_absent[f], rel=1e-11)
    assert found.tolist() == [list(r) for r in runs if want[r] >= 1e-3]
    np.testing.assert_allclose(found_p, [want[r] for r in runs if want[r] >= 1e-3], rtol=1e-11)


def test_each_model_by_enumeration(path, rng):
    """More than 8 single fields: each field's answers come from the model in which it alone is exclusive."""
    flags = schema(10, [3])
    assert k.page_model(flags) == "each"
    z = page(rng, 3, 10, 2.0)
    runs = [(f, i, j) for f in range(10) for i in range(3) for j in range(i, 3)]
    absent, p, found, _ = posteriors(z, flags, runs, floor=1e-3)
    for f in range(10):
        want, want_absent = by_enumeration(z, [] if flags[f] else [f])
        mine = [x for x, r in enumerate(runs) if r[0] == f]
        np.testing.assert_allclose(p[mine], [want[runs[x]] for x in mine], rtol=1e-11)
        assert absent[f] == pytest.approx(want_absent[f], rel=1e-11)
        assert [tuple(r) for r in found.tolist() if r[0] == f] == [runs[x] for x in mine if want[runs[x]] >= 1e-3]


CASES = [(0, 3, ()), (1, 1, ()), (17, 1, ()), (12, 2, (1,)), (14, 4, ()), (9, 5, (0, 4)), (6, 8, ()), (9, 9, ()),
         (7, 13, (12,)), (5, 3, (0, 1, 2))]


@pytest.mark.parametrize("n, fields, repeated", CASES)
def test_bits_equal_reference(path, rng, n, fields, repeated):
    z, flags = page(rng, n, fields, 6.0), schema(fields, repeated)
    runs = [(int(rng.integers(fields)), i, int(rng.integers(i, n))) for i in range(n)]
    want = ref.run_posteriors(z, flags, runs, 1e-4)
    for degree in (1, 2, 3):
        with k.degree(degree):
            absent, p, found, found_p = posteriors(z, flags, runs, 1e-4)
            assert (absent.tolist(), p.tolist(), found.tolist(), found_p.tolist()) == want


@pytest.mark.parametrize("fields", [3, 9])
def test_probabilities_of_a_single_field_add_up_to_one(path, rng, fields):
    n = 24
    z = page(rng, n, fields, 1.0, 2.0)
    runs = [(1, i, j) for i in range(n) for j in range(i, n)]
    absent, p, _, _ = posteriors(z, schema(fields), runs)
    assert absent[1] + p.sum() == pytest.approx(1, abs=1e-13)


def test_runs_surer_than_binary64_can_say(path):
    """A run of 200 words, each 20 nats better than O, and two other places, each 3 better: their probability is below
    the binary64 numbers; nothing is NaN or lost."""
    z = np.zeros((300, 5), np.float32)
    z[:, 0] = 20
    z[50:250, 0] = 0
    z[50, 1] = 20
    z[51:250, 2] = 20
    z[20, 1] = z[280, 1] = 23
    absent, p, found, found_p = posteriors(z, schema(2), [(0, 50, 249), (0, 20, 20), (0, 280, 280), (0, 50, 248)], 0.01)
    assert p[0] == pytest.approx(1, abs=1e-6) and absent[0] == 0
    assert p[1] == p[2] == 0 and p[3] == pytest.approx(2 * np.exp(-20), rel=1e-3)  # word 249: O or B-1
    assert [r for r in found.tolist() if r[0] == 0] == [[0, 50, 249]]


def test_uniform_page_and_capacity(path):
    z = np.zeros((2, 3), np.float32)
    absent, p, found, found_p = posteriors(z, schema(1), [], 0.25)
    assert absent.tolist() == [0.25] and found_p.tolist() == [0.25] * 3
    assert found.tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 1]]
    with pytest.raises(OverflowError, match="3 runs reach floor = 0.25: capacity = 2"):
        posteriors(z, schema(1), [], 0.25, 2)


def test_huge_logits(path):
    z = np.full((3, 3), -3e38, np.float32)
    z[:, 1] = 3e38
    absent, p, _, _ = posteriors(z, schema(1), [(0, 0, 0), (0, 1, 1), (0, 2, 2), (0, 0, 2)])
    np.testing.assert_allclose(p, 1 / 6, rtol=1e-12)  # a run is one sure word and two words 300 below
    assert 0 < absent[0] < 1e-100


def test_bad_arguments():
    z = np.zeros((3, 5), np.float32)
    z.flags.writeable = False
    posteriors(z, schema(2), [(1, 0, 2)])
    with pytest.raises(ValueError, match=r"runs\[0\] has field 2: expected 0\.\.1"):
        posteriors(z, schema(2), [(2, 0, 0)])
    with pytest.raises(ValueError, match=r"runs\[0\] has words 1\.\.3: expected 0 <= first <= last < 3"):
        posteriors(z, schema(2), [(0, 1, 3)])
    with pytest.raises(ValueError, match=r"absent has shape \(1,\): expected \(2,\)"):
        k.run_posteriors(z, schema(2), np.zeros(1), np.zeros((0, 3), np.int32), np.zeros(0))
    for floor in (0.0, np.nan):
        with pytest.raises(ValueError, match="floor = "):
            posteriors(z, schema(2), [], floor)
    y = z.copy()
    y[1, 2] = np.nan
    with pytest.raises(ValueError, match=r"logits\[1, 2\] = nan"):
        posteriors(y, schema(2))


def test_page_model_depends_on_the_schema_alone():
    assert k.page_model(schema(8)) == "joint" and k.page_model(schema(9)) == "each"
    assert k.page_model(schema(9, [0])) == "joint" and k.page_model(schema(16, range(8))) == "each"
    assert k.page_model(schema(63, range(57))) == "joint" and k.page_model(schema(64, range(58))) == "each"
    assert k.page_model(schema(500, range(500))) == "joint" and k.page_model(schema(0)) == "joint"
