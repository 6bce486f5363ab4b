"""`python -m dx_model`: what it prints, where it goes, and how it ends."""
import gzip
import hashlib
import json
import os
import subprocess
import sys

import dx_model as m
import pytest
from dx_model import command
from dx_model.docextract import DocExtract, DocExtractConfig

CONFIG = DocExtractConfig(fields=("total", "item"), repeated=("item",), roles=("question",), doc_types=("a", "b"),
                          hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, char_dim=4,
                          char_channels=4, position_buckets=4, pair_hidden=4, relation_size=2)


@pytest.fixture
def folder(tmp_path):
    """A folder with a model."""
    model = DocExtract.initial(CONFIG, 3)
    model.parameters["tag_head.bias"][1] = 4.0  # B-total: every page has one
    model.save_pretrained(tmp_path / "model")
    return tmp_path


def page(id="p", box=(5, 5, 9, 9), text="12.00"):
    return json.dumps({"id": id, "width": 100, "height": 50, "words": [{"text": text, "box": box}]})


def run(capsysbinary, *arguments):
    """(exit code, lines of stdout, stderr)."""
    code = command.main([str(a) for a in arguments])
    out, err = capsysbinary.readouterr()
    return code, out.decode().splitlines(), err.decode()


def test_columns_and_json_say_the_same(folder, capsysbinary):
    (folder / "p.jsonl").write_text(page() + "\n" + page("q", text="x\ty") + "\n")
    code, lines, err = run(capsysbinary, "extract", folder / "model", folder / "p.jsonl")
    assert code == 0 and err == "" and [line.split("\t")[:2] for line in lines] == [
        ["p", "total"], ["p", "item"], ["q", "total"], ["q", "item"]]
    assert lines[0].split("\t")[3] == "12.00"
    assert 0.9 < float(lines[1].split("\t")[2]) < 1 and lines[1].endswith("\t-") and lines[2].endswith("\tx y")
    code, lines, _ = run(capsysbinary, "extract", folder / "model", folder / "p.jsonl", "--json", "--relations")
    results = [json.loads(line) for line in lines]
    model = DocExtract.from_pretrained(folder / "model")
    assert code == 0 and results == [m.extract_page(model, p, relations=True).to_json()
                                     for p in m.read_pages(folder / "p.jsonl")]


def test_good_pages_are_written_and_bad_ones_reported(folder, capsysbinary):
    """Cases cli-04, cli-05."""
    for name, text in (("a", page("a")), ("b", "{broken"), ("c", page("c1") + "\n" + page("bad", (5, 5, 500, 9)) + "\n"
                                                           + page("c2"))):
        (folder / f"{name}.json").write_text(text)
    files = [folder / f"{name}.json" for name in ("missing", "a", "b", "c")]
    code, lines, err = run(capsysbinary, "extract", folder / "model", *files, "--json")
    assert code == 1 and err.splitlines()[-1] == "3 read, 3 failed"
    records = [json.loads(line) for line in lines]
    assert [r.get("id", "error") for r in records] == ["error", "a", "error", "c1", "error", "c2"]
    assert "missing.json" in records[0]["error"] and "b.json:1: not JSON" in records[2]["error"]
    assert "c.json:2: page 'bad', word 0 ('12.00'): box [5, 5, 500, 9]: x1 = 500" in records[4]["error"]
    code, lines, err = run(capsysbinary, "extract", folder / "model", files[2])
    assert code == 1 and lines == [] and "0 read, 1 failed" in err
    code, lines, err = run(capsysbinary, "extract", folder / "model", files[3], "--repair")
    assert code == 0 and len(lines) == 6 and "repaired: page 'bad'" in err


def test_documents_give_one_result(folder, capsysbinary):
    words = [{"text": t, "box": [1, 1, 2, 2], "page": p} for t, p in (("x", 0), ("y", 1))]
    (folder / "d.jsonl").write_text(json.dumps({"id": "d", "pages": [[9, 9], [9, 9]], "words": words}))
    code, lines, _ = run(capsysbinary, "extract", folder / "model", folder / "d.jsonl", "--json")
    result = json.loads(lines[0])
    assert code == 0 and len(lines) == 1 and [p["id"] for p in result["pages"]] == ["d/0", "d/1"]
    assert result["fields"]["total"]["page"] in (0, 1)


def test_models_that_cannot_be_used(folder, capsysbinary):
    (folder / "p.jsonl").write_text(page())
    (folder / "bad").write_bytes(b"\x80\x04.")
    for model, message in (("bad", "too few for a model file"), ("none", "No such file"), ("", "No such file")):
        for arguments in (["extract", folder / model, folder / "p.jsonl"], ["inspect", folder / model]):
            code, lines, err = run(capsysbinary, *arguments)
            assert code == 1 and lines == [] and message in err and err.startswith("python -m dx_model: ")


@pytest.mark.parametrize("arguments", [[], ["extract"], ["extract", "m"], ["nonsense"], ["inspect", "m", "--votes"],
                                       ["extract", "m", "p", "--alternatives", "-1"], ["extract", "m", "p", "--threads",
                                                                                      "0"]])
def test_usage(arguments, capsysbinary):
    """Case cli-08: codes are 0, 1, 2, 130."""
    code, lines, err = run(capsysbinary, *arguments)
    assert code == 2 and lines == [] and err


def test_inspect(folder, capsysbinary):
    file = folder / "model" / "model.safetensors"
    code, lines, _ = run(capsysbinary, "inspect", folder / "model", "--json")
    answer = json.loads(lines[0])
    assert code == 0 and answer["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert DocExtractConfig.from_json(answer["config"]) == CONFIG
    assert answer["parameters"] == DocExtract.initial(CONFIG, 0).parameters.flat.size
    code, lines, _ = run(capsysbinary, "inspect", file)
    assert code == 0 and answer["sha256"] in lines[1] and "total, item (repeated)" in lines[2]


def test_output_is_utf8_in_any_locale_and_hash_order(folder):
    """Case cli-02, and processes under several hash seeds: the same bytes."""
    (folder / "p.jsonl").write_bytes((page(text="“Rechnung” € 5") + "\n" + page("q", text="\ud800")).encode())
    outputs = set()
    locales = ({"LANG": "C", "LC_ALL": "C"}, {"LANG": "C.UTF-8"}, {"PYTHONIOENCODING": "cp932"})
    for seed, variables in enumerate(locales):
        for flag in ("", "--json"):
            done = subprocess.run([sys.executable, "-X", "utf8=0", "-m", "dx_model", "extract", "model", "p.jsonl",
                                   *flag.split()], cwd=folder, capture_output=True, check=True,
                                  env={**os.environ, **variables, "PYTHONHASHSEED": str(seed)})
            outputs.add((flag, done.stdout))
    assert len(outputs) == 2
    by_flag = {flag: out.decode("utf-8") for flag, out in outputs}
    assert "“Rechnung” € 5" in by_flag[""] and "“Rechnung” € 5" in by_flag["--json"] and "\\ud800" in by_flag["--json"]


def test_threads_do_not_show(folder, capsysbinary):
    with gzip.open(folder / "p.jsonl.gz", "wb") as file:
        for k in range(5):
            file.write(page(str(k), text="ab" * k).encode() + b"\n")
    outs = [run(capsysbinary, "extract", folder / "model", folder / "p.jsonl.gz", "--json", "--votes", "--threads", n)
            for n in (1, 2, 5)]
    assert outs[0][0] == 0 and len(outs[0][1]) == 5 and outs[0] == outs[1] == outs[2]
