"""The prepared file and python -m dx_train."""
import json
import os
import signal
import subprocess
import sys
import time

import dx_train
import numpy as np
import pytest
import tiny
from dx_train import DocExtract, DocExtractConfig, PreparedError, page_examples, read_prepared
from dx_train.command import main

HEAD = {"kind": "dx-train", "format": 1, "fields": ["date", "total"]}
SMALL = [part for size in ("hidden_size=32", "num_hidden_layers=1", "num_attention_heads=2", "intermediate_size=64",
                           "char_dim=8", "char_channels=16", "pair_hidden=8") for part in ("--model-size", size)]
FEW = ["--steps", "4", "--batch", "2", "--warmup", "1", "--checkpoint-every", "1"]


def lines(count=5, head=HEAD):
    rows = [head]
    for k in range(count):
        page, values = tiny.receipt(k)
        rows.append(dx_train.page_to_json(page) | {"places": {n: [values[n]] for n in head["fields"] if n in values}})
    return rows


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def test_it_trains_continues_and_says_the_digest(tmp_path, capsys):
    file = write(tmp_path / "a.jsonl", lines())
    assert main([file, str(tmp_path / "one"), "--json", "--quiet", *SMALL, *FEW]) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["steps"] == 4 and first["examples"] == 5
    assert main([file, str(tmp_path / "two"), "--json", "--quiet", "--threads", "3", *SMALL, *FEW]) == 0
    assert json.loads(capsys.readouterr().out)["sha256"] == first["sha256"]
    more = write(tmp_path / "b.jsonl", lines(3, HEAD | {"fields": ["shop", "total"]}))
    assert main([more, str(tmp_path / "three"), "--model", str(tmp_path / "one"), *FEW]) == 0
    assert DocExtract.from_pretrained(tmp_path / "three").config.fields == ("shop", "total")
    assert "4 steps" in capsys.readouterr().out


def test_development_file(tmp_path, capsys):
    """The best weights on it are the result; another schema is refused; its digest belongs to the run."""
    file, other = write(tmp_path / "a.jsonl", lines(8)), lines(12)
    held = write(tmp_path / "held.jsonl", [HEAD, *other[9:]])
    options = ["--steps", "60", "--batch", "4", "--warmup", "5", "--learning-rate", "0.005", "--evaluate-every", "15"]
    assert main([file, str(tmp_path / "x"), "--development", held, "--json", *SMALL, *options]) == 0
    answer = json.loads(capsys.readouterr().out)
    scores = {e["step"]: e["score"] for e in dx_train.read_log(tmp_path / "x") if "score" in e}
    assert list(scores) == [15, 30, 45, 60] and answer["best_score"] == max(scores.values()) >= 0.8
    _, pages = read_prepared(held)
    model = DocExtract.from_pretrained(tmp_path / "x")
    assert dx_train.FieldF1(dx_train.prepared_examples(pages, model.config))(model) == answer["best_score"]
    write(tmp_path / "held.jsonl", [HEAD, *other[10:]])
    assert main([file, str(tmp_path / "x"), "--development", held, *SMALL, *options]) == 1
    assert "its development file differs" in capsys.readouterr().err
    wrong = write(tmp_path / "wrong.jsonl", lines(2, HEAD | {"fields": ["shop"]}))
    assert main([file, str(tmp_path / "y"), "--development", wrong, *SMALL, *FEW]) == 1


def test_field_f1():
    """By hand: one place of two found, one wrong run, one field without a term, one value missed."""
    class Given:
        config = DocExtractConfig(fields=("date", "total", "shop"), repeated=("shop",))

        def forward(self, page, heads):
            return dx_train.Outputs(tag=np.eye(7, dtype=np.float32)[page] * 20)

    def example(tags, fields, places):
        return dx_train.Example("e", np.array(tags), dx_train.Targets(
            run_fields=np.array(fields, np.int32), run_places=np.array(places, np.int32).reshape(-1, 3)))

    first = example([1, 2, 0, 3, 5], [0, 1], [[0, 0, 1], [0, 3, 3], [1, 4, 4]])
    assert dx_train.FieldF1([first])(Given()) == 2 * 1 / (2 + 2)
    assert dx_train.FieldF1([first, example([0, 0], [0, 1], [[1, 0, 0]])])(Given()) == 2 * 1 / (2 + 3)
    assert dx_train.FieldF1([example([0], [0], [])])(Given()) == 1.0
    assert dx_train.FieldF1([example([5, 0, 5], [2, 2], [[0, 0, 0], [1, 2, 2]])])(Given()) == 1.0


def test_exit_codes(tmp_path, capsys):
    file = write(tmp_path / "a.jsonl", lines())
    assert main([file, str(tmp_path / "x"), "--batch", "0"]) == 2 and "batch = 0" in capsys.readouterr().err
    assert main([file, str(tmp_path / "x"), "--model-size", "size=3"]) == 2
    with pytest.raises(SystemExit) as stop:
        main([file, str(tmp_path / "x"), "--nothing"])
    assert stop.value.code == 2
    assert main([str(tmp_path / "none.jsonl"), str(tmp_path / "x")]) == 1 and "none.jsonl" in capsys.readouterr().err
    assert main([file, str(tmp_path / "x"), "--model", file]) == 1 and "a.jsonl" in capsys.readouterr().err
    assert main([file, str(tmp_path / "x"), *SMALL, *FEW]) == 0
    assert main([file, str(tmp_path / "x"), *SMALL, *FEW, "--seed", "1"]) == 1
    assert "belongs to another run: its settings, starting model differ" in capsys.readouterr().err


def test_ctrl_c_ends_with_130(tmp_path):
    file = write(tmp_path / "a.jsonl", lines())
    command = [sys.executable, "-m", "dx_train", file, str(tmp_path / "x"), *SMALL, "--steps", "100000", "--batch", "2",
               "--checkpoint-every", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while not (tmp_path / "x").is_dir() or not list((tmp_path / "x").glob("checkpoint-*")):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        error = process.communicate(timeout=60)[1]
    assert process.returncode == 130 and "start the same run again to continue" in error and "Traceback" not in error


def test_the_curve_is_an_image(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib (extra plot) is not installed")
    settings = tiny.R(tiny.SETTINGS, evaluate_every=4)
    tiny.train(tmp_path, settings, development=tiny.score)
    dx_train.loss_curve(tmp_path, tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_targets_of_a_prepared_page():
    """B and I on every place; a value split by another word, and a word of two fields, are unknown."""
    config = DocExtractConfig(fields=("date", "total", "shop"), cut=False)
    words = [dx_train.Word(text, (10.0 + 40 * i, 10.0, 40.0 + 40 * i, 20.0)) for i, text in enumerate("abcdef")]
    page = dx_train.Page("p", 400, 100, words)
    one, = page_examples(page, {"date": [[0, 1], [4]], "total": [[2]], "shop": []}, config)
    assert one.id == "p#0" and one.targets.tag.tolist() == [1, 2, 3, 0, 1, 0]
    assert one.targets.run_fields.tolist() == [0, 1, 2]
    assert one.targets.run_places.tolist() == [[0, 0, 1], [0, 4, 4], [1, 2, 2]]
    split, = page_examples(page, {"date": [[0, 2]], "total": [[3]], "shop": [[3, 4]]}, config)
    assert split.targets.tag.tolist() == [-1, 0, -1, -1, 6, 0] and split.targets.run_fields.tolist() == []
    part, = page_examples(page, {"total": [[2]]}, config)
    assert part.targets.tag.tolist() == [-1, -1, 3, -1, -1, -1] and part.targets.run_fields.tolist() == [1]


def test_windows_of_a_prepared_page():
    """Each row is supervised once; a place cut by a window's end gives that window no run term."""
    config = DocExtractConfig(fields=("date", "total"), max_words=8, cut=False)
    words = [dx_train.Word("w", (10.0 + 20 * i, 10.0, 20.0 + 20 * i, 20.0)) for i in range(14)]
    page = dx_train.Page("p", 400, 100, words)
    made = page_examples(page, {"date": [[1]], "total": [[7, 8]]}, config)
    assert [e.id for e in made] == ["p#0", "p#1"] and [len(e.page) for e in made] == [8, 8]
    assert sum(int(np.count_nonzero(e.targets.tag >= 0)) for e in made) == 14
    assert made[0].targets.run_fields.tolist() == [0] and made[1].targets.run_fields.tolist() == [0, 1]
    assert made[1].targets.run_places.tolist() == [[1, 1, 2]]


@pytest.mark.parametrize("rows, match", [
    ([], "no first line"), ([{"id": "a"}], 'a.jsonl:1: the first line must be an object with "kind"'),
    ([HEAD | {"format": 2}], "format 2: this version reads 1"), ([HEAD | {"fields": []}], "fields is empty"),
    ([HEAD], "no page"), ([HEAD, {"id": "a"}], "a.jsonl:2: expected a page with places"),
    ([HEAD, lines()[1], lines()[1]], "a.jsonl:3: a second page 'r0'"),
    ([HEAD, lines()[1] | {"places": {"iban": []}}], "places of 'iban': expected some of date, total"),
    ([HEAD, lines()[1] | {"places": {"date": [3]}}], "expected a list of places"),
    ([HEAD, lines()[1] | {"places": {"date": [[99]]}}], "word 99: expected 0 to"),
    ([HEAD, lines()[1] | {"width": -1}], "a.jsonl:2: page 'r0': width")])
def test_broken_prepared_files(rows, match, tmp_path):
    with pytest.raises(PreparedError, match=match.replace("[", r"\[")):
        read_prepared(write(tmp_path / "a.jsonl", rows))


def test_messages_and_progress_stay_off_stdout(tmp_path):
    file = write(tmp_path / "a.jsonl", lines())
    done = subprocess.run([sys.executable, "-m", "dx_train", file, str(tmp_path / "x"), *SMALL, *FEW, "--json"],
                          capture_output=True, text=True, env=os.environ | {"PYTHONUTF8": "0", "LANG": "C"})
    assert done.returncode == 0 and len(json.loads(done.stdout)["sha256"]) == 64 and "%|" not in done.stderr
