"""ruff's rules (root pyproject.toml) and the file length the code base keeps to."""
import re
import subprocess
import sys

import pytest
from devtools import workspace

SUFFIXES = {".py", ".pyx", ".pxd", ".c", ".h"}


def test_ruff_is_content():
    pytest.importorskip("ruff", reason="ruff is installed by dev.py test")
    done = subprocess.run([sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format=concise",
                           str(workspace.ROOT)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_files_stay_under_400_lines():
    listed = workspace.output(["git", "ls-files"]).split() if (workspace.ROOT / ".git").exists() else []
    long = []
    for name in listed:
        path = workspace.ROOT / name
        if path.suffix in SUFFIXES and path.is_file():
            lines = len(path.read_text(encoding="utf-8").splitlines())
            if lines > 400:
                long.append(f"{name}: {lines}")
    assert long == []


def test_no_conflict_marker_has_landed():
    marker = re.compile(rb"^(?:<{7} |>{7} |\|{7} |={7}$)", re.M)
    listed = workspace.output(["git", "ls-files"]).split("\n")[:-1] if (workspace.ROOT / ".git").exists() else []
    paths = [workspace.ROOT / name for name in listed if not name.endswith((".bin", ".safetensors"))]
    assert [str(p) for p in paths if p.is_file() and marker.search(p.read_bytes())] == []
