"""The package as it is installed: version, exact pin, and the settings it passes on from below."""
from importlib.metadata import requires, version

import dx_labels


def test_version_and_exact_pin():
    assert dx_labels.__version__ == version("dx-labels")
    assert f"dx-train=={dx_labels.__version__}" in [r.replace(" ", "") for r in requires("dx-labels")]


def test_settings_are_those_of_the_package_below():
    before = dx_labels.get_path(), dx_labels.get_degree()
    for path in dx_labels.available_paths():
        with dx_labels.kernel_path(path), dx_labels.degree(3):
            assert (dx_labels.get_path(), dx_labels.get_degree()) == (path, 3)
    assert (dx_labels.get_path(), dx_labels.get_degree()) == before
