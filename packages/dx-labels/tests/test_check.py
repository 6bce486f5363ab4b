"""dx check, dx import and dx label with a labelling model; the cases lab-17, io-19, cli-01, cli-02, cli-04 to
cli-08."""
import json
import os
import subprocess
import sys

import pytest
import tiny_project
from dx_labels import command
from dx_labels.below import read_documents
from dx_labels.check import check_files, exit_code
from dx_labels.labels import read_labels
from dx_labels.project import Project
from dx_labels.schema import read_schema, schema_from_json

SCHEMA = schema_from_json({"fields": [{"name": "shop"}, {"name": "total", "type": "amount"}]})


def word(text, x0=5, y0=5, x1=60, y1=15):
    return {"text": text, "box": [x0, y0, x1, y1]}


def page(id, *texts, **more):
    return {"id": id, "width": 400, "height": 50, **more,
            "words": [word(t, 5 + 70 * i, 5, 65 + 70 * i, 15) for i, t in enumerate(texts)]}


def write(path, *values):
    path.write_text("".join((v if isinstance(v, str) else json.dumps(v)) + "\n" for v in values), encoding="utf-8")
    return path


def kinds(tmp_path, *pages, schema=None, values=None):
    found, documents, _ = check_files([write(tmp_path / "p.jsonl", *pages)], schema,
                                      lambda document: (values or {}).get(document.id))
    return [f.kind for f in found], found


def test_every_kind_is_found(tmp_path):
    bad = {**page("flipped"), "words": [word("a", 60, 5, 5, 15)]}
    over = {**page("over"), "words": [word("a", 5, 5, 500, 15)]}
    pages = [page("good", "ACME", "8.20"), "{broken", bad, over, page("good", "other"), page("blank", " "),
             page("none"),
             page("again", "ACME", "8.20"), {**page("nan"), "words": [{"text": "a", "box": [1, 2, "x", 4]}]}]
    found, listed = kinds(tmp_path, *pages)
    assert sorted(found) == ["box", "broken line", "broken line", "clipped box", "duplicate id", "duplicate page",
                             "empty page", "empty page"]
    assert ":2:" in listed[0].message and all(f.message for f in listed)
    assert next(f for f in listed if f.kind == "duplicate page").where == "again"


def test_values_are_looked_at(tmp_path):
    pages = [page("a", "ACME", "8.20"), page("b", "x", "y", "1.00"), page("c", "z"), page("d", "1.234"), page("e", "q")]
    values = {"a": {"shop": "ACME 8.20", "total": "8.20"}, "b": {"shop": "LOST", "total": "1.00"},
              "c": {"shpo": "z"}, "d": {"total": "1.234"}}
    found, listed = kinds(tmp_path, *pages, schema=SCHEMA, values=values)
    assert found == ["double claim", "double claim", "absent", "values", "ambiguous", "no values"]
    assert "'LOST' is on no page" in listed[2].message and "did you mean 'shop'" in listed[3].message
    assert "1234 or 1.234" in listed[4].message and exit_code(listed) == 1


def test_lab_17_misaligned_records_are_a_list(tmp_path):
    pages = [page(f"p{i:03}", "Hello", f"Norway{i}") for i in range(100)]
    values = {f"p{i:03}": {"shop": {"value": "Norway", "spans": [[1, 0, len(f"Norway{i}") - (i in (7, 50, 93))]]}}
              for i in range(100)}
    found, listed = kinds(tmp_path, *pages, schema=SCHEMA, values=values)
    assert found == ["misaligned"] * 3 and [f.where for f in listed] == ["p007", "p050", "p093"]
    assert exit_code(listed) == 1 and all("nearest border" in f.to_json()["message"] for f in listed)


def test_lab_16_17_the_commands_name_misaligned_spans(tmp_path, capsys):
    """`dx check` lists them as JSON, `dx label` names them and keeps the rest, and writes nothing with --strict."""
    folder = tmp_path / "p"
    tiny_project.write(folder, pages=[page("a", "Hello", "from", "Norway"), page("b", "Hello", "Norway")],
                       schema={"fields": ["shop"]})
    write(folder / "values.jsonl", {"id": "a", "fields": {"shop": {"value": "Norwa", "spans": [[2, 0, 5]]}}},
          {"id": "b", "fields": {"shop": "Norway"}})
    assert command.main(["check", str(folder), "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert (found["kind"], found["where"], found["field"]) == ("misaligned", "a", "shop")
    assert command.main(["label", str(folder), "--strict"]) == 1
    assert "page 'a', field 'shop': span [2, 0, 5] of 'Norway' is misaligned" in capsys.readouterr().err
    assert not (folder / "labels.jsonl").exists()
    assert command.main(["label", str(folder)]) == 1 and "[2, 0, 6]" in capsys.readouterr().err
    assert (folder / "labels.jsonl").read_text().count("\n") == 3


def test_io_19_unmapped_glyphs_are_counted(tmp_path):
    found, listed = kinds(tmp_path, page("a", "\ufffdee;", "\ufffd", "of\ufffdce"))
    assert found == ["unmapped glyphs"] and "holds 3 glyphs" in listed[0].message


def run(*arguments, env=None, **options):
    return subprocess.run([sys.executable, "-m", "dx_labels", *map(str, arguments)], capture_output=True,
                          env={**os.environ, **(env or {})}, **options)


def test_cli_07_warnings_and_errors_have_codes_of_their_own(tmp_path, capsys):
    clean = write(tmp_path / "a", page("a", "x"))
    clipped = write(tmp_path / "b", {**page("b"), "words": [word("a", 5, 5, 500, 15)]})
    flipped = write(tmp_path / "c", {**page("c"), "words": [word("a", 60, 5, 5, 15)]})
    assert [command.main(["check", str(p)]) for p in (clean, clipped, flipped)] == [0, 3, 1]
    assert command.main(["check", str(clipped), "--strict"]) == 1
    capsys.readouterr()
    assert command.main(["check", str(flipped), "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["counts"] == {"box": 1} and answer["findings"][0]["severity"] == "error"
    # cli-05, cli-08: a failure is 1, never 0 or negative
    assert command.main(["check", str(tmp_path / "missing")]) == 1


def test_check_of_a_project_and_of_a_file_with_a_schema(tmp_path, capsys):
    schema = {"fields": [*tiny_project.SCHEMA["fields"]], "date_order": "dmy"}
    project = tiny_project.write(tmp_path / "p", schema=schema)
    assert command.main(["check", project]) == 0
    schema = str(tmp_path / "p" / "schema.json")
    values = write(tmp_path / "v", {"id": "p000", "fields": {"company": "NOT THERE"}}, "broken")
    assert command.main(["check", str(tmp_path / "p" / "pages.jsonl"), "--schema", schema]) == 0
    capsys.readouterr()
    assert command.main(["check", str(tmp_path / "p" / "pages.jsonl"), "--schema", schema, "--values", str(values),
                         "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["counts"] == {"absent": 1, "values": 1}


def test_cli_01_a_byte_order_mark_is_no_part_of_a_file(tmp_path):
    schema = tmp_path / "s.json"
    schema.write_bytes(b'\xef\xbb\xbf{"fields": ["GESAMT", "DATUM"]}')
    for env in ({"LANG": "C", "LC_ALL": "C"}, {"PYTHONIOENCODING": "cp932", "PYTHONUTF8": "0"}):
        code = f"from dx_labels.schema import read_schema; print(read_schema({str(schema)!r}).names)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, env={**os.environ, **env})
        assert done.stdout.strip() == b"('GESAMT', 'DATUM')"


@pytest.mark.parametrize("mark", (b"", b"\xef\xbb\xbf"))
def test_cli_01_in_every_file_of_a_project(tmp_path, mark):
    """Pages, values, schema and settings with the mark and without give the same answer, in a Japanese locale too."""
    folder = tmp_path / "p"
    tiny_project.write(folder, pages=[page("a", "GESAMT", "DATUM")], schema={"fields": ["GESAMT"]}, settings={})
    write(folder / "values.jsonl", {"id": "a", "fields": {"GESAMT": "DATUM"}})
    for name in ("pages.jsonl", "values.jsonl", "schema.json", "settings.json"):
        (folder / name).write_bytes(mark + (folder / name).read_bytes())
    done = run("label", folder, "--json", env={"PYTHONIOENCODING": "cp932", "LANG": "C", "PYTHONUTF8": "0"})
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["outcomes"] == {"GESAMT": {"exact": 1}}


def test_cli_02_output_is_utf8_in_every_locale(tmp_path):
    pages = write(tmp_path / "p", page("a", "\u201cRechnung\u201d", "\u20ac 5", fields={"t": "\u201cRechnung\u201d x"}))
    schema = write(tmp_path / "s.json", {"fields": ["t"]})
    locales = {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "cp932"}, {"LC_ALL": "C.UTF-8"}
    outs = {run("check", pages, "--schema", schema, "--json", env=env).stdout for env in locales}
    assert len(outs) == 1 and "\u201cRechnung\u201d".encode() in outs.pop()


def test_cli_04_one_broken_line_of_three_keeps_the_others(tmp_path):
    pages = write(tmp_path / "p", page("a", "x", fields={"t": "x"}), "{broken", page("c", "y", fields={"t": "y"}))
    done = run("import", "pages", pages, "--to", tmp_path / "out", "--json")
    answer = json.loads(done.stdout)
    assert done.returncode == 1 and answer["documents"] == 2 and b":2:" in done.stderr
    assert [d.id for d in read_documents(tmp_path / "out" / "pages.jsonl")] == ["a", "c"]
    alone = run("import", "pages", write(tmp_path / "q", "{broken"), "--to", tmp_path / "none")
    assert alone.returncode == 1 and b"no document could be read" in alone.stderr  # cli-05


def test_import_makes_a_project_that_labels(tmp_path, capsys):
    pages = write(tmp_path / "p", {**page("r", "ACME", "8.20"), "fields": {"company": "ACME", "total": "8.20"}})
    assert command.main(["import", "sroie", str(pages), "--to", str(tmp_path / "out")]) == 0
    project = Project(tmp_path / "out")
    assert read_schema(project.schema_file).names == ("company", "date", "address", "total")
    assert set(json.loads((tmp_path / "out" / "made.json").read_text())) == {"pages.jsonl", "schema.json",
                                                                              "values.jsonl"}
    assert command.main(["label", str(tmp_path / "out")]) == 0
    assert [x.state for x in read_labels(tmp_path / "out" / "labels.jsonl")] == ["value", "none", "none", "value"]
    assert command.main(["import", "sroie", str(pages), "--to", str(tmp_path / "out")]) == 1
    assert "--replace" in capsys.readouterr().err
    assert command.main(["import", "sroie", str(pages), "--to", str(tmp_path / "out"), "--replace"]) == 0


def test_documents_of_several_pages_stay_whole(tmp_path):
    words = [{**word("ACME"), "page": 0}, {**word("8.20"), "page": 1}]
    document = {"id": "d", "width": 99, "height": 99, "pages": [[99, 99], [99, 99]], "words": words,
                "fields": {"advertiser": "ACME", "gross_amount": "8.20"}}
    pages = str(write(tmp_path / "p", document))
    assert command.main(["import", "deepform", pages, "--to", str(tmp_path / "out")]) == 0
    found, = Project(tmp_path / "out").documents()
    assert [p.texts for p in found.pages] == [["ACME"], ["8.20"]]
    assert command.main(["label", str(tmp_path / "out")]) == 0
    states = {(x.page, x.field): x.state for x in read_labels(tmp_path / "out" / "labels.jsonl")}
    assert states["d/0", "advertiser"] == states["d/1", "gross_amount"] == "value"


ASK = ("import json, sys; a = json.load(sys.stdin); open(sys.argv[1], 'a').write(a['id'] + ' '); "
       "print(json.dumps({'shop': a['pages'][0]['words'][0]['text']}) if a['id'] != 'b' else 'prose')")


def test_label_asks_a_command_and_nothing_twice(tmp_path, capsys):
    folder = tmp_path / "p"
    folder.mkdir()
    write(folder / "pages.jsonl", page("a", "ACME"), page("b", "B"), page("c", "C"), page("e", "E"))
    write(folder / "schema.json", {"fields": ["shop"]})
    write(folder / "values.jsonl", {"id": "e", "fields": {"shop": "E"}})
    (tmp_path / "ask.py").write_text(ASK)
    asking = f"{sys.executable} {tmp_path / 'ask.py'} {tmp_path / 'log'}"
    arguments = ["label", str(folder), "--command", asking, "--json"]
    assert command.main(arguments) == 1  # b was not labelled
    captured = capsys.readouterr()
    answer = json.loads(captured.out)
    assert answer["asked"]["asked"] == 2 and answer["outcomes"] == {"shop": {"exact": 3}} and "'b'" in captured.err
    assert command.main(arguments) == 1
    assert (tmp_path / "log").read_text() == "a b c b "  # the failure is asked again, the answers are not
    (folder / "values.jsonl").unlink()
    assert command.main(arguments) == 1
    assert (tmp_path / "log").read_text() == "a b c b b e "  # from answers/


def test_label_reads_a_file_of_values(tmp_path, capsys):
    folder = tmp_path / "p"
    folder.mkdir()
    write(folder / "pages.jsonl", page("a", "ACME"), page("b", "ACME"))
    write(folder / "schema.json", {"fields": ["shop"]})
    values = write(tmp_path / "v", {"id": "a", "fields": {"shop": "ACME"}}, {"id": "b", "values": {"shop": None}})
    assert command.main(["label", str(folder), "--values", str(values)]) == 0
    assert [x.state for x in read_labels(folder / "labels.jsonl")] == ["value", "none"]  # by id, equal pages or not


@pytest.mark.parametrize("arguments, words", [
    (["label", "p", "--endpoint", "http://x/"], "--endpoint and --model"), (["chekc", "p"], "did you mean 'check'"),
    (["check", "p", "--stict"], "did you mean '--strict'"),
    (["import", "srioe", "x", "--to", "y"], "did you mean 'sroie'"),
    (["import", "sroie", "x"], "--to")])
def test_usage_errors_suggest_the_right_word(tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert command.main(arguments) == 2 and words in capsys.readouterr().err


@pytest.mark.parametrize("name", ["check", "import", "label"])
def test_help_has_examples(capsys, name):
    assert command.main([name, "--help"]) == 0
    out = capsys.readouterr().out
    assert f"dx {name} " in out and "examples:" in out
