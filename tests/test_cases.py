"""Every case of cases.py that is said to be tested is named by a test; the others give a reason."""
import re

import cases
from devtools.workspace import ROOT

NAME = re.compile(r"\b(?:test_)?(num|ker|pkg|mod|io|tra|lab|cli|rea)[-_](\d\d)\b|"
                  r"\btest_(num|ker|pkg|mod|io|tra|lab|cli|rea)_(\d\d)_")


def named():
    """case → files whose tests name it."""
    found = {}
    for file in [*(ROOT / "tests").glob("test_*.py"), *(ROOT / "packages").glob("*/tests/**/test_*.py")]:
        text = file.read_text(encoding="utf-8")
        for match in NAME.finditer(text[text.index('"""', 3) + 3:] if text.startswith('"""') else text):
            found.setdefault("-".join(part for part in match.groups() if part), set()).add(file.name)
    return found


def test_tested_cases_are_named_by_a_test():
    missing = [case for case in cases.TESTED if case not in named()]
    assert not missing, "no test names these cases"


def test_a_case_is_tested_or_has_a_reason():
    assert not set(cases.TESTED) & set(cases.REASONS)
    assert all(len(reason) > 30 for reason in cases.REASONS.values())
    assert len(cases.TESTED) + len(cases.REASONS) == 123
    unknown = set(named()) - set(cases.TESTED) - set(cases.REASONS)
    assert not unknown, "tests name cases that cases.py does not have"
