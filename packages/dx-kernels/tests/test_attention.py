import dx_kernels as k
import numpy as np
import pytest
from conftest import same_bits
from dx_kernels.ref import attention as ref_attention

F = np.float32
SIZES = [(1, 1, 1), (2, 2, 5), (3, 15, 8), (1, 16, 16), (2, 17, 20), (2, 33, 32), (3, 100, 32), (1, 70, 64)]


def self_attention(qkv, heads, **settings):
    n, d = len(qkv), qkv.shape[1] // (3 * heads)
    out, probs = np.full((n, heads * d), 7, F), np.full((heads, n, n), 7, F)
    k.attention_forward(qkv, out, heads=heads, probs=probs, **settings)
    return out, probs


def split(qkv):
    return [x.copy() for x in np.split(qkv, 3, axis=1)]


def settings_of(rng, heads, n):
    bias = rng.standard_normal((heads, n, n)).astype(F)
    keys, pairs = (rng.random((1, n)) < 0.7).astype(np.uint8), (rng.random((n, n)) < 0.6).astype(np.uint8) * 9
    return [{}, {"bias": bias}, {"causal": True}, {"bias": bias, "mask": keys}, {"mask": pairs, "causal": True},
            {"bias": bias, "mask": keys, "causal": True}]


@pytest.mark.parametrize("heads, n, d", SIZES)
def test_bits_equal_reference(path, rng, heads, n, d):
    qkv = (rng.standard_normal((n, 3 * heads * d)) * 2).astype(F)
    dout = rng.standard_normal((n, heads * d)).astype(F)
    for settings in settings_of(rng, heads, n):
        want, want_probs = ref_attention.attention_forward(*split(qkv), heads, **settings)
        *want_d, want_dbias = ref_attention.attention_backward(dout, *split(qkv), want_probs)
        for degree in (1, 2, 3):
            with k.degree(degree):
                out, probs = self_attention(qkv, heads, **settings)
                assert same_bits(out, want) and same_bits(probs, want_probs)
                alone = np.empty_like(out)
                k.attention_forward(qkv, alone, heads=heads, **settings)
                assert same_bits(alone, want)
                dqkv, dbias = np.full_like(qkv, 7), np.full_like(probs, 7)
                k.attention_backward(dout, qkv, probs, dqkv, dbias, heads=heads)
                assert same_bits(dqkv, np.concatenate(want_d, axis=1)) and same_bits(dbias, want_dbias)


@pytest.mark.parametrize("heads, nq, nk, d", [(1, 1, 40, 16), (2, 40, 1, 7), (3, 19, 70, 32), (2, 70, 19, 48)])
def test_cross_attention_bits(path, rng, heads, nq, nk, d):
    q, dout = rng.standard_normal((2, nq, heads * d)).astype(F)
    keys, values = rng.standard_normal((2, nk, heads * d)).astype(F)
    bias = rng.standard_normal((heads, nq, nk)).astype(F)
    mask = (rng.random((nq, nk)) < 0.7).astype(np.uint8)
    want, want_probs = ref_attention.attention_forward(q, keys, values, heads, bias, mask)
    want_back = ref_attention.attention_backward(dout, q, keys, values, want_probs)
    for degree in (1, 2, 3):
        with k.degree(degree):
            out, probs = np.empty_like(q), np.empty_like(bias)
            k.cross_attention_forward(q, keys, values, out, heads=heads, bias=bias, mask=mask, probs=probs)
            assert same_bits(out, want) and same_bits(probs, want_probs)
            got = [np.empty_like(x) for x in (q, keys, values, bias)]
            k.cross_attention_backward(dout, q, keys, values, probs, *got, heads=heads)
            assert all(same_bits(g, e) for g, e in zip(got, want_back))


@pytest.mark.parametrize("n", [33, 257])
def test_fused_equals_separate_operations(path, rng, n):
    """Every number of the fused pass is dot16, softmax_forward, dot16."""
    heads, d = 2, 32
    qkv = rng.standard_normal((n, 3 * heads * d)).astype(F)
    bias = rng.standard_normal((heads, n, n)).astype(F)
    out, probs = self_attention(qkv, heads, bias=bias)
    q, keys, values = split(qkv)
    for h in range(heads):
        rows = slice(0, n, 13)
        raw = ref_attention.product(ref_attention.head(q, h, heads)[rows], ref_attention.head(keys, h, heads))
        p = np.empty_like(raw)
        k.softmax_forward(raw, p, scale=float(np.sqrt(F(d))), bias=bias[h, rows].copy())
        assert same_bits(probs[h, rows], p)
        assert same_bits(ref_attention.head(out, h, heads)[rows],
                         ref_attention.product(p, ref_attention.head(values, h, heads).T))


def test_every_degree_on_a_large_page(path, rng):
    heads, n, d = 5, 150, 32
    qkv, dout = rng.standard_normal((n, 3 * heads * d)).astype(F), rng.standard_normal((n, heads * d)).astype(F)
    bias = rng.standard_normal((heads, n, n)).astype(F)
    results = []
    for degree in (1, 2, 3, 4, 7):
        with k.degree(degree):
            out, probs = self_attention(qkv, heads, bias=bias)
            dqkv, dbias = np.empty_like(qkv), np.empty_like(probs)
            k.attention_backward(dout, qkv, probs, dqkv, dbias, heads=heads)
            results.append((out, probs, dqkv, dbias))
    assert all(same_bits(x, y) for result in results for x, y in zip(result, results[0]))


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_against_torch_float64(path, rng, causal):
    torch = pytest.importorskip("torch")
    heads, n, d = 3, 37, 16
    qkv, dout = rng.standard_normal((n, 3 * heads * d)).astype(F), rng.standard_normal((n, heads * d)).astype(F)
    bias = rng.standard_normal((heads, n, n)).astype(F)
    keys = rng.random(n) < 0.8
    keys[0] = True
    out, probs = self_attention(qkv, heads, bias=bias, mask=keys[None].astype(np.uint8), causal=causal)
    dqkv, dbias = np.empty_like(qkv), np.empty_like(bias)
    k.attention_backward(dout, qkv, probs, dqkv, dbias, heads=heads)

    x = torch.tensor(qkv, dtype=torch.float64, requires_grad=True)
    b = torch.tensor(bias, dtype=torch.float64, requires_grad=True)
    q, key, v = (t.reshape(n, heads, d).transpose(0, 1) for t in x.split(heads * d, dim=1))
    allowed = torch.tensor(keys)[None].expand(n, n)
    allowed = allowed.tril() if causal else allowed
    score = (q @ key.transpose(1, 2) / d**0.5 + b).masked_fill(~allowed, -torch.inf)
    y = (score.softmax(-1) @ v).transpose(0, 1).reshape(n, heads * d)
    (y * torch.tensor(dout, dtype=torch.float64)).sum().backward()
    assert np.abs(out - y.detach().numpy()).max() < 3e-6
    assert np.abs(dqkv - x.grad.numpy()).max() < 1e-5
    assert np.abs(dbias - b.grad.numpy()).max() < 1e-5


def test_nothing_to_attend_to(path, rng):
    """Case num-16: a key mask that hides key 0, and causal: query 0 has no key left. Output and gradients are 0."""
    heads, n, d = 2, 4, 8
    qkv, dout = rng.standard_normal((n, 3 * heads * d)).astype(F), rng.standard_normal((n, heads * d)).astype(F)
    out, probs = self_attention(qkv, heads, mask=np.array([[0, 1, 1, 1]], np.uint8), causal=True)
    assert (out[0] == 0).all() and (probs[:, 0] == 0).all() and np.isfinite(out).all() and (out[1:] != 0).all()
    dqkv, dbias = np.empty_like(qkv), np.empty_like(probs)
    k.attention_backward(dout, qkv, probs, dqkv, dbias, heads=heads)
    assert np.isfinite(dqkv).all() and (dbias[:, 0] == 0).all() and (dqkv[0] == 0).all()


def test_one_query_with_nothing_admitted(path):
    """Case num-17: 4 x 4 mask, all admitted but row 1; forward alone and with saved probabilities."""
    qkv = np.concatenate([np.eye(4, 2)] * 3, axis=1).astype(F)
    mask = np.ones((4, 4), np.uint8)
    mask[1] = 0
    out, probs = self_attention(qkv, 1, mask=mask)
    alone = np.empty_like(out)
    k.attention_forward(qkv, alone, heads=1, mask=mask)
    assert (out[1] == 0).all() and same_bits(out, alone) and (out[[0, 2, 3]] > 0).all()
    assert np.abs(probs[0, [0, 2, 3]].sum(axis=1) - 1).max() < 1e-6


def test_huge_magnitudes(path, rng):
    """Scores of 1e30 select one key; scores that overflow give NaN in their own rows only."""
    n, d = 20, 16
    qkv = rng.standard_normal((n, 3 * d)).astype(F)
    qkv[:, :2 * d] *= F(1e15)
    out, probs = self_attention(qkv, 1)
    assert ((probs == 0) | (probs == 1)).all()
    assert same_bits(out, qkv[probs[0].argmax(axis=1), 2 * d:])
    qkv[3, :d] = F(1e30)
    out, _ = self_attention(qkv, 1)
    want, _ = ref_attention.attention_forward(*split(qkv), 1)
    assert same_bits(out, want) and np.isnan(out[3]).all() and np.isfinite(np.delete(out, 3, axis=0)).all()


def test_read_only_empty_and_repeated(rng):
    qkv = rng.standard_normal((9, 3 * 8)).astype(F)
    first, _ = self_attention(qkv, 2)
    qkv.flags.writeable = False
    assert same_bits(self_attention(qkv, 2)[0], first)
    empty = np.zeros((0, 24), F)
    out, probs = self_attention(empty, 2)
    k.attention_backward(out, empty, probs, empty.copy(), heads=2)
    q, none, out = np.ones((3, 8), F), np.zeros((0, 8), F), np.full((3, 8), 7, F)
    k.cross_attention_forward(q, none, none, out, heads=2)
    assert (out == 0).all()
    dq, probs = np.full((3, 8), 7, F), np.zeros((2, 3, 0), F)
    k.cross_attention_backward(out, q, none, none, probs, dq, none.copy(), none.copy(), heads=2)
    assert (dq == 0).all()
    dk, dv = np.full((2, 3, 8), 7, F)
    k.cross_attention_backward(none, none, q, q, np.zeros((2, 0, 3), F), none.copy(), dk, dv, heads=2)
    assert (dk == 0).all() and (dv == 0).all()


@pytest.mark.parametrize("settings, message", [
    ({"heads": 0}, "heads = 0: expected at least 1"),
    ({"heads": (2**64 + 2) // 3}, "qkv has 24 columns: expected a positive multiple of"),  # 3 * heads overflows to 2
    ({"heads": 5}, r"qkv has 24 columns: expected a positive multiple of 15 \(3 x 5 heads\)"),
    ({"heads": 2, "bias": np.zeros((2, 4, 5), F)}, r"bias has shape \(2, 4, 5\): expected \(2, 4, 4\)"),
    ({"heads": 2, "mask": np.zeros((2, 4), np.uint8)}, r"mask has shape \(2, 4\): expected \(4, 4\) or \(1, 4\)"),
    ({"heads": 2, "probs": np.zeros((1, 4, 4), F)}, r"probs has shape \(1, 4, 4\): expected \(2, 4, 4\)"),
])
def test_wrong_arguments_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        k.attention_forward(np.zeros((4, 24), F), np.zeros((4, 8), F), **settings)


def test_wrong_shapes_backward():
    qkv, dout, probs = np.zeros((4, 24), F), np.zeros((4, 8), F), np.zeros((2, 4, 4), F)
    with pytest.raises(ValueError, match=r"dqkv has shape \(4, 8\): expected \(4, 24\)"):
        k.attention_backward(dout, qkv, probs, dout.copy(), heads=2)
    with pytest.raises(ValueError, match=r"k has shape \(4, 6\): expected \(4, 8\)"):
        k.cross_attention_forward(dout, np.zeros((4, 6), F), dout, dout.copy(), heads=2)
