"""One version everywhere; exact pins, each package on exactly the one below."""
import tomllib
from importlib.metadata import version

import pytest
from devtools import release, workspace

REQUIRED = {"dx-numerics": {"numpy"}, "dx-kernels": {"numpy", "dx-numerics"}, "dx-model": {"safetensors", "dx-kernels"},
            "dx-train": {"dx-model", "tqdm"}, "dx-labels": {"dx-train"}}


def metadata(package):
    return tomllib.loads((workspace.folder(package) / "pyproject.toml").read_text(encoding="utf-8"))


def test_one_version_in_every_place():
    assert release.disagreeing() == []


def test_a_wrong_version_is_named(monkeypatch):
    monkeypatch.setattr(release, "version", lambda: "9.9.9")
    wrong = release.disagreeing()
    assert len(wrong) >= 3 * len(workspace.existing())
    assert any("packages/dx-kernels/src/dx_kernels/__init__.py" in text for text in wrong)


@pytest.mark.parametrize("package", workspace.existing())
def test_installed_is_this_version(package):
    assert version(package) == workspace.version()


@pytest.mark.parametrize("package", workspace.existing())
def test_requires_exactly_the_package_below_and_nothing_unlisted(package):
    data = metadata(package)
    needs = data["project"]["dependencies"]
    names = {need.split()[0].split("=")[0].split(">")[0].split("[")[0] for need in needs}
    assert names == REQUIRED[package]
    order = workspace.PACKAGES.index(package)
    if order:
        below = f"{workspace.PACKAGES[order - 1]} == {workspace.version()}"
        assert below in needs
        if package in workspace.COMPILED:
            assert below in data["build-system"]["requires"]


@pytest.mark.parametrize("package", workspace.existing())
def test_each_package_carries_its_own_readme_licence_and_tests(package):
    folder = workspace.folder(package)
    assert (folder / "LICENSE").read_bytes() == (workspace.ROOT / "LICENSE").read_bytes()
    assert (folder / "README.md").read_text(encoding="utf-8").startswith(f"# {package}\n")
    assert list((folder / "tests").glob("test_*.py"))


def test_the_root_is_not_a_distribution():
    root = tomllib.loads((workspace.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "project" not in root and "build-system" not in root
