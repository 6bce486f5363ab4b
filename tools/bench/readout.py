"""Readouts: every row of the tables that specify them with the test that shows it, and speed against PyTorch.

figures  rows_total, rows_covered, rows_total_00_07, rows_covered_00_07: rows of tests/readout_rows, and those whose
         test passed in this run (a skipped test covers nothing); pooling_vs_torch_1t, maxsim_vs_torch_1t,
         contrastive_vs_torch_1t: PyTorch's time / dx's, one thread, geometric mean over the shapes
rows     section, table, row, test, status (passed, failed, skipped, open: no test yet, prose: nothing to test), why;
         then one row a shape: part, shape, dx_us, vs_torch
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from devtools.workspace import ROOT, VENV, clean_environment, python_of

from . import _readout_speed, geomean, machine_notes, peer, progress, threads

PEERS = ("torch",)
FOLDER = ROOT / "tests" / "readout_rows"
FIRST_PART = ("0x00", "0x01", "0x02", "0x03", "0x04", "0x05", "0x06", "0x07")


def specified():
    """Rows of all sections in order, each with its section."""
    return [{"section": path.stem, **row} for path in sorted(FOLDER.glob("*.json"))
            for row in json.loads(path.read_text(encoding="utf-8"))]


def has_pytest(python):
    return subprocess.run([str(python), "-c", "import pytest"], check=False, capture_output=True).returncode == 0


def outcomes(tests):
    """test id → passed, failed or skipped, from one pytest run a folder; {} when pytest is not installed."""
    python = next((p for p in (python_of(VENV), Path(sys.executable)) if p.exists() and has_pytest(p)), None)
    if python is None:
        progress("pytest is not installed: no named test runs")
        return {}
    found, suites = {}, {}
    for test in sorted(set(tests)):
        suites.setdefault(test.split("tests/")[0], []).append(test)
    for suite, chosen in suites.items():
        progress(f"{len(chosen)} named tests of {suite or 'tests'}")
        with tempfile.TemporaryDirectory() as temp:
            report = Path(temp) / "report.xml"
            command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *chosen]
            subprocess.run(command, cwd=ROOT, env=clean_environment(), stdout=sys.stderr, check=False)
            if report.exists():
                read_report(report, chosen, found)
    return found


def read_report(report, chosen, found):
    """Adds the outcome of every chosen test: failed when one of its parameters failed, skipped when all were."""
    states = {}
    for case in ElementTree.parse(report).iter("testcase"):
        tags = {child.tag for child in case}
        state = "failed" if tags & {"failure", "error"} else "skipped" if "skipped" in tags else "passed"
        states.setdefault((case.get("classname"), case.get("name").split("[")[0]), set()).add(state)
    for test in chosen:
        file, *names = test.split("::")
        key = ".".join([file.removesuffix(".py").replace("/", "."), *names[:-1]]), names[-1]
        seen = states.get(key, {"failed"})  # a test that did not run did not pass
        found[test] = next(state for state in ("failed", "passed", "skipped") if state in seen)


def coverage():
    """One row a specified row, with the outcome of its test."""
    wanted = specified()
    ran = outcomes(row["test"] for row in wanted if row["test"])
    table = []
    for row in wanted:
        status = "prose" if "why_no_test" in row else "open" if row["test"] is None else ran.get(row["test"], "not run")
        table.append({"section": row["section"], "table": row["title"], "row": row["row"], "test": row["test"],
                      "status": status, "why": row.get("why_no_test", "")})
    return table


def figures_of(table):
    """The four counts; the rows without anything to test count as covered."""
    counts = {}
    for suffix, part in (("", table), ("_00_07", [row for row in table if row["section"] in FIRST_PART])):
        counts[f"rows_total{suffix}"] = len(part)
        counts[f"rows_covered{suffix}"] = sum(row["status"] in ("passed", "prose") for row in part)
    return counts


def run(quick):
    torch, table = peer("torch"), coverage()
    figures, rows = figures_of(table), list(table)
    figures |= dict.fromkeys(f"{name}_vs_torch_1t" for name in ("pooling", "maxsim", "contrastive"))
    for part, shapes, sides in _readout_speed.parts(torch):
        with threads(1):
            measured = [_readout_speed.measure(part, shape, sides, quick) for shape in shapes]
        rows += measured
        figures[f"{part}_vs_torch_1t"] = geomean(row["vs_torch"] for row in measured)
    notes = [*machine_notes(), "status open: no test yet; prose: says where a statement comes from, nothing to test"]
    if torch is None:
        notes.append("torch is not installed: its ratios are missing")
    failed = [row["test"] for row in table if row["status"] in ("failed", "not run")]
    answer = {"figures": figures, "rows": rows, "notes": notes}
    return answer | ({"failed": f"named tests did not pass: {', '.join(failed)}"} if failed else {})
