"""The kernels-only example: without dx_model it gives dx_model's bits."""
import json
import subprocess
import sys
from pathlib import Path

import dx_model as m
import numpy as np
import pytest
from dx_model.docextract import DocExtract, DocExtractConfig

EXAMPLE = Path(__file__).resolve().parents[3] / "docs" / "examples" / "kernels_only.py"
WITHOUT_DX_MODEL = """
import importlib.abc, json, runpy, sys
class Blocker(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("dx_model", "dx_train", "dx_labels"):
            raise ImportError("blocked: " + name)
sys.meta_path.insert(0, Blocker())
fields = runpy.run_path(sys.argv[1])["fields"]
for page in json.load(open(sys.argv[3], encoding="utf-8")):
    result = fields(sys.argv[2], page["texts"], page["boxes"], page["lines"])
    print(json.dumps({name: [[text, sure if sure is None else sure.hex()] for text, sure in values]
                      for name, values in result.items()}))
"""


def pages(rng):
    """No word, one and many, pieces, letters of all kinds, lines; several windows; two columns of text."""
    texts = ["Total:12.00", "Date:2024-01-02", "№", "ﬁn", "(RM)", "漢字", "", "x" * 40, "é", "\u0378", "a", "7.25"]
    for count in (0, 1, 12, 90, 150, 400):
        words = []
        for i in range(count):
            x, y = 70.5 * (i % 6) + int(rng.integers(0, 9)), 20 * (i // 6) + int(rng.integers(0, 3))
            line = int(rng.integers(0, 5)) + 5 * (i // 6) if count == 150 and i % 4 else None
            words.append(m.Word(texts[int(rng.integers(0, len(texts)))], (x, y, x + 60, y + 15), line))
        order = rng.permutation(count)
        yield m.Page(f"p{count}", 500, 2000, [words[i] for i in order])
    yield m.Page("columns", 500, 500, [m.Word(texts[i % 12], (x, 20 * row, x + 34, 20 * row + 12)) for row in range(12)
                                       for i, x in enumerate((0, 40, 80, 120, 160, 240, 280, 320, 360, 400))])


@pytest.mark.skipif(not EXAMPLE.exists(), reason="the package is tested without its repository")
def test_the_example_gives_the_bits_of_dx_model(tmp_path, rng):
    config = DocExtractConfig(fields=("total", "date", "item"), repeated=("item",), hidden_size=32, num_hidden_layers=2,
                              num_attention_heads=4, intermediate_size=64, char_dim=8, char_channels=16,
                              position_buckets=32, pair_hidden=16, relation_size=4, max_words=100)
    model = DocExtract.initial(config, 11)
    for name, view in model.parameters.items():
        if name.endswith(("proj.weight", "fc2.weight", "bias")):
            view[...] = rng.standard_normal(view.shape) / 4
    model.repack()
    model.save_pretrained(tmp_path)
    made = list(pages(rng))
    (tmp_path / "pages.json").write_text(json.dumps([{"texts": p.texts, "boxes": [w.box for w in p.words],
                                                     "lines": [-1 if w.line is None else w.line for w in p.words]}
                                                     for p in made]))
    done = subprocess.run([sys.executable, "-c", WITHOUT_DX_MODEL, EXAMPLE, tmp_path / "model.safetensors",
                           tmp_path / "pages.json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == len(made)
    for page, line in zip(made, lines):
        expected = {name: [[v.text, v.confidence.hex()] for v in f.values] or [[None, f.absent.hex()]]
                    for name, f in m.extract_page(model, page).fields.items()}
        assert line == expected
    results = [m.extract_page(model, page) for page in made]
    assert [result.windows > 1 for result in results] == [False] * 3 + [True] * 4
    assert sum(len(f.values) for f in results[-2].fields.values()) > 1
    assert not np.array_equal(m.reading_order(made[-1])[0], m.reading_order(made[-1], columns=False)[0])


@pytest.mark.skipif(not EXAMPLE.exists(), reason="the package is tested without its repository")
def test_the_example_is_short_and_runs_as_a_program(tmp_path):
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) <= 150
    DocExtract.initial(DocExtractConfig(fields=("total",)), 1).save_pretrained(tmp_path)
    (tmp_path / "page.json").write_text(json.dumps({"words": [{"text": "5.00", "box": [0, 0, 9, 9]}]}))
    done = subprocess.run([sys.executable, EXAMPLE, tmp_path / "model.safetensors", tmp_path / "page.json"],
                          capture_output=True, text=True, check=True)
    field, sure, value = done.stdout.strip().split("\t")
    assert field == "total" and 0 <= float(sure) <= 1 and value in ("5.00", "None")
    assert np.isfinite(float(sure))


@pytest.mark.skipif(not EXAMPLE.exists(), reason="the package is tested without its repository")
def test_the_example_says_what_it_does_not_read(tmp_path):
    for config, page, message in (({}, {"words": [], "rotation": 90}, "the page is turned"),
                                  ({"keep_file_order": True}, {"words": []}, "in the order of the file")):
        DocExtract.initial(DocExtractConfig(fields=("total",), **config), 1).save_pretrained(tmp_path)
        (tmp_path / "page.json").write_text(json.dumps(page))
        done = subprocess.run([sys.executable, EXAMPLE, tmp_path / "model.safetensors", tmp_path / "page.json"],
                              capture_output=True, text=True)
        assert done.returncode == 1 and message in done.stderr and not done.stdout
