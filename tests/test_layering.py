"""Each package imports and cimports only from the one below, by name, through below.py; entry points stay at home."""
import ast
import importlib.util
import sys
import tomllib

import layering
import pytest
from devtools.workspace import PACKAGES, existing, folder, module

STANDARD = sys.stdlib_module_names


@pytest.mark.parametrize("package", existing())
def test_python_files_import_only_what_they_may(package):
    files = layering.files(package, ".py")
    assert files
    wrong = [f"{name}:{line}: {what}" for name, path in files for line, what in
             layering.python_violations(package, name, path.read_text(encoding="utf-8"), STANDARD)]
    assert wrong == []


@pytest.mark.parametrize("package", existing())
def test_cython_files_import_only_what_they_may(package):
    files = layering.files(package, ".pyx") + layering.files(package, ".pxd")
    wrong = [f"{name}:{line}: {what}" for name, path in files for line, what in
             layering.cython_violations(package, path.read_text(encoding="utf-8"))]
    assert wrong == []


@pytest.mark.parametrize("package", existing()[1:])
def test_below_takes_names_the_package_below_makes_public(package):
    below = __import__(module(PACKAGES[PACKAGES.index(package) - 1]))
    path = folder(package) / "src" / module(package) / "below.py"
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == below.__name__:
            missing = [a.name for a in node.names if a.name.startswith("_") or not hasattr(below, a.name)
                       and importlib.util.find_spec(f"{below.__name__}.{a.name}") is None]  # or a module of its own
            assert missing == []


@pytest.mark.parametrize("package", existing())
def test_entry_points_name_this_package(package):
    project = tomllib.loads((folder(package) / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = [project.get("scripts", {}), project.get("gui-scripts", {}), *project.get("entry-points", {}).values()]
    for group in groups:
        assert all(target.split(":")[0].split(".")[0] == module(package) for target in group.values())


PYTHON = {
    "import dx_numerics": ("dx-model", "a.py", 1),
    "from dx_kernels import x": ("dx-model", "a.py", 1),
    "from dx_kernels.layer_norm import x": ("dx-model", "below.py", 1),
    "import dx_kernels": ("dx-model", "below.py", 1),
    "from dx_kernels import *": ("dx-model", "below.py", 1),
    "import importlib\nimportlib.import_module('dx_numerics')": ("dx-train", "a.py", 1),
    "from dx_labels import x": ("dx-train", "below.py", 1),
    "import torch": ("dx-model", "a.py", 1),
    "import ray": ("dx-train", "a.py", 1),
    "def f():\n    import ray": ("dx-train", "a.py", 0),
    "def f():\n    import dx_numerics": ("dx-train", "a.py", 1),
    "from dx_kernels import layer_norm_forward": ("dx-model", "below.py", 0),
    "from .below import x\nimport numpy\nimport json": ("dx-model", "a.py", 0),
}
CYTHON = {
    "from dx_numerics._core cimport parallel": ("dx-kernels", 0),
    "from ._core cimport table": ("dx-kernels", 0),
    "cimport numpy as np": ("dx-kernels", 1),
    "from dx_numerics.reduce cimport dot16": ("dx-kernels", 1),
    "from dx_numerics import degree": ("dx-kernels", 1),
    "from dx_model import x": ("dx-kernels", 1),
    "from libc.math cimport exp": ("dx-kernels", 1),
}


@pytest.mark.parametrize("source", PYTHON)
def test_the_python_rule_catches(source):
    package, name, count = PYTHON[source]
    assert len(list(layering.python_violations(package, name, source, STANDARD))) == count


@pytest.mark.parametrize("source", CYTHON)
def test_the_cython_rule_catches(source):
    package, count = CYTHON[source]
    assert len(list(layering.cython_violations(package, source))) == count
