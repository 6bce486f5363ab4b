"""A readout's life in releases: a folder of manifest, files and evidence; another calibrator; a changed file."""
import hashlib
import json

import pytest
from dx_labels.command import main
from dx_labels.evidence.audit import Ledger
from dx_labels.evidence.plan import EvaluationPlan, SlicePlan
from dx_labels.evidence.roles import ROLES, Member, SplitManifest
from dx_labels.release.identity import digest_of, frozen_digest
from dx_labels.release.of_readout import release_readout
from dx_labels.release.sources import readout_tuple

from dx_labels import below
from dx_labels.release import ReleaseError, Store, diff_releases

LABELS = ["no", "yes"]
PLAN = EvaluationPlan("single_label", {"labels": LABELS, "bins": 4}, {"accuracy.value": "0.7", "-cost.mean": "0.3"},
                      (SlicePlan("short", "little to read", "words", high=4.0, critical=True, floor="0.5", least=3),))
SCHEMA = "dx.readout.v1"


def manifest(files, **changes):
    made = {
        "artifact": {"architecture": "encoder", "backbone_sha256": "1" * 64, "head_sha256": "2" * 64,
                     "adapter": "none", "task_revision": "t1", "objective": "cross_entropy"},
        "input": {"tokenizer_sha256": "3" * 64, "max_length": 16, "truncation": "longest_first",
                  "truncation_side": "right", "padding_side": "right", "template": None,
                  "special_token_ids": {"cls": 101, "sep": 102, "pad": 0}},
        "rows": {"mask_source": "content_mask", "mask_polarity": "one_keeps", "include_special": False,
                 "include_prompt": False, "offsets_required": True, "word_ids_required": False, "pieces": None},
        "contextual_state": {"layers": [-1], "layers_kind": "one", "axes": ["batch", "row", "channel"], "width": 2,
                             "final_norm_applied": True, "parameter_dtype": "float32", "compute_dtype": "float32",
                             "accumulation_dtype": "float32"},
        "readout": {"family": "single_vector", "pooling": ["mean"], "weights": None, "attention": None,
                    "empty": "reject", "projection": None, "dropout": 0.0, "normalize": {"kind": "none"}},
        "output": {"kind": "classification", "labels": LABELS, "null_label": None},
        "score": {"type": "logit", "normalizes_operands": False, "temperature": None, "threshold": None,
                  "tie_rule": "lowest_index"},
        "runtime": {"framework_revision": "1", "numerics_version": below.NUMERICS_VERSION, "backend": "dx",
                    "device": "cpu", "export_format": "safetensors+json"},
        "release": {"schema": SCHEMA, "tests": ["probe"], "parent": None, "migration": None, "rollback_to": [],
                    "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}}}
    for part, fields in changes.items():
        made[part] |= fields
    made["release"]["content_id"] = digest_of(made)
    return made


def cases(wrong=(3,)):
    found = []
    for i in range(8):
        gold = LABELS[i % 2]
        right = i not in wrong
        p = 0.9 if right else 0.2
        predicted = gold if right else LABELS[1 - i % 2]
        found.append({"case": f"t{i}", "example": f"t{i}", "gold": gold, "predicted": predicted, "logits": [0.0, 1.0],
                      "probabilities": [p, 1 - p] if gold == "no" else [1 - p, p], "features": {"words": i}})
    return found


def write(folder, calibrator=None, parent_cases=None, wrong=(3,), ids=None, **changes):
    """A readout's folder with its evidence; the same ledger goes on."""
    folder.mkdir(exist_ok=True)
    files = {"head.bin": b"weights of the head", "labels.txt": b"no yes"}
    ids = ids or [case["example"] for case in cases()]
    members = [Member(f"{role}-1", role) for role in ROLES[:3]] + [Member(i, "promotion") for i in ids]
    splits = SplitManifest("d1", "CC0", "made here", "equal text", "l1", "exact label", PLAN.digest, tuple(members))
    one = readout_tuple(manifest(files, **changes), None, calibrator)
    frozen = frozen_digest(one)
    ledger = Ledger(folder / "audit.jsonl")
    ledger.use("fit calibration", "calibration", splits.ids("calibration"), subject=digest_of(calibrator))
    ledger.use("evaluate frozen candidate", "promotion", ids, subject=one.digest, frozen=frozen, plan=PLAN.digest)
    lines = {"cases.jsonl": cases(wrong), "parent_cases.jsonl": parent_cases}
    records = {"manifest.json": manifest(files, **changes), "readout.json": {"window": None, "calibrator": calibrator},
               "licences.json": {n: {"licence": "CC0", "origin": "made here"}
                                 for n in (*files, "manifest.json", "readout.json")},
               "contracts.json": {"training": {"task": "none"}, "runtime": {"batch": "any"},
                                  "export": {"abi": "logits"}},
               "splits.json": splits.to_json(), "plan.json": PLAN.to_json(), "parity_tests.json": [["probe", True]],
               "sources.json": [{"name": "dx", "revision": "0.1.0", "sha256": "4" * 64, "markers": {"pool": True}}],
               "oracles.json": [{"name": "padding", "passed": True, "seen": "3 layouts"}]}
    for name, data in files.items():
        (folder / name).write_bytes(data)
    for name, value in records.items():
        (folder / name).write_text(json.dumps(value))
    for name, value in lines.items():
        if value is not None:
            (folder / name).write_text("".join(json.dumps(v) + "\n" for v in value))
    return folder


def test_a_readout_becomes_a_candidate_and_another_head_follows_it(tmp_path, capsys):
    folder = write(tmp_path / "intents")
    assert main(["release", str(folder), "--readout", "--promote", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["state"] == "CANDIDATE" and first["kind"] == "readout" and first["current"] == 1
    write(folder, parent_cases=cases(), wrong=(), artifact={"head_sha256": "5" * 64})
    second = release_readout(folder)
    store = Store(folder / "releases")
    assert second["state"] == "CANDIDATE" and second["parent"]["digest"] == first["digest"]
    found = diff_releases(store.path(first["release"]), store.path(second["release"]))
    assert found["invalidated"] == ["raw_scores", "calibrated_scores", "decisions"]
    assert [one["field"] for one in found["fields"]] == ["head.artifact.head_sha256"]
    store.promote(second["digest"])
    assert store.rollback()["plan"]["drop"].keys() == {"raw_scores", "calibrated_scores", "decisions"}
    paired = json.loads((store.path(second["release"]) / "evaluation" / "paired.json").read_text())
    assert paired["transitions"]["wrong to right"] == 1 and paired["cases"] == {"t3": ["wrong to right", 1.0]}


def test_another_calibrator_needs_an_untouched_promotion_test(tmp_path):
    """Raw scores stay, the calibrated ones go; but the promotion test has seen these weights."""
    folder = write(tmp_path / "intents")
    Store(folder / "releases").promote(release_readout(folder)["digest"])
    write(folder, {"kind": "temperature", "value": 1.5}, parent_cases=cases())
    answer = release_readout(folder)
    assert answer["state"] == "RECONCILED" and "untouched promotion test" in answer["missing"][0]


def test_a_changed_runtime_stays_evaluated_until_parity_is_shown(tmp_path):
    folder = write(tmp_path / "intents")
    Store(folder / "releases").promote(release_readout(folder)["digest"])
    write(folder, parent_cases=cases(), runtime={"backend": "onnx"})
    answer = release_readout(folder)
    assert answer["state"] == "EVALUATED" and "no parity test has run" in answer["missing"][0]
    one, two = (readout_tuple(manifest({}, runtime={"backend": b})).part_digest("runtime") for b in ("dx", "onnx"))
    (folder / "parity.json").write_text(json.dumps({"old": one, "new": two, "cases": 8, "largest": 1e-6,
                                                    "allowance": 1e-5}))
    assert release_readout(folder)["state"] == "CANDIDATE"


def test_files_and_manifest_belong_together(tmp_path):
    folder = write(tmp_path / "intents")
    (folder / "head.bin").write_bytes(b"weights of another head")
    with pytest.raises(ReleaseError, match=r"release.files.head.bin"):
        release_readout(folder)
    write(folder)
    (folder / "labels.txt").unlink()
    with pytest.raises(ReleaseError, match=r"release.files.labels.txt"):
        release_readout(folder)
    (folder / "manifest.json").unlink()
    with pytest.raises(ReleaseError, match="manifest.json is missing"):
        release_readout(folder)


def test_case_ker_11_an_activation_is_in_the_manifest(tmp_path):
    """Case ker-11: a projection trained with one activation and served with another is another release; a name that
    nobody knows is refused."""
    base = {"out_features": 2, "bias": True, "activation": "gelu_erf"}
    one, two = (readout_tuple(manifest({}, readout={"projection": {**base, "activation": a}}))
                for a in ("gelu_erf", "tanh"))
    assert one.part_digest("readout") != two.part_digest("readout")
    folder = write(tmp_path / "x")
    wrong = manifest({"head.bin": b"weights of the head", "labels.txt": b"no yes"},
                     readout={"projection": {**base, "activation": "gelu"}})
    (folder / "manifest.json").write_text(json.dumps(wrong))
    with pytest.raises(ReleaseError, match="readout.projection"):
        release_readout(folder)


def test_answers_as_cases_are_page_text():
    from dx_labels.release.states import text_of
    assert text_of({"gold": ["x"], "predicted": "x"}) == "predicted" and text_of(cases()[0]) is None
