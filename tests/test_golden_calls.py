"""Case num-08: the bits of named kernel calls are committed, so that every other CPU and build can be held to them."""
import json
import runpy
from pathlib import Path

import dx_numerics
import pytest

GOLDEN = runpy.run_path(str(Path(__file__).parent / "golden" / "bits_of_calls.py"))
WRITE = "if this is meant: raise NUMERICS_VERSION and run python tests/golden/bits_of_calls.py"


@pytest.fixture(scope="module")
def committed():
    return json.loads(GOLDEN["FILE"].read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", dx_numerics.available_paths())
def test_num_08_committed_digests(committed, path):
    with dx_numerics.kernel_path(path):
        got = GOLDEN["digests"]()
    different = [name for name, digest in committed["digests"].items() if got.get(name) != digest]
    assert not different, f"other bits than committed on path {path}; {WRITE}"


def test_num_08_enough_calls_of_this_version(committed):
    assert len(committed["digests"]) >= 64
    assert committed["numerics_version"] == dx_numerics.NUMERICS_VERSION, WRITE
