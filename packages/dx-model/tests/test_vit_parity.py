"""Every gradient entry of a vision transformer of depth 2 against PyTorch in float64, and equal bits everywhere."""
import dx_model
import numpy as np
import pytest
import vit_fixture

ACTS = ("gelu_tanh", "gelu_erf")


@pytest.mark.parametrize("act", ACTS)
def test_every_entry_is_within_the_allowance(act):
    """PyTorch's own float32 run uses a tenth of it; so must we, nearly."""
    f = vit_fixture.load(act)
    got = vit_fixture.run(f)
    assert set(got) == set(f.f64) and len([name for name in got if name.startswith("grad/")]) == 4 + 16 * 2 + 4
    assert vit_fixture.worst(f, f.f32)[0] <= 0.1 + 1e-9
    share, name = vit_fixture.worst(f, got)
    assert share < 0.14, name
    for name, ref in f.f64.items():
        assert got[name].shape == ref.shape and np.abs(ref).max() > 0, name


@pytest.mark.parametrize("act", ACTS)
def test_equal_bits_on_every_path_and_degree(act):
    f, first = vit_fixture.load(act), None
    for path in dx_model.available_paths():
        for degree in (1, 2, 3):
            with dx_model.kernel_path(path):
                got = {name: value.tobytes() for name, value in vit_fixture.run(f, degree).items()}
            first = first or got
            assert got == first, (path, degree)


def test_a_wrong_gradient_would_be_seen():
    """The allowance is tight enough to notice one entry that is off by a thousandth of its tensor's scale."""
    f = vit_fixture.load("gelu_erf")
    got = vit_fixture.run(f)
    for name in ("grad/blocks.0.q.weight", "grad/patch.weight", "grad/pos", "grad/blocks.1.fc2.bias"):
        value = got[name].copy()
        value.reshape(-1)[0] += 1e-3 * np.sqrt(np.mean(f.f64[name] ** 2))
        assert vit_fixture.worst(f, got | {name: value})[0] > 1, name
