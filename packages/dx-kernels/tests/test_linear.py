import dx_kernels as k
import numpy as np
import pytest
from conftest import same_bits
from dx_kernels.ref import linear as reference

ACTIVATIONS = [None, "relu", "gelu_tanh", "gelu_erf"]
SHAPES = [(1, 1, 1), (1, 192, 64), (2, 33, 17), (4, 50, 75), (3, 16, 2), (13, 16, 31), (40, 70, 97), (3, 0, 5)]


def forward(x, w, b, activation=None, residual=None, packed=False):
    y, pre = np.full((2, len(x), len(w)), np.nan, np.float32)
    saved = np.full_like(y, np.nan) if activation == "gelu_tanh" else None
    weight = k.PackedMatrix(w, transpose_b=True) if packed else w
    k.linear_forward(x, weight, b, y, activation=activation, residual=residual, pre=pre, saved=saved)
    short = np.full_like(y, np.nan)
    k.linear_forward(x, weight, b, short, activation=activation, residual=residual)
    assert same_bits(short, y)  # saving for backward changes nothing
    return y, pre, saved


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("rows, n_in, n_out", SHAPES)
def test_forward_bits(path, rng, rows, n_in, n_out, activation):
    x, w = rng.standard_normal((rows, n_in), np.float32), rng.standard_normal((n_out, n_in), np.float32)
    b, residual = rng.standard_normal(n_out, np.float32), rng.standard_normal((rows, n_out), np.float32)
    for bias, extra in [(b, residual), (None, residual), (b, None), (None, None)]:
        want = reference.linear_forward(x, w, bias, activation, extra)
        for degree in (1, 2, 3):
            with k.degree(degree):
                for packed in (False, True):
                    for g, e in zip(forward(x, w, bias, activation, extra, packed), want):
                        assert g is e or same_bits(g, e)


@pytest.mark.parametrize("rows, n_in, n_out", SHAPES + [(0, 5, 3), (300, 65, 97), (3, 4, 0)])
def test_backward_bits(path, rng, rows, n_in, n_out):
    x, w = rng.standard_normal((rows, n_in), np.float32), rng.standard_normal((n_out, n_in), np.float32)
    dy = rng.standard_normal((rows, n_out), np.float32)
    want = reference.linear_backward(dy, x, w)
    for degree in (1, 2, 3):
        with k.degree(degree):
            for weight in (w, k.PackedMatrix(w)):
                dx, dw, db = np.full_like(x, np.nan), np.full_like(w, np.nan), np.full(n_out, np.nan, np.float32)
                k.linear_backward(dy, x, weight, dx, dw, db)
                assert same_bits(dx, want[0]) and same_bits(dw, want[1]) and same_bits(db, want[2])
    only = np.empty_like(w)
    k.linear_backward(dy, x, None, None, only)
    assert same_bits(only, want[1])


@pytest.mark.parametrize("rows, n_in, n_out", [(150, 100, 120), (3, 300, 1250)])
def test_large_enough_for_several_threads(rng, rows, n_in, n_out):
    x, w = rng.standard_normal((rows, n_in), np.float32), rng.standard_normal((n_out, n_in), np.float32)
    b, residual = rng.standard_normal(n_out, np.float32), rng.standard_normal((rows, n_out), np.float32)
    for activation in ACTIVATIONS:
        want = reference.linear_forward(x, w, b, activation, residual)
        for degree in (1, 2, 3, 7):
            with k.degree(degree):
                got = forward(x, w, b, activation, residual, packed=degree % 2 == 0)
                assert same_bits(got[0], want[0]) and same_bits(got[1], want[1])


def test_one_row_alone_equals_the_row_in_a_batch(path):
    """Case num-02."""
    j = np.arange(1000)
    x = np.repeat((((37 * j) % 1009) / 1009).astype(np.float32)[None], 2, axis=0)
    o, j = np.ogrid[:1000, :1000]
    w = (((17 * o + 29 * j) % 1013) / 1013).astype(np.float32)
    for weight in (w, k.PackedMatrix(w, transpose_b=True)):
        alone, both = np.empty((1, 1000), np.float32), np.empty((2, 1000), np.float32)
        k.linear_forward(x[:1], weight, None, alone)
        k.linear_forward(x, weight, None, both)
        assert alone[0].tobytes() == both[0].tobytes() == both[1].tobytes()


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_accuracy_and_gradients_against_torch(rng, activation):
    torch = pytest.importorskip("torch")
    x, w = rng.standard_normal((20, 30), np.float32), rng.standard_normal((25, 30), np.float32)
    b, dy = rng.standard_normal(25, np.float32), rng.standard_normal((20, 25), np.float32)
    tx, tw, tb = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (x, w, b))
    u = torch.nn.functional.linear(tx, tw, tb)
    y = {None: lambda v: v, "relu": torch.relu, "gelu_erf": torch.nn.functional.gelu,
         "gelu_tanh": lambda v: torch.nn.functional.gelu(v, approximate="tanh")}[activation](u)
    y.backward(torch.tensor(dy, dtype=torch.float64))
    got, pre, saved = forward(x, w, b, activation)
    assert np.abs(got - y.detach().numpy()).max() < 2e-5
    du = dy.copy()
    if activation == "relu":
        k.relu_backward(dy.ravel(), pre.ravel(), du.ravel())
    elif activation == "gelu_tanh":
        k.gelu_tanh_backward(dy.ravel(), pre.ravel(), saved.ravel(), du.ravel())
    elif activation == "gelu_erf":
        k.gelu_erf_backward(dy.ravel(), pre.ravel(), du.ravel())
    dx, dw, db = np.empty_like(x), np.empty_like(w), np.empty_like(b)
    k.linear_backward(du, x, w, dx, dw, db)
    for ours, theirs in ((dx, tx), (dw, tw), (db, tb)):
        assert np.abs(ours - theirs.grad.numpy()).max() < 5e-5


def test_residual_in_place_and_row_strides(path, rng):
    wide = rng.standard_normal((9, 40), np.float32)
    x, w = wide[:, 5:25], rng.standard_normal((12, 20), np.float32)
    residual = rng.standard_normal((9, 12), np.float32)
    want = reference.linear_forward(x, w, None, "relu", residual)[0]
    y = residual.copy()
    k.linear_forward(x, w, None, y, activation="relu", residual=y)
    assert same_bits(y, want)
    k.linear_forward(x, w, None, wide[:, 26:38], activation="relu", residual=residual)
    assert same_bits(wide[:, 26:38], want)


def test_errors_name_what_is_wrong():
    x, w, y = (np.zeros(s, np.float32) for s in ((4, 5), (3, 5), (4, 3)))
    with pytest.raises(ValueError, match=r"weight has shape \(5, 3\): expected \(3, 5\)"):
        k.linear_forward(x, np.ascontiguousarray(w.T), None, y)
    with pytest.raises(ValueError, match=r"PackedMatrix of shape \(3, 5\): expected \(5, 3\)"):
        k.linear_forward(x, k.PackedMatrix(w), None, y)
    with pytest.raises(ValueError, match="activation = 'gelu'"):
        k.linear_forward(x, w, None, y, activation="gelu")
    with pytest.raises(ValueError, match="saved is given with activation = 'relu'"):
        k.linear_forward(x, w, None, y, activation="relu", saved=y.copy())
    with pytest.raises(ValueError, match=r"bias has shape \(4,\): expected \(3,\)"):
        k.linear_forward(x, w, np.zeros(4, np.float32), y)
    with pytest.raises(ValueError, match="x is None"):
        k.linear_backward(y, None, w, None, w.copy())
    with pytest.raises(ValueError, match="weight is None"):
        k.linear_backward(y, x, None, x.copy())
    with pytest.raises(ValueError, match=r"x has shape \(4, 5\): expected \(2, 5\)"):
        k.linear_backward(np.zeros((2, 3), np.float32), x, None, None, w.copy())
