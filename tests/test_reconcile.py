"""tools/reconcile.py on small made sources, and on the installed packages where these are the recorded releases."""
import hashlib
import importlib.metadata
import json
import re

import pytest
import reconcile
from dx_labels.release.states import _sources
from dx_model.readout import presets

BERT = '''
class BertPooler(nn.Module):
    def __init__(self, config):
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.activation = nn.Tanh()
    def forward(self, hidden_states):
        first = hidden_states[:, 0]
        pooled = self.dense(first)
        return self.activation(pooled)
class BertForSequenceClassification(Base):
    def __init__(self, config):
        self.bert = BertModel(config)
        self.dropout = nn.Dropout(classifier_dropout)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
    def forward(self, ids, labels=None):
        pooled_output = outputs[1]
        pooled_output = self.dropout(pooled_output)
        logits = self.classifier(pooled_output)
        if self.config.problem_type is None:
            kind = one("regression") or one("single_label_classification") or one("multi_label_classification")
class BertForTokenClassification(Base):
    def __init__(self, config):
        self.bert = BertModel(config, add_pooling_layer=False)
    def forward(self, ids, labels=None):
        sequence_output = outputs[0]
        sequence_output = self.dropout(sequence_output)
        logits = self.classifier(sequence_output)
        loss = loss_fct(logits.view(-1, self.num_labels), labels.view(-1))
class BertForQuestionAnswering(Base):
    def __init__(self, config):
        self.bert = BertModel(config, add_pooling_layer=False)
    def forward(self, ids):
        start_logits, end_logits = logits.split(1, dim=-1)
        ignored_index = start_logits.size(1)
        start_positions = start_positions.clamp(0, ignored_index)
        loss_fct = CrossEntropyLoss(ignore_index=ignored_index)
        total_loss = (start_loss + end_loss) / 2
'''
POOLING = '''
class Pooling(nn.Module):
    """Pools."""
    def forward(self, features):
        cls = torch.gather(x, 1, mask.argmax(dim=1))
        largest = x.masked_fill(mask == 0, float("-inf")).max(dim=1).values
        total = (x * mask).sum(dim=1)
        count = torch.clamp(mask.sum(1), min=1e-9)
        mean, root = total / count, total / torch.sqrt(count)
        weights = torch.arange(1, n + 1)
        last = mask.flip(1).max(1)
'''
NORMALIZE = '''
class Normalize(nn.Module):
    def forward(self, features):
        features.update({"sentence_embedding": F.normalize(features["sentence_embedding"], p=2, dim=1)})
'''
CROSS = '''
class CrossEncoder(nn.Module):
    @overload
    def predict(self, inputs): ...
    def predict(self, inputs, activation_fn=None, apply_softmax=False):
        """Scores."""
        self.eval()
        length_sorted_idx = np.argsort([-len(x) for x in inputs])
        scores = activation_fn(self.model(inputs).logits)
        if apply_softmax:
            scores = torch.nn.functional.softmax(scores, dim=1)
        return [scores[i] for i in np.argsort(length_sorted_idx)]
'''
SOURCES = {"hf_modeling_bert_0104732.py": BERT, "st_pooling_f6d3a40.py": POOLING, "st_normalize_f6d3a40.py": NORMALIZE,
           "st_cross_encoder_f6d3a4030d68.py": CROSS}


@pytest.fixture
def run(tmp_path, capsys):
    """Runs the command on SOURCES with changes: name → text, or None for none; gives (exit code, evidence, message)."""
    def go(changes=(), digests=None, more=()):
        texts = {name: text for name, text in {**SOURCES, **dict(changes)}.items() if text is not None}
        for name, text in texts.items():
            (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        lines = [f"{hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()}  {name}\n" for name in texts]
        (tmp_path / "SHA256SUMS").write_text("".join(lines) if digests is None else digests)
        files = [str(tmp_path / name) for name in texts]
        code = reconcile.main([*files, "--digests", str(tmp_path / "SHA256SUMS"), *more])
        seen = capsys.readouterr()
        return code, json.loads(seen.out) if seen.out else None, seen.err
    return go


def test_the_two_revisions_are_those_of_the_presets():
    assert reconcile.REVISIONS == presets.REVISIONS and set(reconcile.INSTALLED) == set(presets.REVISIONS)
    names = [one.name for one in presets.PRESETS]
    for one in reconcile.SETS:
        assert any(name == one.preset or name.startswith(one.preset + ".") for name in names), one.preset
    assert {name.rsplit(".", 1)[0] if ".Pooling." in name else name for name in names} == {
        one.preset for one in reconcile.SETS}


def test_seven_sets_of_markers_are_reconciled(run, tmp_path):
    code, found, message = run()
    assert (code, message) == (0, "") and [entry["state"] for entry in found] == ["RECONCILED"] * 4
    assert [c["symbol"] for entry in found for c in entry["contracts"]] == [one.symbol for one in reconcile.SETS]
    assert len(reconcile.SETS) == 7 and {entry["revision"] for entry in found} == set(reconcile.REVISIONS.values())
    assert found[0]["sha256"] == hashlib.sha256(BERT.encode()).hexdigest()
    _sources({"implementation/sources.json": json.dumps(found).encode()})  # what a release asks of its sources
    code, none, _ = run(more=["--out", str(tmp_path / "sources.json")])
    assert code == 0 and none is None and json.loads((tmp_path / "sources.json").read_text()) == found


POOL = "st_pooling_f6d3a40.py"


@pytest.mark.parametrize("text, message", [
    (b"<!DOCTYPE html>\n<html><body>file</body></html>", "a page or an error, no source"),
    (b"\n  <html>", "a page or an error"), (b"404: Not Found", "begins with '404: Not Found': a page or an error"),
    (b'{"message": "Not Found"}', "a page or an error"), (b"", "begins with ''"), (b"\xff\xfe", "not UTF-8"),
    (b"class Pooling(:\n", "not Python"), (b"x = 1\n", "none of Pooling, Normalize, CrossEncoder is defined there"),
    (b"# " + POOLING.replace("\n", "\n# ").encode(), "none of Pooling"),
    (POOLING.replace('float("-inf")', "-1e4"), "Pooling: the marker .*inf.* is missing"),
    (POOLING.replace("min=1e-9", "min=1"), "1e-0.9.* is missing: the contract '-inf max"),
    (POOLING.replace('"""Pools."""', '"""float("-inf")"""').replace('float("-inf")).max', "0).max"), "is missing")])
def test_what_is_no_evidence_is_refused(run, text, message):
    code, found, said = run({POOL: text})
    assert code == 1 and found is None and re.search(message, said), said


@pytest.mark.parametrize("name, before, after", [
    ("hf_modeling_bert_0104732.py", "hidden_states[:, 0]", "hidden_states[:, -1]"),
    ("hf_modeling_bert_0104732.py", "nn.Tanh()", "nn.GELU()"),
    ("hf_modeling_bert_0104732.py", "outputs[1]", "outputs[0]"),
    ("hf_modeling_bert_0104732.py", "start_logits.size(1)", "-100"),
    ("hf_modeling_bert_0104732.py", "labels.view(-1)", "labels"),
    ("st_normalize_f6d3a40.py", "p=2", "p=1"),
    ("st_cross_encoder_f6d3a4030d68.py", "self.eval()", "self.train()"),
    ("st_cross_encoder_f6d3a4030d68.py", "np.argsort(length_sorted_idx)", "length_sorted_idx")])
def test_a_changed_source_holds_its_contract_no_longer(run, name, before, after):
    assert before in SOURCES[name]
    code, found, said = run({name: SOURCES[name].replace(before, after)})
    assert code == 1 and found is None and "does not hold for this source" in said


def test_order_is_part_of_a_contract(run):
    turned = CROSS.replace("        self.eval()\n", "") + "        self.eval()\n"
    code, _, said = run({"st_cross_encoder_f6d3a4030d68.py": turned})
    assert code == 1 and "CrossEncoder: the marker" in said


def test_input_that_is_not_pinned_is_refused(run):
    lines = "".join(f"{hashlib.sha256(text.encode()).hexdigest()} *{name}\n" for name, text in SOURCES.items())
    for changes, digests, message in (
            ({POOL: None, "st_pooling_main.py": POOLING}, None, "st_pooling_main.py: not pinned: its name holds"),
            ({POOL: None, "st_pooling_abcdef0.py": POOLING}, None, "not pinned: its name holds"),
            ({POOL: None, "st_pooling_f6d3.py": POOLING}, None, "not pinned: its name holds"),
            ({}, "\n".join(lines.splitlines()[:1]) + "\n", "st_pooling_f6d3a40.py: not pinned: "),
            ({POOL: POOLING + "\n"}, lines, "its SHA-256 is "), ({}, lines + lines, "stands there twice"),
            ({}, "md5  a.py\n", "line 1 is 'md5  a.py'"), ({POOL: None}, None, "no source has Pooling: all 7 sets")):
        code, found, said = run(changes, digests)
        assert code == 1 and found is None and message in said, said
    assert run()[0] == 0 and run(digests=lines)[0] == 0


def test_usage(capsys, tmp_path):
    for arguments in ([], ["a.py"], ["--installed", "a.py"]):
        with pytest.raises(SystemExit) as stop:
            reconcile.main(arguments)
        assert stop.value.code == 2
    (tmp_path / "s").write_text("")
    assert reconcile.main([str(tmp_path / "gone_0104732.py"), "--digests", str(tmp_path / "s")]) == 1
    assert "not pinned" in capsys.readouterr().err


def test_the_installed_releases(capsys):
    """The recorded releases hold every contract; another release is refused and named."""
    code, seen = reconcile.main(["--installed"]), capsys.readouterr()
    try:
        versions = {name: importlib.metadata.version(name) for name in reconcile.INSTALLED}
    except importlib.metadata.PackageNotFoundError as error:
        assert code == 1 and f"{error.name} is not installed" in seen.err
        return
    wrong = [name for name, version in versions.items() if version != reconcile.INSTALLED[name][0]]
    if wrong:
        assert code == 1 and f"{wrong[0]} {versions[wrong[0]]} is installed: expected" in seen.err
        return
    found = json.loads(seen.out)
    assert code == 0 and len(found) == 4 and sum(len(entry["markers"]) for entry in found) == 7
    assert found[0]["revision"] == "release 5.24.0" and found[1]["revision"] == "release 6.2.0"
