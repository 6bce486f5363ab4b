"""docextract against PyTorch's fixture, against central differences, and its bits."""
from concurrent.futures import ThreadPoolExecutor

import docextract_pass
import dx_model
import numpy as np
import pytest
import reference_model
from dx_model.docextract import DocExtract, Gradients, Losses, Workspace, initial_parameters
from parity_fixture import load, run

HEADS = ("tag", "role", "doc", "item", "key_value")

@pytest.fixture(scope="module")
def fixture():
    return load()


def test_parity_with_torch(fixture):
    """Our largest error against float64 is at most twice PyTorch's own plus 2^-23 RMS, and the allowance share at most
    0.14, tensor by tensor."""
    got = run(fixture)
    for name, value in got.items():
        ref = fixture.f64[name].reshape(value.shape)
        error = np.abs(value - ref)
        torch_error = np.abs(fixture.f32[name].astype(np.float64).reshape(value.shape) - ref).max()
        assert error.max() <= 2 * torch_error + 2.0 ** -23 * np.sqrt(np.mean(ref * ref)), name
        atol, rtol = fixture.allowance[name]
        assert (error / (atol + rtol * np.abs(ref) + 1e-300)).max() <= 0.14, name


def test_central_differences(fixture):
    """Every tensor, every loss, alone and together: the kernels' gradients against the binary64 reference model."""
    rng = np.random.default_rng(5)
    weights = {name: array.astype(np.float64) for name, array in fixture.raw["weight"].items()}
    targets = {name: array.reshape(-1) if name == "doc" else array for name, array in fixture.raw["target"].items()}
    page = {**fixture.raw["page"]}
    for chosen in [dict(fixture.weights)] + [{name: 1.0} for name in fixture.weights]:
        got = run(fixture, chosen)

        def loss(chosen=chosen):
            return reference_model.loss(fixture.config, weights, page, targets, chosen, fixture.field_weight)

        assert abs(loss() - got["loss/total"][0]) < 1e-5
        for name, array in weights.items():
            gradient = got[f"grad/{name}"]
            for flat in rng.choice(array.size, min(array.size, 2), replace=False):
                place = np.unravel_index(flat, array.shape)
                if name == "char_emb.weight" and place[0] == 0:
                    assert gradient[place] == 0
                    continue
                step, kept = 1e-5, array[place]
                array[place] = kept + step
                up = loss()
                array[place] = kept - step
                slope = (up - loss()) / (2 * step)
                array[place] = kept
                assert abs(slope - gradient[place]) < 2e-5 + 1e-3 * abs(slope), (name, chosen)


def test_losses_that_are_off_reach_nothing(fixture):
    got = run(fixture, {"tag": 1.0})
    for head in ("role_head", "doc_head", "rel_q", "rel_k"):
        assert not got[f"grad/{head}.weight"].any() and not got[f"grad/{head}.bias"].any()
    assert got["grad/tag_head.weight"].any()


def test_bits_across_paths_and_degrees(fixture):
    first = None
    for path in dx_model.available_paths():
        for degree in (1, 2, 3, 4, 7):
            with dx_model.kernel_path(path):
                got = {name: value.tobytes() for name, value in run(fixture, degree=degree).items()}
            first = first or got
            assert got == first, (path, degree)


@pytest.fixture(scope="module")
def model():
    """A model without a zero tensor."""
    parameters = initial_parameters(docextract_pass.CONFIG, 7)
    for _, tensor in parameters.items():
        if not tensor.any():
            tensor.reshape(-1)[:] = (np.arange(tensor.size) % 23 - 11) / np.float32(64)
    return DocExtract(parameters)


def windows(model, sizes):
    return [dx_model.encode_page(docextract_pass.page(n), model.config.encoding()) for n in sizes]


def outputs(out):
    return [getattr(out, name).tobytes() for name in HEADS]


def step(model, window, space, losses):
    """(logits, gradients) of a training step, as bytes."""
    gradients = Gradients(model.config)
    gradients.flat[:] = np.nan
    saved = model.forward_saved(window, space)
    logits = outputs(saved.outputs)
    _, douts = losses.run(saved.outputs, docextract_pass.targets(len(window)), 1.0, space)
    model.backward(saved, douts, gradients)
    return logits, gradients.flat.tobytes()


def test_training_forward_is_inference_alone_and_after_any_page(model):
    """Case mod-22: whatever a workspace held before, in any order of pages, with and without gradients."""
    losses, space = Losses(model.config, docextract_pass.WEIGHTS), Workspace()
    pages = windows(model, (24, 1, 0, 90, 7, 24))
    alone = [step(model, window, Workspace(), losses) for window in pages]
    assert alone[0] == alone[-1]
    for order in ((0, 1, 2, 3, 4, 5), (3, 2, 5, 4, 0, 1)):
        for i in order:
            assert step(model, pages[i], space, losses) == alone[i]
            assert outputs(model.forward(pages[i], ("tag", "role", "doc", "pointer"))) == alone[i][0]
    assert all(np.isfinite(np.frombuffer(gradients, np.float32)).all() for _, gradients in alone)


def test_gradients_added_to_a_total(model):
    """Assigning, then adding the whole set, and adding in passing: the same bits; head-only runs touch heads only."""
    losses, space, rng = Losses(model.config, docextract_pass.WEIGHTS), Workspace(), np.random.default_rng(0)
    before = rng.standard_normal(model.parameters.flat.size).astype(np.float32)
    heads = {spec.name for spec in model.parameters.specs if spec.group == "head"}
    for window in windows(model, (19, 0, 1)):
        for backbone in (True, False):
            alone, total, work = (Gradients(model.config) for _ in range(3))
            total.flat[:] = before
            for gradients, sums in ((alone, None), (work, total)):
                saved = model.forward_saved(window, space)
                _, douts = losses.run(saved.outputs, docextract_pass.targets(len(window)), 1.0, space)
                model.backward(saved, douts, gradients, backbone=backbone, total=sums)
            for name, (begin, end) in total.offsets.items():
                want = before[begin:end]
                if backbone or name in heads:
                    want = want + alone[name].reshape(-1)
                assert want.tobytes() == total.flat[begin:end].tobytes(), name


def test_a_head_by_itself_has_the_same_bits(model):
    (window,) = windows(model, (24,))
    full = model.forward(window, ("tag", "role", "doc", "pointer"))
    for head, names in (("tag", ["tag"]), ("role", ["role"]), ("doc", ["doc"]), ("pointer", ["item", "key_value"])):
        out = model.forward(window, (head,))
        for name in HEADS:
            assert (getattr(out, name) is not None) == (name in names)
            assert name not in names or getattr(out, name).tobytes() == getattr(full, name).tobytes()
    with pytest.raises(ValueError, match="heads has 'tags'"):
        model.forward(window, ("tags",))


def test_threads_share_a_model(model):
    pages = windows(model, (5, 24, 60, 1)) * 6
    wanted = [outputs(model.forward(window, ("tag", "role", "doc", "pointer"))) for window in pages]
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda window: outputs(model.forward(window, ("tag", "role", "doc", "pointer"))), pages))
    assert got == wanted


def test_windows_that_are_not_the_models_are_refused(model):
    page = docextract_pass.page(24)
    other = dx_model.encode_page(page, dx_model.Encoding(max_chars=9, position_buckets=128))
    with pytest.raises(ValueError, match="the page has 9 characters a word: expected 12"):
        model.forward(other)
    words = [dx_model.Word("x", (i, i, i + 1, i + 1)) for i in range(600)]
    long = dx_model.encode_page(dx_model.Page("long", 700, 700, words), model.config.encoding())
    with pytest.raises(ValueError, match=f"the window has {len(long)} words: expected at most max_words = 512"):
        model.forward(long)


def test_parameters_changed_in_place_count_after_repack(model):
    parameters = model.parameters.copy()
    (window,), changed = windows(model, (24,)), DocExtract(parameters)
    parameters["blocks.0.fc1.weight"][...] *= 2
    parameters["tag_head.weight"][...] *= 2
    changed.repack()
    assert outputs(changed.forward(window, ("tag", "role", "doc", "pointer"))) == outputs(
        DocExtract(parameters).forward(window, ("tag", "role", "doc", "pointer")))
    assert changed.forward(window).tag.tobytes() != model.forward(window).tag.tobytes()
