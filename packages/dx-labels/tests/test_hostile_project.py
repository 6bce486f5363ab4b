"""Projects whose files somebody else wrote, cut or changed: a named error, never a traceback, and nothing is lost."""
import io
import json
import shutil
import sys

import pytest
import tiny_project
from dx_labels import Project, command, settings_from_json


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A trained project."""
    folder = tmp_path_factory.mktemp("hostile") / "p"
    tiny_project.write(folder)
    assert command.main(["train", str(folder), "--quiet", "--steps", "2"]) == 0
    return folder


@pytest.fixture
def folder(made, tmp_path):
    """A copy of it."""
    return shutil.copytree(made, tmp_path / "p")


@pytest.mark.parametrize("name, commands", [("settings.json", "train score"), ("splits.json", "score"), (
    "scores.json", "extract"), ("made.json", "inspect label"), ("labels.jsonl", "train score")])
@pytest.mark.parametrize("text", ["[1]", "5", '"x"', "null", "{", "", '{"a": 1}', '{"held_out": [[1]]}'])
def test_a_file_of_the_project_that_is_none(folder, capsys, name, commands, text):
    (folder / name).write_text(text)
    for verb in commands.split():
        more = [str(folder / "pages.jsonl")] if verb == "extract" else []
        code, (_, err) = command.main([verb, str(folder), *more]), capsys.readouterr()
        assert code == 1 and (name in err or "labels" in err) and "Traceback" not in err


@pytest.mark.parametrize("old, new, message", [('"runs":[', '"runs":[5,', "lists how and runs"), (
    '"page":"p000"', '"page":{}', "page is {}"), ('"field":"company"', '"field":"firm"', "no field 'firm'"), (
    '"value":"ACME LTD"', '"value":7', "value is 7")])
def test_labels_of_another_form_are_named_by_line(folder, capsys, old, new, message):
    path = folder / "labels.jsonl"
    path.write_text(path.read_text().replace(old, new, 1))
    assert command.main(["score", str(folder)]) == 1
    err = capsys.readouterr().err
    assert message in err and "labels.jsonl:" in err


def test_labels_made_from_other_pages_are_told(folder, capsys):
    (folder / "values.jsonl").write_text('{"id": "p001", "fields": {"total": "2.50"}}\n')
    assert command.main(["label", str(folder)]) == 0
    (folder / "values.jsonl").write_text('{"id": "p001", "fields": {"total": "11.10"}}\n')
    for verb in ("train", "score"):
        command.main([verb, str(folder)] + ["--fresh", "--steps", "1"] * (verb == "train"))
        assert "labels.jsonl is out of date: values.jsonl changed" in capsys.readouterr().err


def test_fresh_throws_nothing_away_before_all_else_is_right(folder, capsys):
    before = sorted(p.name for p in (folder / "run").iterdir())
    for wrong in (["--epochs", "-1"], ["--from", "nowhere"]):
        assert command.main(["train", str(folder), "--fresh", *wrong]) == 1
    assert sorted(p.name for p in (folder / "run").iterdir()) == before
    assert command.main(["train", str(folder), "--quiet", "--steps", "1"]) == 1
    assert "its settings differs" in capsys.readouterr().err
    assert command.main(["train", str(folder), "--quiet", "--steps", "1", "--fresh"]) == 0


def test_fresh_does_not_touch_a_run_that_another_process_works_in(folder, capsys):
    import fcntl
    before = sorted(p.name for p in (folder / "run").iterdir())
    with open(folder / "run" / "lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert command.main(["train", str(folder), "--fresh", "--quiet"]) == 1
    assert "in use" in capsys.readouterr().err
    assert sorted(p.name for p in (folder / "run").iterdir()) == before


@pytest.mark.parametrize("settings", [{"development": "1e400000000"}, {"held_out": "nan"}, {"held_out": "."}, {
    "train": {"learning_rate": 10 ** 400}}, {"train": {"loss_weights": {"tag": 10 ** 400}}}, {"train": {
        "loss_weights": 5}}, {"train": {"batch": 10 ** 9}}])
def test_settings_that_take_for_ever_or_no_float_holds(settings):
    with pytest.raises(ValueError):
        settings_from_json(settings)


def test_closed_standard_output_is_an_error_and_closed_errors_are_not(folder, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", None)
    assert command.main(["inspect", str(folder)]) == 1 and "stdout is closed" in capsys.readouterr().err
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", None)
    assert command.main(["inspect", str(folder / "nowhere")]) == 1 and out.getvalue() == ""


def test_what_others_note_at_the_same_time_is_kept(folder):
    """made.json is read and written anew under a lock."""
    from concurrent.futures import ThreadPoolExecutor
    names = [f"n{i}.json" for i in range(12)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: Project(folder).write_json(name, {}, "test"), names))
    assert set(names) <= set(json.loads((folder / "made.json").read_text()))


def test_pages_are_read_one_at_a_time(folder, capsys):
    """A broken line in the middle is met where it stands: what is before it was given already, what follows is kept."""
    lines = (folder / "pages.jsonl").read_text().splitlines()
    (folder / "pages.jsonl").write_text("\n".join([*lines[:4], "{broken", *lines[4:]]) + "\n")
    problems, seen = [], []
    for document in Project(folder).each_document(problems):
        seen.append((document.id, len(problems)))
    # one document ahead: whether the next line goes on with the same document must be known
    assert [n for _, n in seen] == [0] * 3 + [1] * 7 and "pages.jsonl:5" in problems[0]
    assert command.main(["check", str(folder), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["counts"]["broken line"] == 1
