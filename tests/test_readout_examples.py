"""The examples of docs/readout.md run and print what stands beside them."""
import contextlib
import io
import re

import pytest
from devtools.workspace import ROOT

TEXT = (ROOT / "docs" / "readout.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.M | re.S)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_an_example_prints_what_it_says(number):
    code = BLOCKS[number]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, f"docs/readout.md, example {number + 1}", "exec"), {})
    assert printed.getvalue().splitlines() == re.findall(r"^ *print\(.*\)\s+# (.*)$", code, re.M)


def test_there_are_examples():
    assert len(BLOCKS) >= 2
