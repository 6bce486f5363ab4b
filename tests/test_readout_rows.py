"""Every row of the tables that specify readouts has a test that exists: readout_rows/<section>.json, one row a line.

A row: table (1..27, in the text's order), title (of the table), row (its name in our words), test (a node id from the
root, without parameters; null while there is none, in sections 0x08 to 0x0A only), why_no_test (only where a row says
nothing that can be tested).
"""
import ast
import functools
import json

from devtools.workspace import ROOT

FOLDER = ROOT / "tests" / "readout_rows"
SECTIONS = ["0x00", "0x01", "0x02", "0x03", "0x04", "0x05", "0x06", "0x07", "0x08", "0x09", "0x0A"]


def rows(sections=SECTIONS):
    """(section, row) of these sections, in order."""
    for section in sections:
        for row in json.loads((FOLDER / f"{section}.json").read_text(encoding="utf-8")):
            yield section, row


@functools.cache
def functions(file):
    """Names of a test file's test functions; Class::name for those of a class."""
    found = set()
    for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return found


def test_there_are_all_tables_and_rows():
    assert {path.stem for path in FOLDER.glob("*.json")} == set(SECTIONS)
    everything = [row for _, row in rows()]
    assert sorted({row["table"] for row in everything}) == list(range(1, 28))
    assert len(everything) == len({(row["table"], row["row"]) for row in everything}) == 171
    assert sum(1 for _ in rows(SECTIONS[:8])) == 113
    assert [row["table"] for row in everything] == sorted(row["table"] for row in everything)


def test_a_row_has_one_test_or_is_of_the_six_without():
    for section, row in rows():
        assert set(row) - {"why_no_test"} == {"table", "title", "row", "test"}, (section, row)
    without = [row for _, row in rows() if "why_no_test" in row]
    assert len(without) == 6 and {row["table"] for row in without} == {3}
    assert all(row["test"] is None and len(row["why_no_test"]) > 30 for row in without)
    for section, row in rows(SECTIONS[:8]):
        assert row["test"] is not None or "why_no_test" in row, (section, row["row"])


def test_named_tests_exist():
    missing = []
    for section, row in rows():
        if row["test"] is not None:
            file, _, name = row["test"].partition("::")
            if "[" in name or not (ROOT / file).is_file() or name not in functions(file):
                missing.append(f"{section} {row['row']}: {row['test']}")
    assert missing == []
