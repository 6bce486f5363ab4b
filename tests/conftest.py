"""What the spanning tests share: the tree, the tools, the built wheels."""
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))


@pytest.fixture(scope="session")
def wheels():
    """package → its wheel, as `dev.py test` built and installed it."""
    from devtools.workspace import existing, module
    folder = Path(os.environ.get("DX_WHEELS", ROOT / "dist"))
    found = {}
    for package in existing():
        files = sorted(folder.glob(f"{module(package)}-*.whl"))
        if len(files) != 1:
            pytest.skip(f"no single wheel of {package} in {folder}: run python tools/dev.py test")
        found[package] = files[0]
    return found
