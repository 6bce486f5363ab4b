"""The installed packages offer exactly what tests/contracts pins; what a package takes from below is pinned there."""
import sys

import pytest
from devtools import contracts
from devtools.workspace import PACKAGES, existing


@pytest.mark.parametrize("package", existing())
def test_the_installed_package_keeps_its_contract(package):
    lines = contracts.compare(contracts.pinned(package), contracts.actual(package, sys.executable))
    assert lines == [], "\n".join([*lines, "if this is meant: python tools/dev.py contracts --write"])


@pytest.mark.parametrize("package", existing()[1:])
def test_everything_taken_from_below_is_pinned_there(package):
    below = PACKAGES[PACKAGES.index(package) - 1]
    names = contracts.taken(package)
    pinned = contracts.pinned(below)
    assert names
    assert [n for n in names if n not in pinned and n.replace("name ", "module ", 1) not in pinned] == []


def test_every_contract_has_its_package():
    assert sorted(p.stem for p in contracts.FOLDER.glob("*.json")) == sorted(existing())


def test_all_differences_are_listed_at_once():
    lines = contracts.compare({"a": 1, "b": 2, "c": 3}, {"b": 4, "c": 3, "d": 5, "e": 6, "broken f": "why"})
    assert [line.split()[:2] for line in lines] == [["BROKEN", "f:"], ["REMOVED", "a"], ["CHANGED", "b"],
                                                    ["UNPINNED", "d"], ["UNPINNED", "e"]]


def test_a_pinned_file_is_in_the_form_the_tool_writes():
    for package in existing():
        file = contracts.FOLDER / f"{package}.json"
        assert file.read_text(encoding="utf-8") == contracts.text(contracts.pinned(package))
