import dx_kernels as k
import numpy as np
import pytest
from dx_kernels.ref import decode as ref
from dx_kernels.ref.page_model import levels
from page_cases import SMALL, distribution, page, runs_of, schema


def decode(z, repeated):
    tags = np.full(len(z), -7, np.int32)
    return tags, *k.decode_tags(z, repeated, tags)


@pytest.mark.parametrize("scale", [0.5, 4.0])
@pytest.mark.parametrize("n, fields, repeated", SMALL)
def test_best_of_all_legal_taggings(path, rng, n, fields, repeated, scale):
    z, flags = page(rng, n, fields, scale), schema(fields, repeated)
    taggings, scores, _ = distribution(z, [f for f in range(fields) if not flags[f]])
    tags, score, bound, exact = decode(z, flags)
    assert tuple(tags) == taggings[int(scores.argmax())]
    assert exact and bound == score and abs(score - scores.max()) < 1e-9
    assert k.check_tags(tags, flags) is None


# 40 words, many fields, logits of one size: up to 8 fields compete (subsets), and more than 8 (prices)
@pytest.mark.parametrize("n, fields, repeated, outside", [(0, 3, (), 0), (1, 1, (), 0), (9, 2, (1,), 1), (40, 4, (), 1),
                                                          (31, 7, (2, 3), 2), (60, 12, (0,), 4), (50, 60, (), 5),
                                                          (14, 11, (3,), 1), (30, 20, (), 3)])
def test_bits_equal_reference(path, rng, n, fields, repeated, outside):
    z, flags = page(rng, n, fields, 2.0, outside), schema(fields, repeated)
    want = ref.decode_tags(z, flags)
    for degree in (1, 2, 3):
        with k.degree(degree):
            tags, score, bound, exact = decode(z, flags)
            assert tags.tolist() == want[0] and (score, bound, exact) == want[1:]


@pytest.mark.parametrize("n, fields", [(20, 3), (40, 12), (30, 25)])
def test_ties_as_in_the_reference(path, rng, n, fields):
    """Whole logits: many equal runs of many fields."""
    for _ in range(4):
        z, flags = rng.integers(-2, 3, (n, 1 + 2 * fields)).astype(np.float32), schema(fields)
        want = ref.decode_tags(z, flags)
        tags, score, bound, exact = decode(z, flags)
        assert tags.tolist() == want[0] and (score, bound, exact) == want[1:]


def test_field_that_stands_twice_is_taken_once(path):
    """The better place wins though the other is better than O; the first of equal places."""
    z = np.zeros((6, 5), np.float32)
    z[1, 1], z[4, 1] = 2, 3
    assert decode(z, schema(2))[0].tolist() == [0, 0, 0, 0, 1, 0]
    assert decode(z, schema(2, [0]))[0].tolist() == [0, 1, 0, 0, 1, 0]
    z[1, 1] = 3
    assert decode(z, schema(2))[0].tolist() == [0, 1, 0, 0, 0, 0]


def test_word_wanted_by_two_fields(path):
    """Field 0 leaves its best word to field 1, because its second best costs less."""
    z = np.zeros((3, 5), np.float32)
    z[1, 1], z[2, 1], z[1, 3] = 5, 4, 5
    assert decode(z, schema(2))[0].tolist() == [0, 3, 1]


def duplicates(fields, seed=0):
    """Every field has three places of its own, the middle one best by an amount that no sum of others makes up."""
    rng = np.random.default_rng(seed)
    z = np.zeros((3 * fields, 1 + 2 * fields), np.float32)
    for f in range(fields):
        for place in range(3):
            z[place * fields + f, 1 + 2 * f] = rng.uniform(1, 2) + (place == 1)
    return z


@pytest.mark.parametrize("fields", [8, 9, 30, 60])
def test_many_fields_that_compete(path, fields):
    tags, score, bound, exact = decode(duplicates(fields), schema(fields))
    assert exact and score == bound
    assert tags.tolist() == [0] * fields + [1 + 2 * f for f in range(fields)] + [0] * fields


@pytest.mark.parametrize("seed", range(6))
def test_prices_against_the_chain_over_all_fields(path, seed):
    """10 fields fight over 14 words: more than the subsets in use take, few enough for one exact chain in the test."""
    z = page(np.random.default_rng(seed), 14, 10, 3.0, 1.0)
    rows = levels(z)
    b, i = [[[v - row[0] for v in row[x::2]] for row in rows] for x in (1, 2)]
    want, _ = ref._best(b, i, list(range(10)), [0.0] * 10)
    tags, score, bound, exact = decode(z, schema(10))
    assert k.check_tags(tags, schema(10)) is None
    assert score - 1e-9 <= want <= bound + 1e-9
    if exact:
        assert score == pytest.approx(want, abs=1e-9)
    assert score == pytest.approx(sum(float(z[t, tag]) - float(z[t, 0]) for t, tag in enumerate(tags)), abs=1e-9)


@pytest.mark.parametrize("fields, words, outside", [(20, 128, 5), (60, 512, 11), (60, 512, 7)])
def test_prices_settle_on_noise(path, rng, fields, words, outside):
    """Noise is harder than pages: dozens of fields compete with themselves and with each other."""
    z = page(rng, words, fields, 3.0, outside)
    tags, score, bound, exact = decode(z, schema(fields))
    assert exact and score == bound and k.check_tags(tags, schema(fields)) is None


def test_bound_where_the_prices_do_not_settle(path):
    """16 fields for 16 words with ties everywhere: the answer is legal and at most the bound, exact or not."""
    some = []
    for seed in range(8):
        z = np.random.default_rng(seed).integers(0, 3, (16, 33)).astype(np.float32)
        tags, score, bound, exact = decode(z, schema(16))
        assert k.check_tags(tags, schema(16)) is None
        assert score <= bound and exact == (score == bound)
        assert score == sum(float(z[t, tag] - z[t, 0]) for t, tag in enumerate(tags))
        some.append(exact)
    assert not all(some)


def test_ties_go_to_o_and_the_lowest_field(path):
    assert decode(np.zeros((4, 5), np.float32), schema(2))[0].tolist() == [0, 0, 0, 0]
    z = np.zeros((2, 5), np.float32)
    z[1, 1:] = 1
    assert decode(z, schema(2))[0].tolist() == [0, 1]


def test_huge_logits(path):
    """Differences above 300 count as 300; nothing overflows."""
    z = np.zeros((3, 3), np.float32)
    z[1, 1], z[2, 2] = 3e38, 3e38
    tags, score, _, exact = decode(z, schema(1))
    assert tags.tolist() == [0, 1, 2] and score == 600.0 and exact


def test_read_only_input_and_bad_arguments():
    z = np.zeros((3, 5), np.float32)
    z.flags.writeable = False
    decode(z, schema(2))
    tags = np.zeros(3, np.int32)
    with pytest.raises(ValueError, match=r"logits has shape \(3, 5\): expected \(n, 3\)"):
        k.decode_tags(z, schema(1), tags)
    with pytest.raises(ValueError, match=r"tags has shape \(2,\): expected \(3,\)"):
        k.decode_tags(z, schema(2), tags[:2])
    with pytest.raises(ValueError, match=r"repeated\[1\] = 2"):
        k.decode_tags(z, np.array([0, 2], np.uint8), tags)
    for bad in (np.nan, np.inf, -np.inf):
        y = z.copy()
        y[2, 3] = bad
        with pytest.raises(ValueError, match=r"logits\[2, 3\] = -?(nan|inf)"):
            k.decode_tags(y, schema(2), tags)


def test_tags_and_runs_are_inverse(rng):
    for _ in range(50):
        n = int(rng.integers(0, 12))
        tags = np.zeros(n, np.int32)
        k.decode_tags(page(rng, n, 3, 3.0), schema(3, [0, 1, 2]), tags)
        runs = k.runs_of_tags(tags)
        assert [tuple(r) for r in runs.tolist()] == runs_of(tags.tolist())
        back = np.full(n, 9, np.int32)
        k.tags_of_runs(runs, back)
        assert np.array_equal(back, tags)


def test_illegal_tags_are_named():
    flags = schema(2)
    assert k.check_tags(np.array([0, 2], np.int32), flags) == (1, "I of field 0 after tag 0")
    assert k.check_tags(np.array([1, 4], np.int32), flags) == (1, "I of field 1 after tag 1")
    assert k.check_tags(np.array([1, 0, 1], np.int32), flags) == (2, "second run of field 0")
    assert k.check_tags(np.array([1, 1], np.int32), flags) == (1, "second run of field 0")
    assert k.check_tags(np.array([1, 1], np.int32), schema(2, [0])) is None
    assert k.check_tags(np.array([5], np.int32), flags) == (0, "tag 5 is outside 0..4")
    with pytest.raises(ValueError, match=r"tags\[0\] = 2: I of field 0 after tag 0"):
        k.runs_of_tags(np.array([2], np.int32))
    tags = np.zeros(4, np.int32)
    with pytest.raises(ValueError, match=r"runs\[1\]: word 2 is in two runs"):
        k.tags_of_runs(np.array([[0, 1, 2], [1, 2, 3]], np.int32), tags)
    with pytest.raises(ValueError, match=r"runs\[0\] has words 2\.\.4"):
        k.tags_of_runs(np.array([[0, 2, 4]], np.int32), tags)


def groups(pointers):
    out = np.empty(len(pointers), np.int32)
    k.groups_of_pointers(np.array(pointers, np.int32), out)
    return out.tolist()


def test_groups_follow_pointers_to_their_anchor():
    assert groups([]) == []
    assert groups([0]) == [0]
    assert groups([0, 0, 1, 3, 3]) == [0, 0, 0, 3, 3]
    assert groups([1, 2, 3, 3]) == [3, 3, 3, 3]
    assert groups([1, 0, 1]) == [0, 0, 0]             # a circle: its lowest word
    assert groups([1, 3, 2, 4, 1]) == [1, 1, 2, 1, 1]  # a tail into the circle 1 → 3 → 4 → 1
    with pytest.raises(ValueError, match=r"pointers\[1\] = 2: expected 0\.\.1"):
        groups([0, 2])


def test_groups_of_random_pointers(rng):
    for _ in range(100):
        n = int(rng.integers(1, 20))
        pointers = rng.integers(0, n, n)
        for t, anchor in enumerate(groups(pointers)):
            walk = [t]
            for _ in range(2 * n):
                walk.append(int(pointers[walk[-1]]))
            assert anchor == min(walk[n:])            # after n steps the walk is on its circle


def test_pointers_and_pairs():
    out = np.empty(3, np.int32)
    k.pointers_of_scores(np.array([[1, 1, 0], [-np.inf, 2, 3], [0, 0, 0]], np.float32), out)
    assert out.tolist() == [0, 2, 0]
    assert k.pairs_of_pointers(out).tolist() == [[1, 2], [2, 0]]
    assert k.pairs_of_pointers(np.array([0, 1], np.int32)).shape == (0, 2)
    with pytest.raises(ValueError, match=r"scores\[0, 1\] = nan"):
        k.pointers_of_scores(np.array([[1, np.nan]], np.float32), out[:1])
