"""dx-kernels refuses a dx-numerics whose installed headers or exported C functions are other than it was built with."""
import hashlib
import subprocess
import sys
from pathlib import Path

import dx_kernels.below
import dx_numerics
import pytest

OTHER_HASH = "import dx_numerics as n; n.INTERFACE = '0' * 64; import dx_kernels"
OTHER_FUNCTION = ("import dx_numerics._core as c; p = c.__pyx_capi__; p['parallel'] = p['fp_enter']; "
                  "import dx_kernels")


def test_the_hash_is_that_of_the_installed_files():
    folder = Path(dx_numerics.__file__).parent
    h = hashlib.sha256()
    for path in sorted([*folder.glob("*.pxd"), *folder.glob("include/*/*.h")]):
        h.update(f"{path.relative_to(folder).as_posix()}\n".encode() + path.read_bytes())
    assert dx_numerics.INTERFACE == h.hexdigest() == dx_kernels.below.BUILT_AGAINST


@pytest.mark.parametrize("code", [OTHER_HASH, OTHER_FUNCTION])
def test_a_mismatch_is_an_import_error_that_says_what_to_do(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1 and last.startswith("ImportError: dx-kernels was built against other headers")
    assert last.endswith("install the two from the same build")
