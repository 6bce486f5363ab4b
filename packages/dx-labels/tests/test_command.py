"""The dx command: its three names, its output, its exit codes."""
import json
import shutil
import subprocess
import sys
from pathlib import Path

import dx_labels
import pytest
from dx_labels import command


def launchers():
    folder = Path(sys.executable).parent
    found = [[shutil.which(name, path=str(folder))] for name in ("dx", "dx-labels")]
    return [*found, [sys.executable, "-m", "dx_labels"]]


@pytest.mark.parametrize("launcher", launchers(), ids=["dx", "dx-labels", "module"])
def test_three_names_give_the_same_json(launcher):
    done = subprocess.run([*launcher, "--version", "--json"], capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    assert done.stderr == ""
    assert answer["distributions"]["dx-labels"]["version"] == dx_labels.__version__
    assert Path(answer["distributions"]["dx-numerics"]["folder"], "include").is_dir()
    assert answer["path"] in answer["paths"]


def test_text_names_all_five(capsys):
    assert command.main(["--version"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in out[:5]] == [[name, dx_labels.__version__] for name in command.DISTRIBUTIONS]


def test_usage_errors_exit_2_and_stay_off_stdout(capsys):
    assert command.main([]) == 2
    assert command.main(["--nonsense"]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and "nonsense" in captured.err
    assert command.main(["--help"]) == 0


def test_the_digest_of_an_installation_is_that_of_its_files(tmp_path):
    """Equal for equal files wherever they are; another byte, another digest."""
    from importlib.metadata import Distribution
    digests = []
    for folder, text in (("a", "x = 1\n"), ("b", "x = 1\n"), ("c", "x = 2\n")):
        info = tmp_path / folder / "made-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Name: made\nVersion: 1\n")
        (info / "RECORD").write_text("made/m.py,,\nmade/m.pyc,,\nmade-1.dist-info/RECORD,,\n")
        (tmp_path / folder / "made").mkdir()
        (tmp_path / folder / "made" / "m.py").write_text(text)
        digests.append(command.installed_digest(Distribution.at(info)))
    assert digests[0] == digests[1] != digests[2] and len(digests[0]) == 64
    assert len({d["sha256"] for d in command.versions().values()}) == 5


def test_mixed_versions_are_a_failure(monkeypatch, capsys):
    mixed = {name: {"version": "0.1.0", "folder": "x"} for name in command.DISTRIBUTIONS}
    mixed["dx-kernels"] = {"version": "0.0.9", "folder": "x"}
    monkeypatch.setattr(command, "versions", lambda: mixed)
    assert command.main(["--version"]) == 1


@pytest.mark.parametrize("name", ["import", "check", "label", "train", "score", "extract", "serve-review", "next",
                                  "curve", "inspect"])
def test_cli_08_every_command_fails_with_a_small_code(name, tmp_path, capsys):
    """Case cli-08: 1 for what is not there, 2 for a wrong call; never negative, never above 125."""
    missing = str(tmp_path / "missing")
    more = {"import": ["--out", str(tmp_path / "out")], "extract": [missing]}.get(name, [])
    assert command.main([name, missing, *more]) == 1 and missing in capsys.readouterr().err
    for wrong in ([name], [name, missing, "--nonsense"]):
        assert command.main(wrong) == 2
