"""The compiled packages' tests share files: equal copies, so that each package's tests stand alone."""
import pytest
from devtools.workspace import COMPILED, folder


@pytest.mark.parametrize("name", ["calls.py", "fuzz.py", "test_calls.py", "test_fuzz.py"])
def test_copies_are_equal(name):
    first, second = ((folder(package) / "tests" / name).read_bytes() for package in COMPILED)
    assert first == second, f"{name}: change both copies"
