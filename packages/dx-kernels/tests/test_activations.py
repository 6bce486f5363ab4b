import dx_kernels as k
import numpy as np
import pytest
from conftest import same_bits, torch
from dx_kernels.ref import activations as ref

f32, f64 = np.float32, np.float64
SIZES = [0, 1, 3, 16, 17, 1000, 70001]
EDGES = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30, -1e-30, 1e-45, -1e-45, 1e30, -1e30, 3.4e38, -3.4e38,
                  10, -10, 15, -15, 14.2, -14.2, -14.5, -0.7517916], f32)


def values(rng, n):
    x = (rng.standard_normal(n) * 4).astype(f32)
    x[:min(n, len(EDGES))] = EDGES[:n]
    return x


def call(function, *inputs):
    """function(*inputs, out) with its output."""
    out = np.empty_like(inputs[0])
    function(*inputs, out)
    return out


def gelu_tanh(x):
    y, t = np.empty_like(x), np.empty_like(x)
    k.gelu_tanh_forward(x, y, t)
    return y, t


@pytest.mark.parametrize("n", SIZES)
def test_bits_equal_reference(path, rng, n):
    x, dy = values(rng, n), rng.standard_normal(n).astype(f32)
    for degree in (1, 2, 3):
        with k.degree(degree):
            assert same_bits(call(k.relu_forward, x), ref.relu_forward(x))
            assert same_bits(call(k.relu_backward, dy, x), ref.relu_backward(dy, x))
            assert same_bits(call(k.relu_backward, dy, ref.relu_forward(x)), ref.relu_backward(dy, x))
            y = call(k.tanh_forward, x)
            assert same_bits(y, ref.tanh_forward(x))
            assert same_bits(call(k.tanh_backward, dy, y), ref.tanh_backward(dy, y))
            y = call(k.sigmoid_forward, x)
            assert same_bits(y, ref.sigmoid_forward(x))
            assert same_bits(call(k.sigmoid_backward, dy, y), ref.sigmoid_backward(dy, y))
            y, t = gelu_tanh(x)
            want_y, want_t = ref.gelu_tanh_forward(x)
            assert same_bits(t, want_t) and same_bits(y, want_y)
            assert same_bits(call(k.gelu_tanh_forward, x), y)
            dx = np.empty_like(x)
            k.gelu_tanh_backward(dy, x, t, dx)
            assert same_bits(dx, ref.gelu_tanh_backward(dy, x, t))
            assert same_bits(call(k.gelu_erf_forward, x), ref.gelu_erf_forward(x))
            assert same_bits(call(k.gelu_erf_backward, dy, x), ref.gelu_erf_backward(dy, x))


def test_degree_does_not_show(path, rng):
    """Enough elements that the cheapest kernel is split."""
    x = values(rng, 300001)
    for degree in (2, 3):
        with k.degree(degree):
            assert same_bits(call(k.relu_forward, x), ref.relu_forward(x))
            assert same_bits(call(k.relu_backward, x, x), ref.relu_backward(x, x))
            assert same_bits(call(k.tanh_backward, x, x), ref.tanh_backward(x, x))


def ulps(got, exact):
    """Error of float32 numbers in units of the last place of the exact values."""
    spacing = np.spacing(np.maximum(np.abs(exact), 2.0**-126).astype(f32)).astype(f64)
    return np.abs(got.astype(f64) - exact) / spacing


def erf_form(x):
    """x P(x) and its derivative in float64 (torch's erfc: 1 ulp)."""
    v = torch.tensor(x.astype(f64))
    p = 0.5 * torch.special.erfc(-v / np.sqrt(2.0))
    return (v * p).numpy(), (p + v * torch.exp(-0.5 * v * v) / np.sqrt(2 * np.pi)).numpy()


def tanh_form(x):
    """The tanh formula with the kernel's constants and its derivative, in float64."""
    v, c0, c1 = x.astype(f64), f64(ref.GELU_C0), f64(ref.GELU_C1)
    t = np.tanh(c0 * (v + c1 * v**3))
    return 0.5 * v * (1 + t), 0.5 * (1 + t) + 0.5 * v * (1 - t * t) * c0 * (1 + 3 * c1 * v * v)


def test_gelu_of_the_two_forms():
    """Case ker-10: two names, no alias, each true to its own formula, forward and backward."""
    assert not hasattr(k, "gelu") and not hasattr(k, "gelu_forward")
    x = np.concatenate([np.linspace(-3, 3, 100), [10, -10, 0.0, -0.0, 1e-30]]).astype(f32)
    ones = np.ones_like(x)
    want, slope = erf_form(x)
    assert ulps(call(k.gelu_erf_forward, x), want).max() <= 0.51
    assert ulps(call(k.gelu_erf_backward, ones, x), slope).max() <= 1
    want, slope = tanh_form(x)
    y, t = gelu_tanh(x)
    dx = np.empty_like(x)
    k.gelu_tanh_backward(ones, x, t, dx)
    near = x >= 0  # below zero 1 + t cancels: there the error is that of 1 + t, not of the small result
    assert ulps(y[near], want[near]).max() <= 2
    assert (np.abs(y - want) <= 2.0**-23 * np.abs(x)).all()
    assert (np.abs(dx - slope) <= 2 * np.spacing(f32(1))).all()
    nan = np.array([np.nan], f32)
    assert np.isnan(call(k.gelu_erf_forward, nan)) and np.isnan(call(k.gelu_tanh_forward, nan))


def test_gelu_erf_of_round_numbers():
    """Case ker-13."""
    x = np.array([-5, -2, -1, 0, 1, 2, 5], f32)
    y = call(k.gelu_erf_forward, x)
    assert np.allclose(y, [-1.433e-06, -0.0455003, -0.158655, 0, 0.841345, 1.9545, 4.999999], rtol=2e-4, atol=0)
    assert same_bits(y, erf_form(x)[0].astype(f32))


def sweep(step, start=0, stop=0x41800000):
    """Every step-th |x| <= 16 (its encoding from start to stop), with both signs."""
    bits = np.arange(start, stop, step, dtype=np.uint32)
    return np.concatenate([bits, bits | np.uint32(0x80000000)]).view(f32)


def check_gelu_erf(x):
    y, slope = erf_form(x)
    assert ulps(call(k.gelu_erf_forward, x), y).max() <= 0.51
    got = call(k.gelu_erf_backward, np.ones_like(x), x)
    assert np.abs(got - slope).max() <= 1.001 * 2.0**-24  # half a unit of its largest values, 1 to 1.13
    far = np.abs(x + 0.7517916) > 0.1  # around its zero the slope's error is absolute
    assert ulps(got[far], slope[far]).max() <= 0.51


def test_accuracy_of_gelu_erf():
    check_gelu_erf(sweep(4099))


@pytest.mark.exhaustive
def test_accuracy_of_gelu_erf_for_every_input():
    for start in range(0, 0x41800000, 1 << 22):
        check_gelu_erf(sweep(1, start, min(start + (1 << 22), 0x41800000)))


@pytest.mark.parametrize("name, low, high", [("tanh", -4, 4), ("sigmoid", -6, 6), ("gelu_tanh", -4, 4),
                                             ("gelu_erf", -4, 4), ("relu", 0.1, 3)])
def test_gradients_are_difference_quotients(name, low, high):
    x, h = np.linspace(low, high, 41), 2.0**-8
    function = {"tanh": np.tanh, "sigmoid": lambda v: 1 / (1 + np.exp(-v)), "relu": lambda v: np.maximum(v, 0),
                "gelu_tanh": lambda v: tanh_form(v)[0], "gelu_erf": lambda v: erf_form(v)[0]}[name]
    want = (8 * (function(x + h) - function(x - h)) - (function(x + 2 * h) - function(x - 2 * h))) / (12 * h)
    x32, dy = x.astype(f32), np.full(41, 2, f32)
    y, t = call(getattr(k, name + "_forward"), x32), gelu_tanh(x32)[1]
    inputs = {"tanh": (dy, y), "sigmoid": (dy, y), "gelu_tanh": (dy, x32, t)}.get(name, (dy, x32))
    assert np.abs(call(getattr(k, name + "_backward"), *inputs) - 2 * want).max() < 2e-6


def test_edges(path):
    x = np.array([np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30], f32)
    ones = np.ones_like(x)
    assert same_bits(call(k.relu_forward, x), np.array([np.inf, 0, 0, 0, 1e30, 0], f32))
    assert same_bits(call(k.gelu_erf_forward, x), np.array([np.inf, -0.0, 0.0, -0.0, 1e30, -0.0], f32))
    y, t = gelu_tanh(x)
    assert same_bits(y, np.array([np.inf, np.nan, 0.0, -0.0, 1e30, -0.0], f32))
    dx = np.empty_like(x)
    k.gelu_tanh_backward(ones, x, t, dx)
    assert same_bits(dx, np.array([1, 0, 0.5, 0.5, 1, 0], f32))
    assert (np.abs(call(k.gelu_erf_backward, ones, x) - dx) == 0).all()
    assert same_bits(call(k.relu_backward, np.array([np.inf, np.nan, 1], f32), np.array([-1, 0, np.nan], f32)),
                     np.array([0, 0, 1], f32))


def test_in_place_and_read_only(rng):
    x = values(rng, 999)
    x.setflags(write=False)
    for forward in (k.relu_forward, k.tanh_forward, k.sigmoid_forward, k.gelu_tanh_forward, k.gelu_erf_forward):
        y = x.copy()
        forward(y, y)
        assert same_bits(y, call(forward, x))


def test_wrong_shapes_are_named():
    x, short = np.zeros(4, f32), np.zeros(3, f32)
    for function, arguments, name in (
            (k.relu_forward, (x, short), "y"), (k.sigmoid_backward, (x, x, short), "dx"),
            (k.gelu_tanh_forward, (x, x.copy(), short), "t"),
            (k.gelu_tanh_backward, (x, x, short, x), "t"), (k.gelu_erf_backward, (x, short, x), "x")):
        with pytest.raises(ValueError, match=rf"{name} has shape \(3,\): expected \(4,\)"):
            function(*arguments)
    with pytest.raises((TypeError, ValueError)):
        k.relu_forward(None, x)
