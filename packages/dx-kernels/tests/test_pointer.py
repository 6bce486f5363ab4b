import dx_kernels as k
import numpy as np
import pytest
from conftest import same_bits
from dx_kernels.ref import pointer as ref_pointer

F = np.float32


@pytest.mark.parametrize("parts, nq, nk, d", [(1, 1, 1, 1), (2, 2, 15, 5), (2, 16, 17, 16), (2, 33, 33, 24),
                                              (1, 100, 100, 32), (3, 150, 90, 40)])
def test_bits_equal_reference(path, rng, parts, nq, nk, d):
    q, key = rng.standard_normal((nq, parts * d)).astype(F), rng.standard_normal((nk, parts * d)).astype(F)
    bias, dscores = rng.standard_normal((2, parts, nq, nk)).astype(F)
    mask = (rng.random((nq, nk)) < 0.7).astype(np.uint8)
    cases = [{}, {"bias": bias}, {"bias": bias, "mask": mask}, {"mask": mask[:1].copy()}]
    cases += [{"mask": mask, "causal": True}] if nq == nk else []
    want_back = ref_pointer.pointer_backward(dscores, q, key)
    for degree in (1, 2, 3):
        with k.degree(degree):
            for settings in cases:
                scores = np.full_like(bias, 7)
                k.pointer_forward(q, key, scores, parts=parts, **settings)
                assert same_bits(scores, ref_pointer.pointer_forward(q, key, parts, **settings))
            dq, dk = np.full_like(q, 7), np.full_like(key, 7)
            k.pointer_backward(dscores, q, key, dq, dk, parts=parts)
            assert same_bits(dq, want_back[0]) and same_bits(dk, want_back[1])


def test_gradients_against_torch_float64(path, rng):
    torch = pytest.importorskip("torch")
    n, d = 41, 24
    q, key = rng.standard_normal((2, n, 2 * d)).astype(F)
    dscores = rng.standard_normal((2, n, n)).astype(F)
    dq, dk, scores = np.empty_like(q), np.empty_like(key), np.empty_like(dscores)
    k.pointer_forward(q, key, scores, parts=2)
    k.pointer_backward(dscores, q, key, dq, dk, parts=2)
    a, b = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (q, key))
    s = torch.stack([a[:, p * d:(p + 1) * d] @ b[:, p * d:(p + 1) * d].T / d**0.5 for p in range(2)])
    (s * torch.tensor(dscores, dtype=torch.float64)).sum().backward()
    assert np.abs(scores - s.detach().numpy()).max() < 1e-5
    assert np.abs(dq - a.grad.numpy()).max() < 1e-5 and np.abs(dk - b.grad.numpy()).max() < 1e-5


def test_columns_that_are_not_admitted(path, rng):
    """They hold -inf, and with a loss's zero there, whatever the row of k is, it gets a zero gradient."""
    q, key = rng.standard_normal((2, 6, 8)).astype(F)
    scores = np.empty((1, 6, 6), F)
    mask = np.array([[1, 0, 1, 1, 0, 1]], np.uint8)
    k.pointer_forward(q, key, scores, mask=mask)
    assert np.isneginf(scores[:, :, [1, 4]]).all() and np.isfinite(scores[:, :, [0, 2, 3, 5]]).all()
    dscores = np.where(np.isinf(scores), F(0), F(1))
    dq, dk = np.empty_like(q), np.empty_like(key)
    k.pointer_backward(dscores, q, key, dq, dk)
    assert (dk[[1, 4]] == 0).all() and (dk[0] != 0).any()


def test_empty(path):
    none, some = np.zeros((0, 8), F), np.ones((3, 8), F)
    k.pointer_forward(none, some, np.zeros((2, 0, 3), F), parts=2)
    dq, dk = none.copy(), np.full((3, 8), 7, F)
    k.pointer_backward(np.zeros((2, 0, 3), F), none, some, dq, dk, parts=2)
    assert (dk == 0).all()


@pytest.mark.parametrize("settings, message", [
    ({"parts": 0}, "parts = 0: expected at least 1"),
    ({"parts": 3}, "q has 8 columns: expected a positive multiple of 3"),
    ({"mask": np.zeros((1, 5), np.uint8)}, r"mask has shape \(1, 5\): expected \(3, 4\) or \(1, 4\)"),
    ({"causal": True}, "causal = True with 3 queries and 4 keys: expected as many keys as queries"),
])
def test_wrong_arguments_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        k.pointer_forward(np.zeros((3, 8), F), np.zeros((4, 8), F), np.zeros((1, 3, 4), F), **settings)
