"""The vision transformer: bits of the fast model against the wiring, gradients, files."""
import dx_model
import numpy as np
import pytest
from dx_model.vit import ClassLoss, Gradients, ViT, ViTConfig, initial_parameters, wiring
from dx_model.vit.float32 import Kernels
from dx_model.workspace import Workspace

f32 = np.float32
SMALL = ViTConfig(image_size=(13, 17), num_channels=2, patch_size=4, num_patches=14, num_classes=5, hidden_size=12,
                  num_hidden_layers=2, num_attention_heads=3, intermediate_size=20, hidden_act="gelu_erf")


def generic(config, seed=0):
    """A model whose parameters are all random, none of them zero or one."""
    parameters, rng = initial_parameters(config), np.random.default_rng(seed)
    for spec in parameters.specs:
        around = f32(spec.init == "ones")
        parameters[spec.name][...] = around + rng.standard_normal(spec.shape).astype(f32) * f32(0.3)
    return ViT(parameters)


def images_of(config, count, seed=1):
    return np.random.default_rng(seed).standard_normal((count, *config.image_shape)).astype(f32)


def test_the_default_is_vit_tiny():
    parameters = initial_parameters(ViTConfig())
    assert len(parameters) == 200 and parameters.flat.size == 5_526_346
    assert parameters["blocks.11.qkv.weight"].shape == (576, 192)
    joined = [parameters[f"blocks.3.{part}.bias"] for part in "qkv"]
    parameters["blocks.3.qkv.bias"][...] = np.arange(576)
    assert np.array_equal(np.concatenate(joined), np.arange(576, dtype=f32))


@pytest.mark.parametrize("path", dx_model.available_paths())
@pytest.mark.parametrize("act", ["gelu_tanh", "gelu_erf"])
def test_the_model_has_the_bits_of_the_wiring(path, act):
    """Logits, every parameter gradient and the image's, on every path and degree: the certified lines, operation by
    operation, against whole stacks in one kernel call."""
    config = ViTConfig.from_json(SMALL.to_json() | {"hidden_act": act})
    model, image = generic(config), images_of(config, 1)[0]
    dlogits = np.random.default_rng(2).standard_normal(5).astype(f32)
    one, two, dimage = Gradients(config), Gradients(config), np.empty(image.shape, f32)
    with dx_model.kernel_path(path):
        table = Kernels(config, model.parameters, Workspace(), one)
        logits, kept = wiring.forward(table, image)
        dx = wiring.backward(table, dlogits[None], kept)
        for degree in (1, 2, 3):
            with dx_model.degree(degree):
                two.flat[:] = np.nan
                saved = model.forward_saved(image, Workspace())
                model.backward(saved, dlogits, two, dimage=dimage)
                assert saved.outputs.tobytes() == model.forward(image[None])[0].tobytes() == logits.tobytes()
                for name in two:
                    assert two[name].tobytes() == one[name].tobytes(), name
                assert dimage.tobytes() == table.patch_image_gradient(dx, image.shape).tobytes()


def test_an_images_logits_do_not_depend_on_the_batch():
    model, images = generic(SMALL), images_of(SMALL, 5)
    alone = [model.forward(images[i:i + 1])[0].tobytes() for i in range(5)]
    for degree in (1, 2, 3):
        with dx_model.degree(degree):
            assert [row.tobytes() for row in model.forward(images)] == alone
            assert [row.tobytes() for row in model.forward(images[::-1])] == alone[::-1]
    assert model.forward(images[:0]).shape == (0, 5)


def gradients_of(model, image, dlogits):
    gradients = Gradients(model.config)
    model.backward(model.forward_saved(image, Workspace()), dlogits, gradients)
    return gradients


def test_free_invariants():
    """The class token's gradient is row 0 of the position table's; the patch bias's is the sum16 of its other rows."""
    g = gradients_of(generic(SMALL), images_of(SMALL, 1)[0], np.arange(5, dtype=f32))
    assert g["cls"].tobytes() == g["pos"][0].tobytes()
    summed = np.empty(12, f32)
    dx_model.below.linear_backward(g["pos"][1:], None, None, None, None, summed)
    assert g["patch.bias"].tobytes() == summed.tobytes()


def test_gradients_added_to_a_total():
    """Assigning, then adding the whole set, and adding in passing: the same bits."""
    model, dlogits = generic(SMALL), np.arange(5, dtype=f32)
    image, work, total = images_of(SMALL, 1)[0], Gradients(SMALL), Gradients(SMALL)
    total.flat[:] = np.random.default_rng(4).standard_normal(total.flat.size)
    want = total.flat + gradients_of(model, image, dlogits).flat
    model.backward(model.forward_saved(image, Workspace()), dlogits, work, total=total)
    assert total.flat.tobytes() == want.tobytes()


def test_gradients_against_central_differences():
    model, image = generic(SMALL), images_of(SMALL, 1)[0]
    rng = np.random.default_rng(3)
    dlogits = rng.standard_normal(5).astype(f32)
    gradients, p = gradients_of(model, image, dlogits), model.parameters
    for name in p:
        way, before, h = rng.standard_normal(p[name].shape).astype(f32), p[name].copy(), 2.0**-8
        sides = []
        for sign in (1, -1):
            p[name][...] = before + f32(sign * h) * way
            model.repack()
            sides.append(float(model.forward(image[None])[0].astype(float) @ dlogits.astype(float)))
        p[name][...] = before
        expected = (sides[0] - sides[1]) / (2 * h)
        found = float((gradients[name].astype(float) * way).sum())
        assert abs(found - expected) < 5e-3 * max(1.0, abs(expected)), name


@pytest.mark.parametrize("depth, patches", [(0, 3), (3, 1), (1, 20)])
def test_other_sizes(depth, patches):
    """No block, one patch, more patches than the image has."""
    config = ViTConfig(image_size=(8, 12), num_channels=1, patch_size=4, num_patches=patches, num_classes=1,
                       hidden_size=6, num_hidden_layers=depth, num_attention_heads=2, intermediate_size=7)
    model = generic(config)
    assert np.isfinite(model.forward(images_of(config, 2))).all()
    assert np.isfinite(gradients_of(model, images_of(config, 1)[0], np.ones(1, f32)).flat).all()


def test_nan_reaches_its_own_logits_only():
    model, images = generic(SMALL), images_of(SMALL, 2)
    images[0, 0, 0, 0] = np.nan
    logits = model.forward(images)
    assert np.isnan(logits[0]).all() and np.isfinite(logits[1]).all()


def test_wrong_images_are_named():
    model = generic(SMALL)
    with pytest.raises(ValueError, match=r"images are float32 \(2, 13, 17\): expected a float32 array \(2, 2, 13, "):
        model.forward(np.zeros((2, 13, 17), f32))
    with pytest.raises(ValueError, match=r"images are float64 \(2, 13, 17\)"):
        model.forward_saved(np.zeros((2, 13, 17)), Workspace())


def test_wrong_sizes_are_named():
    def refused(match, **changes):
        with pytest.raises(ValueError, match=match):
            ViTConfig(**changes)

    refused("patch_size = 16 with images 12 pixels wide: expected at most the width", image_size=(224, 12))
    refused("holds no whole patch of 16", image_size=(12, 16))
    refused("hidden_size = 192: expected a multiple of num_attention_heads = 5", num_attention_heads=5)
    refused("hidden_act = 'relu'", hidden_act="relu")
    refused("layer_norm_eps = 0", layer_norm_eps=0)
    refused("num_classes = 0: expected a whole number from 1", num_classes=0)
    refused(r"image_size = \(1, 2, 3\)", image_size=(1, 2, 3))
    assert ViTConfig(image_size=32, patch_size=4).num_patches == 64
    assert ViTConfig(image_size=(3, 4), patch_size=4, num_patches=1).num_patches == 1
    with pytest.raises(ValueError, match="config lacks the keys patch_size"):
        ViTConfig.from_json({k: v for k, v in SMALL.to_json().items() if k != "patch_size"})
    with pytest.raises(ValueError, match="config has unknown keys more"):
        ViTConfig.from_json(SMALL.to_json() | {"more": 1})


def test_a_file_gives_the_model_back(tmp_path):
    model, images = generic(SMALL), images_of(SMALL, 2)
    digest = model.save_pretrained(tmp_path)
    assert model.save_pretrained(tmp_path / "again") == digest
    for place in (tmp_path, tmp_path / "model.safetensors"):
        again = ViT.from_pretrained(place, digest=digest)
        assert again.config == SMALL and again.forward(images).tobytes() == model.forward(images).tobytes()
    with pytest.raises(dx_model.ModelFileError, match="its SHA-256 is"):
        ViT.from_pretrained(tmp_path, digest="0" * 64)


def test_files_that_are_not_the_model_are_refused(tmp_path):
    model = generic(SMALL)
    model.save_pretrained(tmp_path)
    config, tensors = dx_model.read_container(tmp_path / "model.safetensors", "vit")

    def refused(match, config=config, tensors=tensors, kind="vit"):
        dx_model.write_container(tmp_path / "other", kind, config, tensors)
        with pytest.raises(dx_model.ModelFileError, match=match):
            ViT.from_pretrained(tmp_path / "other")

    refused("holds a 'docextract' model: expected 'vit'", kind="docextract")
    refused("config has unknown keys more", config | {"more": 1})
    refused("tensor norm.bias is missing", tensors={k: v for k, v in tensors.items() if k != "norm.bias"})
    refused("tensor extra does not belong to this model", tensors=tensors | {"extra": np.zeros(1, f32)})
    refused(r"tensor cls has shape \(3,\): expected \(12,\)", tensors=tensors | {"cls": np.zeros(3, f32)})
    refused("is not at its place", tensors=dict(reversed(tensors.items())))
    data = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "cut").write_bytes(data[:-5])
    with pytest.raises(dx_model.ModelFileError, match="cut short"):
        ViT.from_pretrained(tmp_path / "cut")
    with pytest.raises(dx_model.ModelFileError, match="holds a 'vit' model: expected 'docextract'"):
        dx_model.DocExtract.from_pretrained(tmp_path)


def test_initial_weights_are_a_function_of_seed_and_name():
    one, two = initial_parameters(SMALL, 5), initial_parameters(SMALL, 6)
    assert one.digest() == initial_parameters(SMALL, 5).digest() != two.digest()
    deeper = initial_parameters(ViTConfig.from_json(SMALL.to_json() | {"num_hidden_layers": 4}), 5)
    assert deeper["blocks.1.k.weight"].tobytes() == one["blocks.1.k.weight"].tobytes()
    assert not one["blocks.0.proj.weight"].any() and (one["norm.weight"] == 1).all()


def test_loss_and_its_gradient():
    logits, space = np.array([1.0, 2.0, -1.0], f32), Workspace()
    parts, dlogits = ClassLoss().run(logits, 1, 0.5, space)
    p = np.exp(logits.astype(float)) / np.exp(logits.astype(float)).sum()
    assert abs(ClassLoss().total(parts) + np.log(p[1])) < 1e-12
    assert np.abs(dlogits - 0.5 * (p - [0, 1, 0])).max() < 1e-7
    again, none = ClassLoss().run(logits, 1, None, space)
    assert again == parts and none is None
    assert ClassLoss().run(logits, -1, 1.0, space)[1].tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match=r"targets\[0\] = 3: expected a column in 0\.\.2"):
        ClassLoss().run(logits, 3, 1.0, space)
