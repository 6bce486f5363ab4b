import dx_kernels as k
import numpy as np
import pytest
from conftest import same_bits, torch
from dx_kernels.ref import char_conv as ref

f32 = np.float32
# words, length, vocabulary, channels, taps, out
SHAPES = [(0, 4, 5, 3, 3, 2), (1, 1, 2, 1, 1, 1), (5, 7, 11, 4, 3, 5), (37, 12, 30, 16, 5, 33), (3, 300, 9, 5, 2, 4),
          (18, 6, 20, 17, 4, 16), (4, 0, 3, 2, 3, 3), (150, 5, 40, 8, 1, 7)]


def sample(rng, words, length, vocabulary, channels, taps, out):
    """Words of every length, among them empty ones and ones with padding inside."""
    table = rng.standard_normal((vocabulary, channels)).astype(f32)
    ids = rng.integers(1, vocabulary, (words, length)).astype(np.int32)
    ids[np.arange(length) >= rng.integers(0, length + 1, (words, 1))] = 0
    ids[rng.random(ids.shape) < 0.1] = 0
    weight = rng.standard_normal((out, taps, channels)).astype(f32)
    return table, ids, weight, rng.standard_normal(out).astype(f32)


def forward(table, ids, weight, bias):
    y = np.full((len(ids), len(weight)), np.nan, f32)
    argmax = np.full(y.shape, -9, np.int32)
    k.char_conv_forward(table, ids, weight, bias, y, argmax)
    return y, argmax


def backward(dy, y, argmax, table, ids, weight):
    out = np.full_like(table, np.nan), np.full_like(weight, np.nan), np.full(len(weight), np.nan, f32)
    k.char_conv_backward(dy, y, argmax, table, ids, weight, *out)
    return out


@pytest.mark.parametrize("shape", SHAPES)
def test_bits_equal_reference(path, rng, shape):
    table, ids, weight, bias = sample(rng, *shape)
    dy = rng.standard_normal((shape[0], shape[5])).astype(f32)
    want = ref.char_conv_forward(table, ids, weight, bias)
    expected = ref.char_conv_backward(dy, *want, table, ids, weight)
    for degree in (1, 2, 3):
        with k.degree(degree):
            y, argmax = forward(table, ids, weight, bias)
            assert same_bits(y, want[0]) and np.array_equal(argmax, want[1])
            alone = np.empty_like(y)
            k.char_conv_forward(table, ids, weight, None, alone)
            assert same_bits(alone, ref.char_conv_forward(table, ids, weight)[0])
            got = backward(dy, y, argmax, table, ids, weight)
            assert all(same_bits(a, b) for a, b in zip(got, expected, strict=True))
            assert (got[0][0] == 0).all()


@pytest.mark.parametrize("words", [16, 17, 32, 37])
def test_padding_of_the_words_counts(path, rng, words):
    """Products that round to -0: lanes of dweight without a word in the last chunk become +0."""
    table, ids = np.full((3, 4), 1e-30, f32), np.ones((words, 1), np.int32)
    weight, bias = rng.standard_normal((5, 3, 4)).astype(f32), np.ones(5, f32)
    want, dy = ref.char_conv_forward(table, ids, weight, bias), np.full((words, 5), -1e-30, f32)
    expected = ref.char_conv_backward(dy, *want, table, ids, weight)
    assert np.signbit(expected[1][:, 1]).all() == (words % 16 == 0)
    assert all(same_bits(a, b) for a, b in zip(backward(dy, *want, table, ids, weight), expected, strict=True))


def test_a_word_alone_equals_the_word_in_a_batch(path, rng):
    """Case ker-01."""
    table, ids, weight, bias = sample(rng, 60, 9, 20, 6, 3, 10)
    y, argmax = forward(table, ids, weight, bias)
    for w in range(60):
        for width in {9, max(1, np.flatnonzero(ids[w]).max(initial=-1) + 1)}:
            one = forward(table, np.ascontiguousarray(ids[w:w + 1, :width]), weight, bias)
            assert same_bits(one[0], y[w:w + 1]) and np.array_equal(one[1], argmax[w:w + 1])


@pytest.mark.parametrize("taps", [1, 2, 3, 5])
def test_agrees_with_torch_in_float64(rng, taps):
    table, ids, weight, bias = sample(rng, 40, 8, 15, 6, taps, 9)
    ids[:, 0] = 1  # torch has no word without characters
    ids = np.where(np.cumsum(ids == 0, axis=1) > 0, 0, ids).astype(np.int32)
    table[0] = 0
    dy = rng.standard_normal((40, 9)).astype(f32)
    t, w, b = (torch.tensor(a.astype(np.float64), requires_grad=True) for a in (table, weight.transpose(0, 2, 1), bias))
    rows = torch.nn.functional.embedding(torch.tensor(ids.astype(np.int64)), t, padding_idx=0).transpose(1, 2)
    left = (taps - 1) // 2
    z = torch.nn.functional.conv1d(torch.nn.functional.pad(rows, (left, taps - 1 - left)), w, b).relu()
    z = z.masked_fill(torch.tensor(ids == 0)[:, None], -1.0).amax(2)
    y, argmax = forward(table, ids, weight, bias)
    assert np.abs(y - z.detach().numpy()).max() < 1e-5
    dy[y == 0] = 0  # torch shares the gradient among equal maxima; at 0 it is 0 with relu, whoever wins
    (z * torch.tensor(dy.astype(np.float64))).sum().backward()
    dtable, dweight, dbias = backward(dy, y, argmax, table, ids, weight)
    for got, want in ((dtable, t.grad), (dweight, w.grad.permute(0, 2, 1)), (dbias, b.grad)):
        assert np.abs(got - want.numpy()).max() < 1e-4


def test_padding_never_wins_and_the_first_maximum_does(path):
    table = np.array([[9.0], [-1.0], [2.0], [np.nan]], f32)  # row 0 is not read
    weight, bias = np.ones((1, 1, 1), f32), np.full(1, 0.5, f32)
    ids = np.array([[1, 0, 0], [2, 2, 0], [0, 0, 0], [1, 0, 2], [2, 3, 3], [1, 1, 0]], np.int32)
    y, argmax = forward(table, ids, weight, bias)
    assert same_bits(y, np.array([[0], [2.5], [0], [2.5], [np.nan], [0]], f32))
    assert argmax[:, 0].tolist() == [0, 0, -1, 2, 1, 0]
    dtable, dweight, dbias = backward(np.ones_like(y[:4]), y[:4], argmax[:4], table, ids[:4], weight)
    assert same_bits(dtable[:, 0], np.array([0, 0, 2, 0], f32))
    assert dweight[0, 0, 0] == 4 and dbias[0] == 2


def test_weight_layouts(rng):
    weight = rng.standard_normal((3, 5, 2)).astype(f32)
    container, back = np.empty((3, 2, 5), f32), np.empty_like(weight)
    k.char_conv_weight_to_container(weight, container)
    assert same_bits(container, np.ascontiguousarray(weight.transpose(0, 2, 1)))
    k.char_conv_weight_from_container(container, back)
    assert same_bits(back, weight)
    with pytest.raises(ValueError, match=r"container has shape \(3, 5, 2\): expected \(3, 2, 5\)"):
        k.char_conv_weight_to_container(weight, back)


def test_wrong_arguments_are_named():
    table, ids, weight = np.zeros((4, 2), f32), np.zeros((2, 3), np.int32), np.zeros((5, 3, 2), f32)
    y, argmax = np.zeros((2, 5), f32), np.zeros((2, 5), np.int32)
    far, none = ids.copy(), np.zeros((5, 0, 2), f32)
    far[1, 2] = 4
    for call, message in (
            (lambda: k.char_conv_forward(table, far, weight, None, y), r"ids\[1, 2\] = 4: expected an id in 0\.\.3"),
            (lambda: k.char_conv_forward(table, ids, none, None, y), "weight has 0 taps"),
            (lambda: k.char_conv_forward(table, ids, weight[:, :, :1].copy(), None, y), r"weight has shape \(5, 3, 1"),
            (lambda: k.char_conv_forward(table, ids, weight, y[0, :4], y), r"bias has shape \(4,\): expected \(5,\)"),
            (lambda: k.char_conv_forward(table, ids, weight, None, y[:1]), r"y has shape \(1, 5\): expected \(2, 5\)"),
            (lambda: k.char_conv_forward(table, ids, weight, None, y, argmax[:1]), r"argmax has shape \(1, 5\)"),
            (lambda: k.char_conv_backward(y, y, argmax + 3, table, ids, weight), r"argmax\[0, 0\] = 3: expected"),
            (lambda: k.char_conv_backward(y, y, argmax, table, ids, weight), r"argmax\[0, 0\] = 0: expected"),
            (lambda: k.char_conv_backward(y, y[:1], argmax - 1, table, ids, weight), r"y has shape \(1, 5\)")):
        with pytest.raises(ValueError, match=message):
            call()
