"""The wiring on kernels and on emulated binary32: one set of lines, equal bits; gradients against differences."""
import dx_model
import numpy as np
import pytest
import vit_tiny
from dx_model.workspace import Workspace
from dx_model.vit import wiring
from dx_model.vit.certify.emulated import Emulated
from dx_model.vit.float32 import Kernels
from dx_model.vit.patches import patches_of, unpatch


def run(c, seed=3):
    rng = np.random.default_rng(seed)
    p, image = vit_tiny.parameters(c, rng), vit_tiny.image(c, rng)
    dlogits = rng.standard_normal((1, c.num_classes)).astype(np.float32)
    kernels = Kernels(c, p, Workspace(), vit_tiny.zeros(c))
    logits, saved = wiring.forward(kernels, image)
    dx = wiring.backward(kernels, dlogits, saved)
    return p, image, dlogits, kernels, logits.copy(), dx, kernels.patch_image_gradient(dx, image.shape)


@pytest.mark.parametrize("path", dx_model.available_paths())
@pytest.mark.parametrize("act", ["gelu_tanh", "gelu_erf"])
def test_compositions_on_emulated_binary32_give_the_kernels_bits(path, act):
    c = vit_tiny.config(hidden_act=act)
    for degree in (1, 2, 3):
        with dx_model.kernel_path(path), dx_model.degree(degree):
            p, image, dlogits, kernels, logits, dx, dimage = run(c)
        if degree == 1:
            emulated = Emulated(c, p)
            expected, saved = wiring.forward(emulated, image)
            dexpected = wiring.backward(emulated, dlogits, saved)
        assert logits.tobytes() == expected.tobytes()
        assert dx.tobytes() == dexpected.tobytes()
        assert dimage.tobytes() == emulated.patch_image_gradient(dexpected, image.shape).tobytes()
        assert list(emulated.gradients) and sorted(emulated.gradients) == sorted(vit_tiny.shapes(c))
        for name, value in emulated.gradients.items():
            assert kernels.gradients[name].tobytes() == value.tobytes(), name


def test_inference_gives_the_same_logits_in_fewer_buffers():
    c = vit_tiny.config(num_hidden_layers=3)
    rng = np.random.default_rng(4)
    p, image = vit_tiny.parameters(c, rng), vit_tiny.image(c, rng)
    saving, plain = Workspace(), Workspace()
    first, _ = wiring.forward(Kernels(c, p, saving), image)
    second, _ = wiring.forward(Kernels(c, p, plain, saving=False), image)
    assert first.tobytes() == second.tobytes()
    assert plain.nbytes * 2 < saving.nbytes


def test_gradients_against_central_differences():
    c = vit_tiny.config()
    p, image, dlogits, kernels, _, _, dimage = run(c)
    rng = np.random.default_rng(5)

    def loss(p, image):
        logits, _ = wiring.forward(Kernels(c, p, Workspace(), saving=False), image)
        return float(logits[0].astype(np.float64) @ dlogits[0].astype(np.float64))

    for name, array, gradient in [(n, p[n], kernels.gradients[n]) for n in p] + [("image", image, dimage)]:
        direction = rng.standard_normal(array.shape).astype(np.float32)
        h = np.float32(2.0**-8)
        up, down = array + h * direction, array - h * direction
        both = [loss(p | {name: a}, image) if name != "image" else loss(p, a) for a in (up, down)]
        expected = (both[0] - both[1]) / (2 * float(h))
        found = float((gradient.astype(np.float64) * direction).sum())
        assert abs(found - expected) < 2e-3 * max(1.0, abs(expected)), (name, found, expected)


def test_step_moves_every_parameter_by_rate_times_gradient():
    c = vit_tiny.config()
    rng = np.random.default_rng(6)
    p, image = vit_tiny.parameters(c, rng), vit_tiny.image(c, rng)
    before = {name: array.copy() for name, array in p.items()}
    kernels, emulated = Kernels(c, p, Workspace(), vit_tiny.zeros(c)), Emulated(c, dict(before))
    first = wiring.step(kernels, image, 2, 0.125).copy()
    wiring.step(emulated, image, 2, np.float32(0.125))
    for name in p:
        assert p[name].tobytes() == emulated.parameters[name].tobytes(), name
        assert not np.array_equal(p[name], before[name]), name
    again, _ = wiring.forward(kernels, image)
    assert not np.array_equal(first, again)


def test_free_invariants_in_every_bit():
    c = vit_tiny.config()
    g = run(c)[3].gradients
    assert g["cls"].tobytes() == g["pos"][0].tobytes()


@pytest.mark.parametrize("shape,patch,count", [((1, 4, 4), 2, 4), ((2, 4, 6), 2, 6), ((1, 3, 4), 2, 4),
                                               ((1, 5, 4), 2, 6), ((1, 4, 5), 2, 4), ((1, 3, 3), 2, 2),
                                               ((1, 4, 4), 2, 3), ((1, 4, 4), 2, 6), ((1, 4, 4), 2, 0)])
def test_patches_read_what_the_formula_says(shape, patch, count):
    image = np.arange(1, 1 + np.prod(shape)).reshape(shape)
    rows = patches_of(image, patch, count)
    back = np.zeros(shape, image.dtype)
    width = shape[2] // patch
    for p in range(count):
        read = []
        for c in range(shape[0]):
            for kh in range(patch):
                for kw in range(patch):
                    y, x = p // width * patch + kh, p % width * patch + kw
                    inside = y < shape[1] and x < shape[2]
                    read.append(image[c, y, x] if inside else 0)
                    if inside:
                        back[c, y, x] = image[c, y, x]
        assert rows[p].tolist() == read
    assert np.array_equal(unpatch(rows, patch, shape), back)


def test_an_image_narrower_than_a_patch_is_refused():
    with pytest.raises(ValueError, match="1 pixels wide: expected at least patch_size = 2"):
        patches_of(np.zeros((1, 4, 1)), 2, 2)
