"""A small project's life in releases: train, promote, change one thing of each layer, roll back; kills, changes."""
import json
import os
import shutil
import sys
from pathlib import Path

import pytest
import tiny_project as tiny
from dx_labels.command import main
from dx_labels.job import start_from, train_project
from dx_labels.local_first import extract
from dx_labels.project import VERSION, Project
from dx_labels.release.bundle import SUMS, json_bytes, record, verify_files, write_bundle
from dx_labels.release.graph import INVALID, REUSABLE, STATES
from dx_labels.release.identity import effect_between
from dx_labels.release.of_project import loaded
from dx_labels.release.serving import local_first
from dx_labels.release.sources import docextract_tuple
from dx_labels.release.store import admit_caches, admit_restored, tuple_of

from dx_labels.release import ReleaseError, Store, bundle_digest, diff_releases, release_project, verify_release

SETTINGS = {**tiny.SETTINGS, "held_out": "0.4", "share": "0.5", "least": 1}
PLAN = {"kind": "fields", "gates": {"right.value": "0.1"}, "settings": {"bins": 5}, "slices": [
    {"name": "company", "hypothesis": "the first line", "feature": "field", "equals": "company", "critical": True,
     "floor": "0.1", "least": 3}]}


@pytest.fixture(autouse=True)
def without_waiting_for_the_disk(monkeypatch):
    """That every file is made durable is what the test of kills counts; elsewhere it only takes time."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def trained(folder, count=24, **changes):
    tiny.write(folder, count, settings={**SETTINGS, **changes})
    (folder / "evaluation.json").write_text(json.dumps(PLAN))
    train_project_quietly(folder)
    return Project(folder)


def train_project_quietly(folder):
    assert main(["train", str(folder), "--quiet"]) == 0


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """A trained project, its first release, which is current, and a second one trained with another seed on top."""
    project = trained(tmp_path_factory.mktemp("story") / "project", 24)
    first = release_project(project)
    store = Store(project.path("releases"))
    store.promote(first["digest"])
    shutil.copytree(project.path("model"), project.path("model-1"))
    settings = {**SETTINGS, "train": {**SETTINGS["train"], "epochs": 3}}
    project.path("settings.json").write_text(json.dumps(settings))
    shutil.rmtree(project.path("run"))
    train_project_quietly(project.folder)
    second = release_project(project)
    return {"project": project, "store": store, "first": first, "second": second}


@pytest.fixture
def copied(story, tmp_path):
    """The store as it is after the first promotion, to be changed by a test."""
    shutil.copytree(story["store"].folder, tmp_path / "releases")
    return Store(tmp_path / "releases")


def test_both_releases_are_candidates_without_page_text(story):
    for one in (story["first"], story["second"]):
        assert one["state"] == "CANDIDATE" and one["missing"] == [] and one["holds_page_text"] is False
    assert story["second"]["parent"] == {"digest": story["first"]["digest"], "tuple": story["first"]["tuple"],
                                         "trained_on_promotion": 0}
    whole = b"".join(data for name, data in verify_files(story["store"].path(story["second"]["release"])).items()
                     if not name.endswith(".safetensors"))
    assert not any(text.encode() in whole for text in ("ACME", "Blue River", "商店", "Bread", "03/2021"))


def test_promotion_then_rollback_restores_the_whole_tuple(story, copied):
    assert copied.promote(story["second"]["digest"])["serial"] == 2
    back = copied.rollback()
    assert back["release"] == story["first"]["release"] and back["serial"] == 3
    files = verify_files(copied.current_path())
    admit_restored(tuple_of(files), tuple_of(verify_files(copied.path(story["first"]["release"]))))
    old_model = story["project"].path("model-1/model.safetensors").read_bytes()
    assert files["manifest/artifact/model.safetensors"] == old_model
    assert set(back["plan"]["drop"]) == set(STATES) and back["plan"]["changes"][0] == "backbone"
    assert [step["why"] for step in back["history"]] == ["promotion", "promotion", "rollback"]


def test_the_same_project_gives_the_same_release_again_also_without_its_caches(story, tmp_path):
    """Everything derived is thrown away, the project trained again: model, thresholds, release have the same bytes."""
    folder = shutil.copytree(story["project"].folder, tmp_path / "again")
    for name in ("run", "model", "model-1", "releases", "answers"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in ("labels.jsonl", "splits.json", "scores.json", "report.html", "made.json", "audit.jsonl"):
        (folder / name).unlink()
    (folder / "settings.json").write_text(json.dumps(SETTINGS))
    train_project_quietly(folder)
    assert release_project(Project(folder))["digest"] == story["first"]["digest"]
    assert release_project(Project(folder))["digest"] == story["first"]["digest"]


def test_a_change_of_each_layer_invalidates_what_the_table_says(story):
    """weights, label order, threshold: of the tuple that the files give."""
    files = verify_files(story["store"].path(story["first"]["release"]))
    (_, chosen), project = loaded(files), story["project"]
    schema, base = project.schema(), tuple_of(files)

    def effect(change=None, thresholds=chosen, calibrator=None):
        other, _ = loaded(files)
        if change:
            other.parameters[change][0] += 1
        found = effect_between(base, docextract_tuple(other, schema, thresholds, VERSION, calibrator))
        return [found[state] for state in STATES]

    assert effect() == [REUSABLE] * 5
    assert effect("char_emb.weight") == effect("blocks.0.qkv.weight") == [INVALID] * 5
    assert effect("tag_head.weight") == [REUSABLE, INVALID, INVALID, INVALID, INVALID]  # this head reads rows
    assert effect(calibrator={"kind": "temperature", "value": 2.0}) == [REUSABLE] * 3 + [INVALID] * 2
    assert effect(thresholds={**chosen, "total": 0.125}) == [REUSABLE] * 4 + [INVALID]
    found = diff_releases(*(story["store"].path(story[name]["release"]) for name in ("first", "second")))
    assert found["invalidated"] == list(STATES) and "backbone.tensors" in [one["field"] for one in found["fields"]]


def test_a_threshold_that_changes_after_the_promotion_test_needs_a_new_one(story, tmp_path):
    folder = shutil.copytree(story["project"].folder, tmp_path / "tuned")
    scores = json.loads((folder / "scores.json").read_text())
    scores["settings"]["share"] = "1"
    scores["settings"]["least"] = 4
    (folder / "scores.json").write_text(json.dumps(scores))
    answer = release_project(Project(folder))
    assert answer["tuple"] != story["second"]["tuple"] and answer["state"] == "RECONCILED"
    assert "need a new, untouched promotion test" in answer["missing"][0]
    with pytest.raises(ReleaseError, match="expected CANDIDATE"):
        Store(folder / "releases").promote(answer["digest"])


def test_slices_and_floors_cannot_be_chosen_after_the_results(story, tmp_path):
    folder = shutil.copytree(story["project"].folder, tmp_path / "late")
    (folder / "evaluation.json").write_text(json.dumps({**PLAN, "gates": {"right.value": "0"}}))
    answer = release_project(Project(folder))
    assert answer["state"] == "RECONCILED" and "came after its results" in answer["missing"][0]


def test_a_failed_critical_slice_is_not_averaged_away(tmp_path, story):
    folder = shutil.copytree(story["project"].folder, tmp_path / "floor")
    shutil.rmtree(folder / "releases")
    (folder / "audit.jsonl").unlink()
    slices = [{**PLAN["slices"][0], "equals": "total", "floor": "0.99"}]
    (folder / "evaluation.json").write_text(json.dumps({**PLAN, "slices": slices, "gates": {"right.value": "0"}}))
    answer = release_project(Project(folder))
    assert answer["state"] == "RECONCILED" and "slice 'company': failed" in " ".join(answer["missing"])
    slices[0]["least"] = 1000
    (folder / "evaluation.json").write_text(json.dumps({**PLAN, "slices": slices}))
    (folder / "audit.jsonl").unlink()
    assert "too few" in " ".join(release_project(Project(folder))["missing"])


def test_a_plan_that_cannot_fail_is_refused_before_the_test_is_read(story, tmp_path):
    folder = shutil.copytree(story["project"].folder, tmp_path / "planless")
    before = (folder / "audit.jsonl").read_bytes()
    (folder / "evaluation.json").unlink()
    with pytest.raises(ReleaseError, match="gate or critical slice"):
        release_project(Project(folder))
    assert (folder / "audit.jsonl").read_bytes() == before


def test_texts_are_held_only_when_asked_for_and_the_release_says_so(story, tmp_path):
    answer = release_project(story["project"], store=tmp_path, parent=None, with_text=True)
    assert answer["holds_page_text"] is True
    files = verify_files(tmp_path / answer["release"])
    release = {**record(files, "manifest/release.json"), "holds_page_text": False}
    path = write_bundle(tmp_path, {**files, "manifest/release.json": json_bytes(release)})
    assert verify_release(path)["state"] == "DRAFT" and "holds page text" in verify_release(path)["missing"][0]


# --- rollback refuses ------------------------------------------------------------------------------------------------

def test_a_rollback_to_a_release_that_was_changed_or_lost_is_refused(story, copied):
    copied.promote(story["second"]["digest"])
    before = copied.current()
    target = copied.path(story["first"]["release"]) / "manifest" / "artifact" / "thresholds.json"
    target.write_bytes(target.read_bytes().replace(b"0", b"1", 1))
    with pytest.raises(ReleaseError, match=r"thresholds.json has the digest"):
        copied.rollback()
    shutil.rmtree(copied.path(story["first"]["release"]))
    with pytest.raises(ReleaseError, match="expected one of"):
        copied.rollback()
    assert copied.current() == before and verify_release(copied.current_path())["state"] == "CANDIDATE"


def test_old_weights_beside_a_new_label_map_threshold_or_cache_are_no_rollback(story):
    files = [verify_files(story["store"].path(story[name]["release"])) for name in ("first", "second")]
    old, new = map(tuple_of, files)
    for part in ("head", "decision", "runtime", "readout", "calibrator", "input"):
        mixed = type(old)("docextract", {**old.parts, part: {**new.parts[part], "other": 1}})
        with pytest.raises(ReleaseError, match=f"rollback is incomplete: {part}"):
            admit_restored(mixed, old)
    admit_caches(old.namespaces(), old)
    with pytest.raises(ReleaseError, match="vector_cache"):
        admit_caches({"vector_cache": new.namespaces()["vector_cache"]}, old)


def test_only_what_was_current_once_is_known_to_be_good(story, copied):
    with pytest.raises(ReleaseError, match="first one"):
        copied.rollback()
    with pytest.raises(ReleaseError, match="was never current"):
        copied.rollback(story["second"]["release"])
    with pytest.raises(ReleaseError, match="nothing to go back from"):
        Store(copied.folder / "empty").rollback()


def test_a_release_on_another_parent_than_the_current_one_is_not_promoted(story, copied):
    answer = release_project(story["project"], store=copied.folder, parent=None)
    with pytest.raises(ReleaseError, match="release it again"):
        copied.promote(answer["digest"])


# --- a bundle's files ------------------------------------------------------------------------------------------------

def test_every_change_of_a_bundle_is_found(story, tmp_path):
    good = story["store"].path(story["second"]["release"])
    names = [name for name in verify_files(good)]
    assert {name.split("/")[0] for name in names} == {"manifest", "evaluation", "implementation", "lifecycle"}
    for change in [*names, SUMS, "added", "linked", "lost", "emptied"]:
        folder = shutil.copytree(good, tmp_path / "copy")
        if change == "added":
            (folder / "lifecycle" / "more.json").write_text("{}")
        elif change == "linked":
            (folder / names[0]).unlink()
            (folder / names[0]).symlink_to(good / names[0])
        elif change == "lost":
            (folder / names[-1]).unlink()
        elif change == "emptied":
            (folder / SUMS).write_bytes(b"")
        else:
            data = bytearray((folder / change).read_bytes())
            data[len(data) // 2] ^= 1
            (folder / change).write_bytes(data)
        with pytest.raises(ReleaseError):
            verify_release(folder)
        shutil.rmtree(folder)
    assert verify_release(good, story["second"]["digest"])["state"] == "CANDIDATE"
    with pytest.raises(ReleaseError, match="expected 0000"):
        verify_release(good, "0" * 64)


def test_records_that_were_rewritten_with_their_digests_do_not_pass(story, tmp_path):
    """Whoever makes new sums for changed records is caught by what the records follow from."""
    good = verify_files(story["store"].path(story["second"]["release"]))

    def state(path, change):
        value = record(good, path)
        change(value)
        return verify_release(write_bundle(tmp_path, {**good, path: json_bytes(value)}))

    def better(value):
        value["result"]["figures"]["right"]["k"] += 1

    assert "not what the cases give" in state("evaluation/result.json", better)["missing"][0]
    kept = state("lifecycle/compatibility.json", lambda v: v["states"].update(decisions=REUSABLE))
    assert kept["state"] == "EVALUATED" and "compatibility" in kept["missing"][0]
    other = state("lifecycle/rollback.json", lambda v: v.update(target="f" * 64))
    assert other["state"] == "EVALUATED"
    failed = state("implementation/oracles.json", lambda v: v[0].update(passed=False))
    assert failed["state"] == "DRAFT" and "did not pass" in failed["missing"][0]
    unpinned = state("implementation/sources.json", lambda v: v[0].update(revision=""))
    assert unpinned["state"] == "DRAFT" and "not pinned" in unpinned["missing"][0]
    leaking = state("manifest/splits.json", lambda v: v["members"].append({**v["members"][0], "role": "promotion"}))
    assert leaking["state"] == "RECONCILED" and "stands in" in leaking["missing"][0]
    with pytest.raises(ReleaseError, match=r"decision.thresholds"):
        state("manifest/artifact/thresholds.json", lambda v: v.update(total=0.5))


def test_case_pkg_05_one_folder_is_enough(story, tmp_path):
    """Case pkg-05: the release's folder alone answers, without the project."""
    folder = shutil.copytree(story["store"].path(story["first"]["release"]), tmp_path / "alone")
    (model, chosen), page = loaded(verify_files(folder)), Project(story["project"].folder).documents()[0]
    assert set(chosen) == set(model.config.fields) == {"company", "date", "total"}
    local = local_first(folder)
    assert local.thresholds == chosen and set(extract(local, page)["fields"]) == set(chosen)
    assert extract(local, page) == extract(local_first(story["store"].folder), page)  # the current one is that one
    (folder / "manifest" / "artifact" / "schema.json").write_text("{}")
    with pytest.raises(ReleaseError, match="schema.json"):
        local_first(folder)


def test_case_pkg_07_every_tensor_file_has_licence_and_origin(story, tmp_path):
    """Case pkg-07: from scratch, or from which weights, is said of each file; nothing is reconciled without."""
    files = verify_files(story["store"].path(story["first"]["release"]))
    licences = record(files, "manifest/licences.json")
    assert "from scratch" in licences["model.safetensors"]["origin"]
    del licences["model.safetensors"]["licence"]
    path = write_bundle(tmp_path, {**files, "manifest/licences.json": json_bytes(licences)})
    assert "model.safetensors has no licence" in verify_release(path)["missing"][0]
    start = start_from(story["project"].path("model-1"))
    assert len(start.digest) == 64 and start.digest == start_from(story["project"].path("model-1")).digest


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a forked process")
def test_a_kill_at_every_step_leaves_the_old_release_usable(story, copied):
    """A process that dies at its k-th durable step, for every k: the current release stays whole, and the next one to
    write succeeds."""
    files = verify_files(copied.path(story["second"]["release"]))
    shutil.rmtree(copied.path(story["second"]["release"]))
    steps = 0
    while _dies_at(steps, lambda: copied.add(files)):
        assert copied.names() == [story["first"]["release"]] or copied.names() == sorted(
            [story["first"]["release"], story["second"]["release"]])
        assert verify_release(copied.current_path())["digest"] == story["first"]["digest"]
        steps += 1
    assert steps > len(files)
    assert not [p for p in copied.folder.iterdir() if p.name.startswith(".new-")]
    promoted = 0
    while _dies_at(promoted, lambda: copied.promote(story["second"]["digest"])):
        assert copied.current()["release"] in (story["first"]["release"], story["second"]["release"])
        verify_release(copied.current_path())
        promoted += 1
    assert promoted >= 2 and copied.current()["release"] == story["second"]["release"]
    backs = 0
    while _dies_at(backs, lambda: copied.rollback(story["first"]["release"])):
        verify_release(copied.current_path())
        backs += 1
    assert copied.current()["release"] == story["first"]["release"]


def _dies_at(step, work) -> bool:
    """Runs work in a child that is killed before its step-th fsync or rename; was it killed?"""
    child = os.fork()
    if child == 0:
        done = 0

        def counting(call):
            def one(*arguments, **options):
                nonlocal done
                if done == step:
                    os._exit(9)
                done += 1
                return call(*arguments, **options)
            return one

        os.fsync = counting(lambda handle: None)  # the machine goes on: nothing is lost that was written
        os.rename, os.replace = counting(os.rename), counting(os.replace)
        try:
            work()
        except BaseException as error:
            print(error, file=sys.stderr)
            os._exit(1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 9)
    return code == 9


# --- the commands ----------------------------------------------------------------------------------------------------

def test_the_commands(story, tmp_path, capsys):
    folder = str(shutil.copytree(story["project"].folder, tmp_path / "project"))
    releases = Path(folder, "releases")

    def ran(*arguments, code=0):
        capsys.readouterr()
        assert main(list(arguments)) == code
        return capsys.readouterr()

    answer = json.loads(ran("release", folder, "--promote", "--json", "--quiet").out)
    assert answer["digest"] == story["second"]["digest"] and answer["current"] == 2
    assert json.loads(ran("release", folder, "--plan").out)["kind"] == "fields"
    new, old = str(releases / story["second"]["release"]), str(releases / story["first"]["release"])
    assert "CANDIDATE" in ran("verify", new, "--digest", answer["digest"], "--state", "CANDIDATE").out
    assert "expected 0" in ran("verify", new, "--digest", "0" * 64, code=1).err
    assert "backbone.tensors" in ran("diff", old, new).out and json.loads(ran("diff", old, new, "--json").out)["fields"]
    assert "no field of the semantic tuple differs" in ran("diff", new, new).out
    assert f"current {story['first']['release']}" in ran("rollback", folder).out
    assert bundle_digest(Store(releases).current_path()) == story["first"]["digest"]
    ran("rollback", folder, "--to", "f" * 16, code=1)
    assert ran("extract", str(releases), str(Path(folder, "pages.jsonl"))).out.count("\ttotal\t") == 24
    ran("verify", folder, code=1)


def test_training_on_from_a_model_is_told_as_the_origin(story, tmp_path):
    folder = shutil.copytree(story["project"].folder, tmp_path / "on")
    shutil.rmtree(folder / "run")
    start = start_from(folder / "model-1")
    answer = train_project(Project(folder), start=start, tell=lambda text: None, progress=False)
    assert answer["model"]["start"] == start.digest
