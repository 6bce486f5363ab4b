"""Pools: formulas, gradients, padding to the bit, ties, examples without rows, number formats."""
import numpy as np
import pytest
from dx_model import available_paths, degree, kernel_path, readout

F32 = np.float32
PLAIN = ["first", "last", "mean", "mean_sqrt_length", "max", "position_weighted_mean"]


def same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def example(lengths=(5, 1, 7), d=6, before=0, after=0, keys=range(3)):
    """(hidden, mask): examples of these lengths, made from their keys, padded with NaN on both sides to one length."""
    widest = max(lengths) + before + after
    hidden, mask = np.full((len(lengths), widest, d), np.nan, F32), np.zeros((len(lengths), widest), bool)
    for b, n in enumerate(lengths):
        at = before if after or not before else widest - n
        hidden[b, at:at + n] = np.random.default_rng(keys[b]).standard_normal((n, d))
        mask[b, at:at + n] = True
    return hidden, mask


def modes():
    """Every mode with its parameters for rows of 6."""
    rng = np.random.default_rng(4)
    found = {mode: (mode, {}) for mode in PLAIN}
    for name, mode in (("bert_pooler", "bert_pooler"), ("attention", readout.AttentionPool(4)),
                       ("multi_hop", readout.AttentionPool(4, 3, bias=False, name="hops"))):
        shapes = readout.Pooling((mode,)).parameter_shapes(6)
        found[name] = mode, {n: (rng.standard_normal(s) / 2).astype(F32) for n, s in shapes.items()}
    return found


def oracle(name, rows, p, weights=None):
    """The pool of one example's rows (n, D) in float64."""
    n = len(rows)
    if name == "attention" or name == "multi_hop":
        prefix = "attention" if name == "attention" else "hops"
        u = p[f"{prefix}.v"] @ np.tanh(rows @ p[f"{prefix}.weight"].T + p.get(f"{prefix}.bias", 0)).T
        e = np.exp(u - u.max(1, keepdims=True))
        return (e / e.sum(1, keepdims=True) @ rows).reshape(-1)
    w = np.arange(1, n + 1.0) if weights is None else weights
    return {"first": lambda: rows[0], "last": lambda: rows[-1], "mean": lambda: rows.sum(0) / n,
            "mean_sqrt_length": lambda: rows.sum(0) / np.sqrt(n), "max": lambda: rows.max(0),
            "position_weighted_mean": lambda: w @ rows / w.sum(), "weighted_mean": lambda: w @ rows / w.sum(),
            "bert_pooler": lambda: np.tanh(p["pooler.weight"] @ rows[0] + p["pooler.bias"])}[name]()


def check_mode(name, weights=None):
    """Forward against float64, and every gradient against central differences of the float64 formula."""
    rng = np.random.default_rng(1)
    mode, parameters = modes().get(name, (name, {}))
    pooling = readout.Pooling((mode,))
    hidden, mask = example()
    pooled = pooling.forward(hidden, mask, parameters, weights=weights)
    dy = rng.standard_normal(pooled.vectors.shape).astype(F32)
    gradients = pooling.backward(pooled, dy)
    exact = {n: v.astype(float) for n, v in parameters.items()}
    clean = np.where(np.isnan(hidden), 0, hidden).astype(float)

    def vectors(h, p):
        return np.stack([oracle(name, h[b][mask[b]], p, None if weights is None else weights[b][mask[b]].astype(float))
                         for b in range(len(h))])

    assert np.abs(vectors(clean, exact) - pooled.vectors).max() < 2e-6
    assert not gradients.hidden[~mask].any() and not np.isnan(gradients.hidden).any()

    def slope(change):
        ends = []
        for h in (1e-6, -1e-6):
            x, p = clean.copy(), {n: v.copy() for n, v in exact.items()}
            change(x, p, h)
            ends.append((vectors(x, p) * dy).sum())
        return (ends[0] - ends[1]) / 2e-6

    for at in [tuple(i) for i in np.argwhere(mask)]:
        for j in range(6):
            def change(x, p, h, at=at, j=j):
                x[at][j] += h
            assert abs(slope(change) - gradients.hidden[at][j]) < 2e-5, (at, j)
    assert gradients.parameters.keys() == parameters.keys()
    for n, value in parameters.items():
        for i in np.ndindex(value.shape):
            def change(x, p, h, n=n, i=i):
                p[n][i] += h
            assert abs(slope(change) - gradients.parameters[n][i]) < 2e-5, (n, i)
    return hidden, mask, pooled, dy, gradients


def test_first_and_last_are_gathers():
    for name in ("first", "last"):
        hidden, mask, pooled, dy, gradients = check_mode(name)
        for b in range(3):
            s = readout.boundary_index(mask[b], name)
            assert same(pooled.vectors[b], hidden[b, s]) and same(gradients.hidden[b, s], dy[b])
            assert np.count_nonzero(gradients.hidden[b].any(1)) == 1  # no gradient reaches another row


def test_bert_pooler_is_not_the_raw_row():
    hidden, mask, pooled, _, gradients = check_mode("bert_pooler")
    assert not np.array_equal(pooled.vectors, readout.pool(hidden, mask, "first"))
    assert (np.abs(pooled.vectors) < 1).all()
    assert np.count_nonzero(gradients.hidden.any(2)) == 3  # the first row of each example only


def test_masked_mean_divides_by_selected_rows():
    hidden, mask, pooled, dy, gradients = check_mode("mean")
    assert same(gradients.hidden[0, 0], gradients.hidden[0, 4]) and same(gradients.hidden[0, 0], dy[0] / F32(5))
    ones = np.ones((1, 8, 2), F32)
    for width in (8, 512):  # padding from 8 to 512 rows does not shrink the vector
        wide = np.concatenate([ones, np.zeros((1, width - 8, 2), F32)], 1)
        assert readout.pool(wide, np.arange(width)[None] < 8, "mean").tolist() == [[1, 1]]


def test_mean_over_root_of_length_grows_with_length():
    _, _, _, dy, gradients = check_mode("mean_sqrt_length")
    assert same(gradients.hidden[2, 0], dy[2] / np.sqrt(F32(7)))
    for n in (1, 4, 9, 100):  # rows of a common mean mu: sqrt(n) mu, and the mean is mu
        rows = np.full((1, n, 2), 3, F32)
        assert readout.pool(rows, np.ones((1, n), bool), "mean_sqrt_length").tolist() == [[3 * n**0.5] * 2]
        assert readout.pool(rows, np.ones((1, n), bool), "mean").tolist() == [[3, 3]]


def test_channel_maximum_routes_to_argmax():
    hidden, mask, pooled, dy, gradients = check_mode("max")
    argmax = readout.Pooling(("mean", "max")).forward(hidden, mask)
    argmax = readout.Pooling(("mean", "max")).argmax(argmax)
    assert same(np.take_along_axis(hidden, argmax[:, None], 1)[:, 0], pooled.vectors)
    assert len(set(argmax[0].tolist())) > 1  # the vector equals no row
    want = np.zeros_like(gradients.hidden)
    np.put_along_axis(want, argmax[:, None], dy[:, None], 1)
    assert same(want, gradients.hidden)


def test_zero_is_not_the_mask_of_a_maximum():
    """All selected values of a channel are negative: a padded zero must not win; and ties go to the first row."""
    hidden = np.array([[[-3, 1], [-2, 1], [0, 0]]], F32)
    mask = np.array([[True, True, False]])
    wrong = (hidden * mask[..., None]).max(1)
    pooling = readout.Pooling("max")
    pooled = pooling.forward(hidden, mask)
    assert wrong.tolist() == [[0, 1]] and pooled.vectors.tolist() == [[-2, 1]]
    assert pooling.argmax(pooled).tolist() == [[1, 0]]
    assert pooling.backward(pooled, np.ones((1, 2), F32)).hidden.tolist() == [[[0, 1], [1, 0], [0, 0]]]


def test_fixed_weighted_mean():
    rng = np.random.default_rng(3)
    weights = np.where(example()[1], rng.random((3, 7)), np.nan).astype(F32)
    weights[0, 2] = 0
    _, _, _, _, gradients = check_mode("weighted_mean", weights)
    assert not gradients.hidden[0, 2].any()
    check_mode("position_weighted_mean")
    with pytest.raises(readout.ReadoutError, match="a sum above 0"):
        readout.pool(np.ones((1, 2, 1), F32), np.ones((1, 2), bool), "weighted_mean", weights=np.zeros((1, 2), F32))
    hidden = np.array([[[1], [2], [4]]], F32)
    assert readout.pool(hidden, np.ones((1, 3), bool), "position_weighted_mean")[0, 0] == F32(17) / F32(6)


@pytest.mark.parametrize("weights, field", [
    ([[0, 0, 5]], "weights of example 0"), ([[1, -1, 0]], "weights[0, 1]"), ([[np.nan, 1, 0]], "weights[0, 0]"),
    ([[np.inf, 1, 0]], "weights[0, 0]"), ([[3e38, 3e38, 0]], "weights of example 0"), ([[1, 1]], "weights.shape"),
    (None, "weights")])
def test_weights_are_checked_and_zero_mass_is_refused(weights, field):
    mask = np.array([[True, True, False]])
    with pytest.raises(readout.ReadoutError) as caught:
        readout.pool(np.ones((1, 3, 2), F32), mask, "weighted_mean",
                     weights=None if weights is None else np.array(weights, F32))
    assert caught.value.field == field


def test_learned_attention_has_a_score_path():
    hidden, mask, pooled, dy, gradients = check_mode("attention")
    mode = readout.AttentionPool(4)
    pooling = readout.Pooling((mode,))
    alpha, starts = mode.weights(pooling.forward(hidden, mask, modes()["attention"][1]).saved[1][0])
    assert np.allclose(np.add.reduceat(alpha[0], starts[:-1]), 1, atol=1e-6)
    direct = alpha[0, :5, None] * dy[0]
    assert np.abs(gradients.hidden[0, :5] - direct).max() > 1e-2  # what a fixed weighted mean would give
    scaled = {n: v * 1e4 if n.endswith(".v") else v for n, v in modes()["attention"][1].items()}
    saturated = pooling.forward(hidden, mask, scaled)  # one row takes everything, nothing is NaN
    assert np.isfinite(pooling.backward(saturated, dy).hidden).all()


def test_multi_hop_attention_and_its_diversity_penalty():
    hidden, mask, pooled, _, _ = check_mode("multi_hop")
    mode, parameters = modes()["multi_hop"]
    assert pooled.vectors.shape == (3, 3 * 6) == (3, readout.Pooling((mode,)).width(6))
    alpha, starts = mode.weights(pooled.saved[1][0])
    penalties, dalpha = readout.diversity_penalty(alpha, starts, scale=0.5)

    def penalty(a):
        parts = [a[:, s:e] @ a[:, s:e].T - np.eye(3) for s, e in zip(starts[:-1], starts[1:], strict=True)]
        return [float((p * p).sum()) for p in parts]
    a = alpha.astype(float)
    assert np.abs(np.array(penalty(a)) - penalties).max() < 1e-5
    for i in np.ndindex(alpha.shape):
        h = np.zeros_like(a)
        h[i] = 1e-6
        assert abs(0.5 * (sum(penalty(a + h)) - sum(penalty(a - h))) / 2e-6 - dalpha[i]) < 1e-4
    equal = np.full((2, 4), 0.25, F32)  # equal hops are penalised, different ones are not
    assert readout.diversity_penalty(equal, np.array([0, 4]))[0][0] > 1
    apart = np.array([[1, 0], [0, 1]], F32)
    assert readout.diversity_penalty(apart, np.array([0, 2]))[0].tolist() == [0]


def test_concatenated_modes_derive_their_width():
    rng = np.random.default_rng(2)
    hidden, mask = example()
    pooling = readout.Pooling(("first", "mean", "max"))
    assert pooling.width(6) == 18
    pooled = pooling.forward(hidden, mask)
    parts = [readout.pool(hidden, mask, m) for m in ("first", "mean", "max")]
    assert same(pooled.vectors, np.concatenate(parts, 1))
    dy = rng.standard_normal((3, 18)).astype(F32)
    want = 0
    for i, mode in enumerate(("first", "mean", "max")):
        single = readout.Pooling(mode)
        own = single.backward(single.forward(hidden, mask), np.ascontiguousarray(dy[:, 6 * i:6 * i + 6])).hidden
        want = own if i == 0 else want + own
    assert same(pooling.backward(pooled, dy).hidden, want)
    assert readout.Pooling(("first", "max")).width(6) == 12  # one mode removed: nothing stale to correct
    two = readout.Pooling((readout.AttentionPool(2, name="a"), readout.AttentionPool(2, 2, name="b"), "mean"))
    assert two.width(6) == 24 and len(two.parameter_shapes(6)) == 6
    with pytest.raises(readout.ReadoutError, match="readout.modes"):
        readout.Pooling((readout.AttentionPool(2), readout.AttentionPool(3)))


@pytest.mark.parametrize("name", [*PLAIN, "bert_pooler", "attention", "multi_hop"])
def test_padding_and_batch_change_no_bit(name):
    """Cases rea-01, rea-08: left and right padding up to 512 rows, every order of the batch, every path and degree."""
    rng = np.random.default_rng(5)
    mode, parameters = modes()[name]
    pooling, lengths = readout.Pooling((mode,)), (1, 1, 4)
    dy = rng.standard_normal((3, pooling.width(6))).astype(F32)

    def run(which, before, after):
        hidden, mask = example([lengths[b] for b in which], before=before, after=after, keys=which)
        pooled = pooling.forward(hidden, mask, parameters)
        gradients = pooling.backward(pooled, dy[which])
        return pooled.vectors, [gradients.hidden[i][mask[i]] for i in range(len(which))], gradients.parameters

    alone = [run([b], 0, 0) for b in range(3)]
    for path in available_paths():
        for threads in (1, 3):
            with kernel_path(path), degree(threads):
                for which in ([0, 1, 2], [2, 0, 1], [1, 2, 0], [2]):
                    for before, after in ((0, 0), (0, 4), (4, 0), (1, 3), (508, 0), (0, 508)):
                        vectors, rows, own = run(which, before, after)
                        for i, b in enumerate(which):
                            assert same(vectors[i], alone[b][0][0]) and same(rows[i], alone[b][1][0])
                        for n, value in own.items():  # added in the order of the batch, alone's in the same order
                            total = alone[which[0]][2][n]
                            for b in which[1:]:
                                total = total + alone[b][2][n]
                            assert same(value, total)


def test_rea_01_first_row_under_left_padding():
    """Case rea-01: rows[b,t] = [10b+t,1,2], masks [0,0,1,1] and [1,1,1,1]: t = 2 and t = 0."""
    hidden = np.array([[[10 * b + t, 1, 2] for t in range(4)] for b in range(2)], F32)
    mask = np.array([[0, 0, 1, 1], [1, 1, 1, 1]], bool)
    got = readout.pool(hidden, mask, "first")
    assert got.tolist() == [[2, 1, 2], [10, 1, 2]]
    assert same(got[:1], readout.pool(hidden[:1, 2:], np.ones((1, 2), bool), "first"))
    assert same(got[1:], readout.pool(hidden[1:], mask[1:], "first"))


def test_rea_04_prompt_left_out_under_left_padding():
    """Case rea-04: two prompt rows behind two padding rows: the mean of rows 4 and 5 is 4.5, as with right padding."""
    means = []
    for attention in ([0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]):
        first = attention.index(1)
        hidden = np.arange(6, dtype=F32).reshape(1, 6, 1) + F32(2 - first)
        table = readout.row_table(attention, [0] * 6, policy=readout.prompt_policy(attention, 2))
        means.append(readout.pool(hidden, table.content[None], "mean"))
    assert means[0].tolist() == [[4.5]] and same(*means)


def test_zero_rows_are_refused_unless_the_policy_says_what_they_are():
    hidden, mask = np.arange(12, dtype=F32).reshape(2, 3, 2), np.array([[1, 1, 0], [0, 0, 0]], bool)
    special = np.array([[1, 0, 0], [1, 0, 0]], bool)
    dy = np.ones((2, 2), F32)
    for mode in PLAIN:
        with pytest.raises(readout.ReadoutError, match=r"rows.selected = .'examples': \[1\].*at least one row"):
            readout.pool(hidden, mask, mode)
    zero = readout.Pooling("mean", readout.EmptyRows("zero"))
    pooled = zero.forward(hidden, mask)
    assert pooled.vectors.tolist() == [[1, 2], [0, 0]] and not zero.backward(pooled, dy).hidden[1].any()
    learned = readout.Pooling("mean", readout.EmptyRows("learned"))
    assert learned.parameter_shapes(2) == {"empty.vector": (2,)}
    pooled = learned.forward(hidden, mask, {"empty.vector": np.array([7, 8], F32)})
    assert pooled.vectors.tolist() == [[1, 2], [7, 8]]
    assert learned.backward(pooled, dy * F32(3)).parameters["empty.vector"].tolist() == [3, 3]
    fallback = readout.Pooling("mean", readout.EmptyRows("special_row"))
    pooled = fallback.forward(hidden, mask, special=special)
    assert pooled.vectors.tolist() == [[1, 2], [6, 7]]  # the second example's special row, the first one's content
    assert fallback.backward(pooled, dy).hidden[1].tolist() == [[1, 1], [0, 0], [0, 0]]
    with pytest.raises(readout.ReadoutError, match="special = None"):
        fallback.forward(hidden, mask)
    with pytest.raises(readout.ReadoutError, match="rows.selected"):  # no special row either
        fallback.forward(hidden, mask, special=np.zeros_like(special))
    with pytest.raises(readout.ReadoutError, match="readout.empty = 'clamp'"):
        readout.EmptyRows("clamp")
    with pytest.raises(readout.ReadoutError, match=r"parameters.empty.vector = None"):
        learned.forward(hidden, mask)


def test_a_mask_that_selects_padding_is_refused():
    hidden, mask = np.ones((1, 3, 2), F32), np.array([[1, 1, 1]], bool)
    with pytest.raises(readout.ReadoutError, match="padding"):
        readout.Pooling("mean").forward(hidden, mask, attention=np.array([[1, 1, 0]], bool))


def bfloat16(values):
    """uint16 bits of float32 values that are bfloat16 numbers."""
    return (np.asarray(values, F32).view(np.uint32) >> 16).astype(np.uint16)


def test_half_precision_is_widened_before_the_sum():
    """2048 + 1 + ... in float16 would stay at 2048; the output format is a decision of its own."""
    hidden = np.ones((1, 4097, 1), np.float16)
    hidden[0, 0] = 2048
    mask = np.ones((1, 4097), bool)
    got = readout.pool(hidden, mask, "mean")
    assert got.dtype == F32 and got[0, 0] == F32(2048 + 4096) / F32(4097)
    rounded = readout.Pooling("mean", output_dtype="float16").forward(hidden, mask).vectors
    assert rounded.dtype == np.float16 and rounded[0, 0] == np.float16(got[0, 0])
    wide = np.ones((1, 300, 1), F32)
    wide[0, 0] = 256
    bits = readout.Pooling("mean").forward(bfloat16(wide), mask[:, :300], dtype="bfloat16").vectors
    assert bits[0, 0] == F32(256 + 299) / F32(300)
    pooling = readout.Pooling("mean", output_dtype="bfloat16")
    out = pooling.forward(bfloat16(wide), mask[:, :300], dtype="bfloat16")
    assert out.vectors.dtype == np.uint16 and out.vectors[0, 0] == bfloat16(1.8515625)
    assert pooling.backward(out, np.ones((1, 1), F32)).hidden.dtype == F32


def test_formats_round_to_nearest_even():
    values = np.array([1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, -0.0, np.inf, np.nan, 3.4e38, 2**-149], F32)
    assert readout.widen(readout.narrow(values, "bfloat16"), dtype="bfloat16")[:5].tolist() == [
        1, 1 + 2**-6, 1 + 2**-7, -0.0, np.inf]
    assert readout.narrow(values, "bfloat16")[5:].tolist() == [0x7FC0, 0x7F80, 0]
    assert readout.narrow(np.array([1 + 2**-11, 1 + 3 * 2**-11, 1e6, 2**-25], F32), "float16").tolist() == [
        1, 1 + 2**-9, np.inf, 0]


@pytest.mark.parametrize("arguments, field", [
    ((np.ones((2, 3), F32), np.ones((2, 3), bool)), "hidden.shape"),
    ((np.ones((2, 3, 4)), np.ones((2, 3), bool)), "hidden.dtype"),
    ((np.ones((2, 3, 4), np.uint16), np.ones((2, 3), bool)), "hidden.dtype"),
    ((np.ones((2, 3, 4), F32), np.ones((3, 2), bool)), "mask.shape"),
    ((np.ones((2, 3, 4), F32), np.ones((2, 3), np.uint8)), "mask.dtype"),
    ((np.ones((2, 3, 4), F32), np.ones((2, 3), bool), {"x": 1}), "parameters.x")])
def test_wrong_arguments_are_named(arguments, field):
    with pytest.raises(readout.ReadoutError) as caught:
        readout.Pooling("mean").forward(*arguments)
    assert caught.value.field == field
    with pytest.raises(readout.ReadoutError, match="readout.modes = 'cls'"):
        readout.Pooling("cls")
    with pytest.raises(readout.ReadoutError, match="output_dtype = 'float64'"):
        readout.Pooling("mean", output_dtype="float64")


def test_vectors_that_are_not_finite_are_refused():
    hidden, mask = np.ones((3, 2, 2), F32), np.array([[1, 1], [1, 0], [1, 1]], bool)
    hidden[1, 1], hidden[2, 0, 1] = np.nan, np.inf  # the NaN is not selected, the infinity is
    with pytest.raises(readout.ReadoutError, match=r"vectors = .'examples': \[2\]"):
        readout.pool(hidden, mask, "mean")
    assert readout.pool(hidden[:2], mask[:2], "max").tolist() == [[1, 1], [1, 1]]


def test_an_empty_batch():
    for name, (mode, parameters) in modes().items():
        pooling = readout.Pooling((mode,))
        pooled = pooling.forward(np.zeros((0, 3, 6), F32), np.zeros((0, 3), bool), parameters)
        assert pooled.vectors.shape == (0, pooling.width(6)), name
        gradients = pooling.backward(pooled, pooled.vectors)
        assert gradients.hidden.shape == (0, 3, 6) and not any(g.any() for g in gradients.parameters.values())


def test_packed_examples_pool_by_their_own_masks():
    """Several examples in one physical row of the batch: each is read by its own mask."""
    rng = np.random.default_rng(8)
    packed, owner = rng.standard_normal((1, 9, 4)).astype(F32), np.array([0, 0, 0, 1, 1, 2, 2, 2, 2])
    masks = owner[None] == np.arange(3)[:, None]
    for mode in PLAIN:
        got = readout.pool(np.repeat(packed, 3, 0), masks, mode)
        for k in range(3):
            rows = np.ascontiguousarray(packed[:, owner == k])
            assert same(got[k:k + 1], readout.pool(rows, np.ones(rows.shape[:2], bool), mode))
