"""The main job on a small project: label, train, score, extract, inspect; resume; hostile input."""
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tiny_project as tiny
from dx_labels.command import main
from dx_labels.job import parts_of
from dx_labels.local_first import LocalFirst, extract
from dx_labels.project import Project
from dx_labels.settings import JobSettings, SettingsError, settings_from_json

from dx_labels import below


def ran(*arguments, code=0):
    assert main(list(arguments)) == code


def model_bytes(folder):
    return Path(folder, "model", "model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tiny.write(tmp_path_factory.mktemp("job") / "project")
    ran("train", folder, "--quiet")
    return folder


def test_every_file_says_what_made_it(trained, capsys):
    made = json.loads(Path(trained, "made.json").read_text())
    assert sorted(made) == ["labels.jsonl", "model/model.safetensors", "report.html", "scores.json", "splits.json"]
    assert all(entry["by"].startswith("dx ") and entry["from"] for entry in made.values())
    ran("inspect", trained, "--json")
    files = json.loads(capsys.readouterr().out)["files"]
    assert {one["state"] for one in files.values()} == {"as made"}


def test_inspect_sees_a_changed_file_and_what_is_out_of_date(tmp_path, trained, capsys):
    import shutil
    copy = shutil.copytree(trained, tmp_path / "copy")
    with open(copy / "labels.jsonl", "ab") as file:
        file.write(b" ")
    ran("inspect", str(copy), code=1)
    states = {line.split()[0]: line.split()[1:3] for line in capsys.readouterr().out.splitlines()}
    assert states["labels.jsonl"][0] == "changed" and states["scores.json"] == ["out", "of"]


def test_splits_follow_the_rule_and_share_no_document(trained):
    parts = json.loads(Path(trained, "splits.json").read_text())
    names = [name for part in parts.values() for name in part]
    assert len(names) == len(set(names)) == 10 and [len(p) for p in parts.values()] == [6, 2, 2]


def test_scores_and_thresholds_are_those_of_the_held_out_pages(trained, capsys):
    """Also case tra-10: scored after training, and again from the saved model, the numbers are the same."""
    written = json.loads(Path(trained, "scores.json").read_text())
    ran("score", trained, "--json", "--quiet")
    again = json.loads(capsys.readouterr().out)
    assert again["scores"] == written["scores"] and again["thresholds"] == written["thresholds"]
    assert again["pages"] == 2 and "these 2 pages" in written["thresholds"]["total"]["statement"]
    assert again["model"]["sha256"] == written["model"]["sha256"]


def test_the_report_stands_alone(trained):
    from html.parser import HTMLParser
    html = Path(trained, "report.html").read_text(encoding="utf-8")
    found = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attributes):
            found.append((tag, dict(attributes)))

    Reader().feed(html)
    assert not [tag for tag, _ in found if tag in ("script", "link", "img", "iframe")] and "://" not in html
    assert not [a for _, a in found if "src" in a or "href" in a]
    assert [tag for tag, _ in found].count("svg") >= 1 + 2 * 3
    for t in json.loads(Path(trained, "scores.json").read_text())["thresholds"].values():
        assert t["threshold"] is None and t["statement"].partition("no threshold: ")[2] in html
    assert "What was taken for what" in html and "weights of step" in html
    assert not re.search(r"[01]\.\d{5,}", re.sub(r"<style>.*?</style>|<(svg|path|circle|rect|text)[^>]*>", "", html))
    assert "company" in html and "learning" in html.lower() and "nan" not in html.lower()


def test_the_same_project_gives_the_same_bytes_whatever_the_threads(tmp_path, trained):
    other = tiny.write(tmp_path / "other")
    ran("train", other, "--quiet", "--threads", "3")
    assert model_bytes(other) == model_bytes(trained)
    assert Path(other, "labels.jsonl").read_bytes() == Path(trained, "labels.jsonl").read_bytes()


def test_killed_and_resumed_through_the_command_line_the_model_is_the_same(tmp_path, trained):
    """Killed without warning once it has a checkpoint; the second command goes on from there."""
    settings = {**tiny.SETTINGS, "train": {**tiny.SETTINGS["train"], "epochs": 60, "checkpoint_every": 2}}
    whole, broken = (tiny.write(tmp_path / name, settings=settings) for name in ("whole", "broken"))
    ran("train", whole, "--quiet")
    command = [sys.executable, "-m", "dx_labels", "train", broken, "--quiet"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 120
    while not list(Path(broken).glob("run/checkpoint-*")) and process.poll() is None and time.monotonic() < until:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL and not Path(broken, "model", "model.safetensors").exists()
    done = subprocess.run([*command[:-1]], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "continuing at step" in done.stderr
    assert model_bytes(broken) == model_bytes(whole)


def test_ctrl_c_keeps_everything_and_says_how_to_go_on(tmp_path):
    settings = {**tiny.SETTINGS, "train": {**tiny.SETTINGS["train"], "epochs": 3000, "checkpoint_every": 2}}
    folder = tiny.write(tmp_path / "p", settings=settings)
    process = subprocess.Popen([sys.executable, "-m", "dx_labels", "train", folder], stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 120
    while not list(Path(folder).glob("run/checkpoint-*")) and process.poll() is None and time.monotonic() < until:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "start the same run again" in err


def test_other_labels_are_another_run(tmp_path, capsys):
    folder = tiny.write(tmp_path / "p")
    ran("train", folder, "--quiet")
    tiny.write(tmp_path / "p", pages=[tiny.page(n) for n in range(1, 11)])
    ran("label", folder)
    capsys.readouterr()
    ran("train", folder, "--quiet", code=1)
    assert "belongs to another run" in capsys.readouterr().err
    ran("train", folder, "--quiet", "--fresh")


def test_going_on_from_a_model_keeps_its_held_out_pages_and_shows_them_before_and_after(tmp_path, trained, capsys):
    schema = {"fields": [{"name": "total", "type": "amount"}, *tiny.SCHEMA["fields"][:2],
                         {"name": "cash", "type": "amount"}]}
    folder = tiny.write(tmp_path / "more", pages=[tiny.page(n) for n in range(14)], schema=schema,
                        settings={**tiny.SETTINGS, "train": {**tiny.SETTINGS["train"], "epochs": 1}})
    ran("train", folder, "--from", trained, "--quiet", "--json")
    answer = json.loads(capsys.readouterr().out)
    held = json.loads(Path(trained, "splits.json").read_text())["held_out"]
    assert json.loads(Path(folder, "splits.json").read_text())["held_out"] == held
    old = answer["continued"]
    assert old["documents"] == 2 and old["fields"] == ["total", "company", "date"]
    before = json.loads(Path(trained, "scores.json").read_text())["scores"]["fields"]
    assert {name: old["before"]["fields"][name] for name in before} == before
    assert "Old pages" in Path(folder, "report.html").read_text(encoding="utf-8")


# --- extraction ------------------------------------------------------------------------------------------------------

def test_local_first_says_where_each_value_comes_from(trained):
    project = Project(trained)
    document = project.documents()[0]
    local, asked = project.local_first(), []

    def ask(one, names):
        asked.append((one.id, names))
        return {name: f"asked {name}" for name in names}

    mixed = LocalFirst(local.model, {"company": 0.0, "date": 1.1, "total": None}, ask)
    answer = extract(mixed, document)
    assert asked == [(document.id, ["date", "total"])]
    assert {name: one["source"] for name, one in answer["fields"].items()} == {
        "company": "model", "date": "labeller", "total": "labeller"}
    assert answer["fields"]["date"]["value"] == "asked date" and answer["fields"]["date"]["model"]["source"] == "unsure"
    assert extract(LocalFirst(local.model, {name: 0.0 for name in tiny_names()}, ask), document)["fields"].keys() == \
        answer["fields"].keys() and len(asked) == 1


def tiny_names():
    return [f["name"] for f in tiny.SCHEMA["fields"]]


def test_a_labelling_model_that_fails_leaves_the_fields_unsure(trained):
    def ask(one, names):
        raise OSError("no answer")

    local = Project(trained).local_first()
    answer = extract(LocalFirst(local.model, {}, ask), Project(trained).documents()[0])
    assert "no answer" in answer["error"] and {one["source"] for one in answer["fields"].values()} == {"unsure"}


def test_extract_reads_what_it_can_and_names_the_rest(tmp_path, trained, capsys):
    """cli-04: one broken line in the middle; the others are read, the exit code is 1."""
    pages = tmp_path / "new.jsonl"
    lines = [json.dumps(tiny.page(1)), '{"id": "broken"', json.dumps(tiny.page(2))]
    pages.write_text("\n".join(lines), encoding="utf-8")
    ran("extract", trained, str(pages), "--json", code=1)
    out, err = capsys.readouterr()
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line.get("id") for line in lines] == ["p001", None, "p002"] and f"{pages}:2" in lines[1]["error"]
    assert f"{pages}:2" in err and "2 read, 1 failed" in err


def test_a_missing_file_is_named_and_the_others_are_read(tmp_path, trained, capsys):
    pages = tmp_path / "new.jsonl"
    pages.write_text(json.dumps(tiny.page(1)) + "\n", encoding="utf-8")
    ran("extract", trained, str(tmp_path / "gone.jsonl"), str(pages), code=1)
    out, err = capsys.readouterr()
    assert "gone.jsonl" in err and len(out.splitlines()) == 3


# --- hostile input ---------------------------------------------------------------------------------------------------

def test_a_broken_line_in_the_middle_is_named_and_the_rest_trained_on(tmp_path, capsys):
    pages = [tiny.page(n) for n in range(9)]
    folder = tiny.write(tmp_path / "p", pages=[*pages[:4], '{"id": 5,', *pages[4:]])
    ran("train", folder, "--quiet", code=1)
    assert "pages.jsonl:5" in capsys.readouterr().err
    assert json.loads(Path(folder, "scores.json").read_text())["data"]["documents"] == 9


def test_long_short_empty_and_foreign_pages_go_through(tmp_path):
    long = tiny.page(20)
    long["height"] = 20 * 1300
    for r in range(8, 1258):
        for i in range(4):
            long["words"].append({"text": f"w{r}", "box": [10 + 40 * i, 20 * r, 45 + 40 * i, 20 * r + 12], "line": r})
    one = {"id": "one", "width": 10, "height": 10, "words": [{"text": "12.00", "box": [1, 1, 9, 9]}],
           "fields": {"total": "12.00"}}
    empty = {"id": "empty", "width": 10, "height": 10, "words": [], "fields": {}}
    arabic = tiny.page(21, fields={"company": "مكتبة النور", "total": "31.10"})
    arabic["words"][0:3] = [{"text": "النور", "box": [10, 0, 45, 12]}, {"text": "مكتبة", "box": [50, 0, 85, 12]}]
    folder = tiny.write(tmp_path / "p", pages=[long, one, empty, arabic, *map(tiny.page, range(8))],
                        settings={**tiny.SETTINGS, "train": {"steps": 3, "batch": 2}})
    ran("train", folder, "--quiet")
    assert json.loads(Path(folder, "scores.json").read_text())["data"]["documents"] == 12
    ran("extract", folder, str(Path(folder, "pages.jsonl")), "--quiet")


def test_sixty_fields_and_two_fields_with_one_value(tmp_path):
    names = [f"f{k:02d}" for k in range(57)]
    schema = {"fields": [*tiny.SCHEMA["fields"], *names]}
    pages = [tiny.page(n) for n in range(8)]
    for p in pages:
        p["fields"]["f00"] = p["fields"]["company"]
    folder = tiny.write(tmp_path / "p", pages=pages, schema=schema,
                        settings={**tiny.SETTINGS, "train": {"steps": 2, "batch": 2}})
    ran("train", folder, "--quiet")
    scores = json.loads(Path(folder, "scores.json").read_text())["scores"]["fields"]
    assert len(scores) == 60 and scores["f00"]["correct"]["n"] == scores["company"]["correct"]["n"] == 0


def test_two_documents_of_one_id_are_named_and_the_first_kept(tmp_path, capsys):
    folder = tiny.write(tmp_path / "p", pages=[*map(tiny.page, range(8)), tiny.page(3)])
    ran("label", folder, code=1)
    assert "'p003'" in capsys.readouterr().err


@pytest.mark.parametrize("spoil, message", [
    (lambda p: (p / "pages.jsonl").unlink(), "pages.jsonl"),
    (lambda p: (p / "schema.json").unlink(), "schema.json or schema.toml"),
    (lambda p: (p / "settings.json").write_text('{"trian": {}}'), "did you mean 'train'"),
    (lambda p: (p / "settings.json").write_text('{"held_out": 0}'), "held_out"),
    (lambda p: (p / "pages.jsonl").write_text(json.dumps(tiny.page(1))), "at least 3"),
    (lambda p: (p / "labels.jsonl").write_text("{}"), "labels.jsonl:1"),
])
def test_what_is_missing_or_wrong_is_named(tmp_path, capsys, spoil, message):
    folder = tiny.write(tmp_path / "p", count=4)
    spoil(tmp_path / "p")
    ran("train", folder, "--quiet", code=1)
    out, err = capsys.readouterr()
    assert message in err and out == ""


def test_usage_errors_suggest_the_right_word(capsys):
    for arguments, hint in ((["trian"], "'train'"), (["train", "x", "--epoch", "3"], "'--epochs'"),
                            (["extract", "m", "p", "--thread", "2"], "'--threads'")):
        ran(*arguments, code=2)
        out, err = capsys.readouterr()
        assert hint in err and out == ""


# --- plain functions -------------------------------------------------------------------------------------------------

def test_groups_stay_on_one_side():
    from dx_labels.labels import label_document
    from dx_labels.schema import schema_from_json
    schema = schema_from_json(tiny.SCHEMA)
    documents = [below.document_from_json(tiny.page(n, group=f"g{n % 5}")) for n in range(20)]
    labels = [label for d in documents for label in label_document(d, schema, d.pages[0].extra["fields"])]
    parts = parts_of(documents, labels, JobSettings(development="0.3"))
    sides = [{f"g{int(name[1:]) % 5}" for name in part} for part in parts]
    assert all(sides) and not (sides[0] & sides[1] or sides[1] & sides[2] or sides[0] & sides[2])


def test_settings_survive_json_and_name_what_is_wrong():
    settings = settings_from_json({"held_out": 0.25, "train": {"epochs": 3}})
    assert settings.held_out == "0.25" and settings_from_json(settings.to_json()) == settings
    for value, message in (({"model": {"hidden_sise": 3}}, "hidden_size"), ({"share": 2}, "share"), ([], "object"),
                           ({"train": {"batch": 0}}, "batch"), ({"seed": True}, "seed"), ({"places": "some"}, "places"),
                           ({"model": {"hidden_size": 30, "num_attention_heads": 4}}, "multiple")):
        with pytest.raises(SettingsError, match=message):
            settings_from_json(value)


def test_the_output_is_utf8_in_any_locale(trained, tmp_path):
    """cli-02: the same bytes under LANG=C as elsewhere."""
    pages = tmp_path / "new.jsonl"
    pages.write_text(json.dumps(tiny.page(3)) + "\n", encoding="utf-8")
    seen = set()
    for changes in ({"LANG": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "cp932"}, {"PYTHONUTF8": "1"}):
        done = subprocess.run([sys.executable, "-m", "dx_labels", "extract", trained, str(pages), "--json"],
                              capture_output=True, env={**os.environ, **changes})
        assert done.returncode == 0, done.stderr
        seen.add(done.stdout)
    assert len(seen) == 1


def test_without_epochs_and_steps_a_small_project_has_400_steps():
    assert settings_from_json(None).training(24).steps == 400
    assert settings_from_json({"train": {"batch": 4}}).training(400).steps == 2000
    assert settings_from_json({"train": {"epochs": 3}}).training(400).steps == 0


def test_normalised_values_of_dates_and_amounts(trained):
    answer = extract(Project(trained).local_first(), Project(trained).documents()[0])
    for name, one in answer["fields"].items():
        assert ("normalised" in one) == (name != "company")


def test_a_labeller_is_asked_for_the_open_fields_alone(trained):
    from dx_labels.local_first import asking

    class Teller:
        def label(self, document, schema):
            return {name: f"{document.id} {name}" for name in schema.names}

    project = Project(trained)
    local = project.local_first(asking(Teller(), project.schema()))
    answer = extract(LocalFirst(local.model, {"company": 0.0, "date": None, "total": 2.0}, local.ask, local.schema),
                     project.documents()[1])
    assert answer["fields"]["total"]["value"] == f"{answer['id']} total"
    assert [one["source"] for one in answer["fields"].values()] == ["model", "labeller", "labeller"]


def test_extract_asks_a_command_for_what_the_model_is_not_sure_of(tmp_path, trained, capsys):
    """The second time the answers come from the project's folder: the command would fail."""
    script, pages = tmp_path / "ask.py", tmp_path / "new.jsonl"
    script.write_text("import json, sys, os\njson.load(sys.stdin)\n"
                      "if os.path.exists(sys.argv[1]): sys.exit('asked twice')\nopen(sys.argv[1], 'w').close()\n"
                      "print(json.dumps({'company': 'asked', 'date': None, 'total': '1.00'}))\n")
    pages.write_text(json.dumps(tiny.page(77)) + "\n", encoding="utf-8")
    import shlex
    import shutil
    folder = shutil.copytree(trained, tmp_path / "p")
    scores = json.loads((folder / "scores.json").read_text())
    for one in scores["thresholds"].values():
        one["threshold"] = None
    (folder / "scores.json").write_text(json.dumps(scores))
    command = shlex.join([sys.executable, str(script), str(tmp_path / "seen")])
    for _ in range(2):
        ran("extract", str(folder), str(pages), "--json", "--quiet", "--command", command)
        answer = json.loads(capsys.readouterr().out)
        assert {name: one["value"] for name, one in answer["fields"].items()} == {
            "company": "asked", "date": None, "total": "1.00"}
        assert {one["source"] for one in answer["fields"].values()} == {"labeller"}


def test_asking_needs_a_project_and_both_halves_of_an_endpoint(trained, tmp_path, capsys):
    pages = str(tmp_path / "x.jsonl")
    ran("extract", str(Path(trained, "model")), pages, "--command", "true", code=1)
    assert "no trained project" in capsys.readouterr().err
    ran("extract", trained, pages, "--endpoint", "http://localhost:1", code=2)
    assert "go together" in capsys.readouterr().err
