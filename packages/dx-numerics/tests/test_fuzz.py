"""Random shapes, strides, types, values and objects at every public function: an error, never a crash (fuzz.py)."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

SECONDS = float(os.environ.get("DX_FUZZ_SECONDS", "20"))
SEED = int(os.environ.get("DX_FUZZ_SEED", "0"))


@pytest.mark.parametrize("path", ["portable", ""])
@pytest.mark.parametrize("degree", [1, 3])
def test_wrong_calls_raise_errors(path, degree, tmp_path):
    """In a process of its own, whose last line names the case when it dies."""
    env = {**os.environ, "DX_KERNEL_PATH": path, "DX_DEGREE": str(degree), "TMPDIR": str(tmp_path)}
    if "ASAN_OPTIONS" in env:
        env["ASAN_OPTIONS"] += ":max_allocation_size_mb=6000"
    registry = "registry"
    command = [sys.executable, "-W", "error", str(Path(__file__).with_name("fuzz.py")), registry, str(SECONDS / 4)]
    seed = SEED + 1_000_000 * degree + (500_000 if path else 0)
    done = subprocess.run([*command, str(seed)], capture_output=True, text=True, timeout=60 + 10 * SECONDS, env=env)
    lines = done.stdout.splitlines()
    last = lines[-1] if lines else "before the first case"
    if last == "failed":
        last = lines[-2]
    assert done.returncode == 0 and last.startswith("done "), f"exit code {done.returncode} at: {last}\n{done.stderr}"
    assert int(last.split()[1]) >= 50
