"""The package as it is installed: version, exact pin, and the settings it passes on from below."""
from importlib.metadata import requires, version

import dx_train


def test_version_and_exact_pin():
    assert dx_train.__version__ == version("dx-train")
    assert f"dx-model=={dx_train.__version__}" in [r.replace(" ", "") for r in requires("dx-train")]


def test_settings_are_those_of_the_package_below():
    before = dx_train.get_path(), dx_train.get_degree()
    for path in dx_train.available_paths():
        with dx_train.kernel_path(path), dx_train.degree(3):
            assert (dx_train.get_path(), dx_train.get_degree()) == (path, 3)
    assert (dx_train.get_path(), dx_train.get_degree()) == before
