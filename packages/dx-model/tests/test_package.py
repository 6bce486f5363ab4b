"""The package as it is installed: version, exact pin, and the settings it passes on from below."""
from importlib.metadata import requires, version

import dx_model


def test_version_and_exact_pin():
    assert dx_model.__version__ == version("dx-model")
    assert f"dx-kernels=={dx_model.__version__}" in [r.replace(" ", "") for r in requires("dx-model")]


def test_settings_are_those_of_the_package_below():
    before = dx_model.get_path(), dx_model.get_degree()
    for path in dx_model.available_paths():
        with dx_model.kernel_path(path), dx_model.degree(3):
            assert (dx_model.get_path(), dx_model.get_degree()) == (path, 3)
    assert (dx_model.get_path(), dx_model.get_degree()) == before
