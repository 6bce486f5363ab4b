"""docextract against PyTorch's fixture, against central differences, and its bits."""
import dx_model
import numpy as np
import pytest
import reference_model
from parity_fixture import load, run

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
