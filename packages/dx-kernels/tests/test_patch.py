import dx_kernels as k
import numpy as np
import pytest
from conftest import same_bits, torch
from dx_kernels.ref import patch as ref

f32 = np.float32
# channels, height, width, patch, patches, d: a grid, not square, partial bottom row, unread columns, fewer patches
# than the image has and more, one patch, none, no rows of pixels, long rows and columns
SHAPES = [(1, 4, 4, 2, 4, 3), (2, 4, 6, 2, 6, 5), (1, 3, 4, 2, 4, 3), (1, 5, 4, 2, 6, 4), (1, 4, 5, 2, 4, 3),
          (1, 3, 3, 2, 2, 1), (1, 4, 4, 2, 3, 2), (1, 4, 4, 2, 6, 2), (3, 2, 2, 2, 1, 7), (1, 4, 4, 2, 0, 3),
          (1, 0, 4, 2, 2, 3), (3, 33, 50, 8, 30, 40), (3, 64, 64, 16, 16, 48)]


def made(rng, channels, height, width, patch, patches, d):
    """(image, weight, bias, cls, position, dy)."""
    return [rng.standard_normal(shape, f32) for shape in (
        (channels, height, width), (d, channels, patch, patch), (d,), (d,), (patches + 1, d), (patches + 1, d))]


def backward(dy, image, weight, patch):
    outs = [np.full(shape, np.nan, f32) for shape in (image.shape, weight.shape, weight.shape[:1], weight.shape[:1],
                                                      dy.shape)]
    k.patch_embed_backward(dy, image, weight, *outs, patch=patch)
    return outs


@pytest.mark.parametrize("shape", SHAPES)
def test_bits_equal_reference(path, rng, shape):
    image, weight, bias, cls, position, dy = made(rng, *shape)
    patch, patches = shape[3], shape[4]
    for array in (image, weight, position, dy):
        array.setflags(write=False)
    packed = k.PackedMatrix(weight.reshape(len(weight), -1), transpose_b=True)
    want_rows = ref.patch_rows(image, patches, patch)
    want = ref.patch_embed_forward(image, weight, bias, cls, position)
    want_back = ref.patch_embed_backward(dy, image, weight)
    for degree in (1, 2, 3):
        with k.degree(degree):
            rows = np.full(want_rows.shape, np.nan, f32)
            k.patch_rows(image, rows, patch=patch)
            assert same_bits(rows, want_rows)
            for w in (weight, packed):
                y = np.full(position.shape, np.nan, f32)
                k.patch_embed_forward(image, w, bias, cls, position, y, patch=patch)
                assert same_bits(y, want)
            for got, wanted in zip(backward(dy, image, weight, patch), want_back, strict=True):
                assert same_bits(got, wanted)


@pytest.mark.parametrize("shape", SHAPES)
def test_free_invariants(path, rng, shape):
    """The class token's gradient is row 0 of the position table's, the patch bias's the sum of its other rows."""
    image, weight, _, _, _, dy = made(rng, *shape)
    _, _, dbias, dcls, dposition = backward(dy, image, weight, shape[3])
    assert dcls.tobytes() == dposition[0].tobytes() and dposition.tobytes() == dy.tobytes()
    summed = np.full_like(dbias, np.nan)
    k.linear_backward(dposition[1:], None, None, None, None, summed)
    assert dbias.tobytes() == summed.tobytes()


def test_guarded_reads_by_hand():
    """A 3 x 5 image, patches of 2: two patches across, the last column never read, the bottom row padded, patch 4 and 5
    wholly below the image."""
    image, rows = np.arange(15, dtype=f32).reshape(1, 3, 5) + 1, np.full((6, 4), np.nan, f32)
    k.patch_rows(image, rows, patch=2)
    assert rows.tolist() == [[1, 2, 6, 7], [3, 4, 8, 9], [11, 12, 0, 0], [13, 14, 0, 0], [0] * 4, [0] * 4]
    dimage = np.full((1, 3, 5), np.nan, f32)
    dy = np.vstack([np.full((1, 1), 100, f32), np.arange(1, 7, dtype=f32)[:, None]])
    k.patch_embed_backward(dy, None, np.ones((1, 1, 2, 2), f32), dimage, patch=2)
    assert dimage[0].tolist() == [[1, 1, 2, 2, 0], [1, 1, 2, 2, 0], [3, 3, 4, 4, 0]]


def test_class_row_has_no_patch_gradient(rng):
    image, weight, _, _, _, dy = made(rng, 2, 4, 4, 2, 4, 3)
    dy[1:] = 0
    dimage, dweight, dbias, dcls, _ = backward(dy, image, weight, 2)
    assert not dimage.any() and not dweight.any() and not dbias.any() and same_bits(dcls, dy[0])


def test_gradients_against_torch(rng):
    """Every gradient against float64 autograd of an ordinary strided convolution."""
    image, weight, bias, cls, position, dy = made(rng, 3, 12, 8, 4, 6, 10)
    t = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in (image, weight, bias, cls, position)]
    tokens = torch.nn.functional.conv2d(t[0][None], t[1], t[2], stride=4)[0].flatten(1).T
    y = torch.cat([t[3][None], tokens]) + t[4]
    y.backward(torch.tensor(dy, dtype=torch.float64))
    got = np.empty_like(position)
    k.patch_embed_forward(image, weight, bias, cls, position, got, patch=4)
    assert np.abs(got - y.detach().numpy()).max() < 1e-5
    for ours, theirs in zip(backward(dy, image, weight, 4), t, strict=True):
        assert np.abs(ours - theirs.grad.numpy()).max() < 1e-5


def test_directional_derivative_in_binary64(rng):
    """Central differences of the same formulas in binary64, on a shape with padding and unread columns."""
    shapes = made(rng, 2, 5, 7, 3, 5, 4)
    *inputs, dy = [a.astype(np.float64) for a in shapes]

    def loss(image, weight, bias, cls, position):
        across, total = image.shape[2] // 3, float(dy[0] @ (cls + position[0]))
        for p in range(len(dy) - 1):
            top, left = p // across * 3, p % across * 3
            for kh in range(min(3, max(0, image.shape[1] - top))):
                total += float(dy[p + 1] @ np.einsum("dcx,cx->d", weight[:, :, kh], image[:, top + kh, left:left + 3]))
            total += float(dy[p + 1] @ (bias + position[p + 1]))
        return total

    for at, gradient in enumerate(backward(shapes[-1], shapes[0], shapes[1], 3)):
        way, h = rng.standard_normal(inputs[at].shape), 1e-3
        moved = [[x + s * h * way if i == at else x for i, x in enumerate(inputs)] for s in (1, -1)]
        slope = (loss(*moved[0]) - loss(*moved[1])) / (2 * h)  # the loss is linear in each: no error of its own
        assert abs(slope - (gradient * way).sum()) < 1e-4


def test_nan_inf_and_huge_pass(path):
    image = np.array([[[np.nan, np.inf], [3e38, -0.0]]], f32)
    weight = np.array([[[[1.0]]], [[[2.0]]]], f32)
    zero, position, y = np.zeros(2, f32), np.zeros((5, 2), f32), np.empty((5, 2), f32)
    k.patch_embed_forward(image, weight, zero, zero, position, y, patch=1)
    assert same_bits(y, ref.patch_embed_forward(image, weight, zero, zero, position))
    assert np.isnan(y[1]).all() and np.isinf(y[2]).all() and y[3, 1] == np.inf


def test_errors_name_what_is_wrong():
    image, weight = np.zeros((1, 4, 3), f32), np.zeros((2, 1, 4, 4), f32)
    vector, position, y = np.zeros(2, f32), np.zeros((2, 2), f32), np.zeros((2, 2), f32)
    narrow = "patch = 4 with images 3 pixels wide: expected at most the width"
    with pytest.raises(ValueError, match=narrow):
        k.patch_embed_forward(image, weight, vector, vector, position, y, patch=4)
    with pytest.raises(ValueError, match=narrow):
        k.patch_embed_backward(y, image, weight, patch=4)
    with pytest.raises(ValueError, match=narrow):
        k.patch_rows(image, np.zeros((1, 16), f32), patch=4)
    with pytest.raises(ValueError, match="patch = 0: expected at least 1"):
        k.patch_rows(image, np.zeros((1, 0), f32), patch=0)
    with pytest.raises(ValueError, match=r"weight has shape \(2, 1, 4, 4\): expected \(2, 1, 2, 2\)"):
        k.patch_embed_forward(image, weight, vector, vector, position, y, patch=2)
    with pytest.raises(ValueError, match=r"PackedMatrix of shape \(16, 2\): expected \(4, 2\)"):
        k.patch_embed_forward(image, k.PackedMatrix(weight.reshape(2, -1), transpose_b=True), vector, vector, position,
                              y, patch=2)
    with pytest.raises(ValueError, match="position has no row"):
        k.patch_embed_forward(image, weight, vector, vector, position[:0], y, patch=2)
    with pytest.raises(ValueError, match=r"y has shape \(3, 2\): expected \(2, 2\)"):
        k.patch_embed_forward(image, np.zeros((2, 1, 2, 2), f32), vector, vector, position, np.zeros((3, 2), f32),
                              patch=2)
    with pytest.raises(ValueError, match="dy has no row"):
        k.patch_embed_backward(y[:0], image, weight, patch=2)
    with pytest.raises(ValueError, match="image is None: dweight needs it"):
        k.patch_embed_backward(y, None, None, None, weight, patch=4)
    with pytest.raises(ValueError, match="weight is None: dimage needs it"):
        k.patch_embed_backward(y, image, None, image.copy(), patch=2)
    with pytest.raises(ValueError, match=r"rows has shape \(1, 3\): expected \(1, 4\)"):
        k.patch_rows(image, np.zeros((1, 3), f32), patch=2)
