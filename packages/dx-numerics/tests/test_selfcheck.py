"""selfcheck, and the sweep on which all paths must agree."""
import os
import subprocess
import sys
import time

import dx_numerics as dx
import pytest
from dx_numerics import _core, checks, sweep


def test_everything_is_well_here():
    report = dx.selfcheck(full=True)
    assert report.ok, str(report)
    report.require()
    names = {c.name for c in report.checks}
    assert {"rounding to nearest even", "subnormals kept", "no contracted products", "one rounding in a dot"} <= names
    assert {c.path for c in report.checks} == set(dx.available_paths())
    assert str(report).count("\n") == len(report.checks) - 1


@pytest.mark.parametrize("mode", ["up", "down", "zero", "flush"])
def test_a_foreign_mode_is_no_failure(mode):
    """dx sets its own mode inside every call, so that the caller's does not matter."""
    try:
        _core._disturb(mode)
        report = dx.selfcheck(full=True)
    finally:
        _core._disturb("ieee")
    assert report.ok, str(report)


def test_the_import_under_a_foreign_mode():
    """A process that flushes subnormals before it imports dx gets the same sweep."""
    torch = pytest.importorskip("torch")
    del torch
    code = ("import torch; torch.set_flush_denormal(True); import dx_numerics.sweep as s; "
            "print(sorted(s.digests().items()))")
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == f"{sorted(sweep.digests().items())}\n"


def test_failures_are_reported(monkeypatch):
    """Each failure bit of the C check names its rule, and require() raises with all of them."""
    for bit, name in enumerate(checks._CHECKS):
        monkeypatch.setattr(checks, "_selfcheck", lambda path, bit=bit: 1 << bit)
        report = dx.selfcheck()
        assert not report.ok and {c.name for c in report.checks if not c.ok} == {name}
        with pytest.raises(RuntimeError, match=f"cannot keep its arithmetic here:\nFAILED  portable .*{name}"):
            report.require()


def test_a_path_that_differs_is_reported(monkeypatch):
    if len(dx.available_paths()) == 1:
        pytest.skip("one path only")
    last = dx.available_paths()[-1]
    true = sweep.digests

    def lying():
        return {**true(), **({"dot16": "0"} if dx.get_path() == last else {})}

    monkeypatch.setattr(sweep, "digests", lying)
    report = dx.selfcheck(full=True)
    assert [str(c) for c in report.checks if not c.ok] == [f"FAILED  {last:9}same bytes as the portable path: dot16"]


def test_the_cheap_part_is_cheap():
    def once():
        start = time.perf_counter()
        dx.selfcheck()
        return time.perf_counter() - start
    assert min(once() for _ in range(20)) < 0.001


def test_sweep_does_not_depend_on_the_environment():
    code = "import dx_numerics.sweep as s; print(sorted(s.digests().items()))"
    variants = [{}, {"DX_DEGREE": "3"}, {"PYTHONHASHSEED": "7"}, {"LC_ALL": "C"}, {"OMP_NUM_THREADS": "1"},
                *({"DX_KERNEL_PATH": p} for p in dx.available_paths())]
    results = {subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True,
                              env={**os.environ, **v}).stdout for v in variants}
    assert len(results) == 1
