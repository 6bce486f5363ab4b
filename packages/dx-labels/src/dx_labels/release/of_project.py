"""A release of a docextract project: its model, schema and thresholds with the evidence that a candidate needs.

The held-out documents are cut in two by the rule with seed + 2: thresholds are chosen anew on the calibration half and
then frozen; the promotion half is read once, by the frozen candidate.
"""
import json
import tempfile
from pathlib import Path

from ..below import DocExtract
from ..evaluation import evaluate
from ..evidence.audit import Ledger, up_to
from ..evidence.plan import plan_from_json
from ..evidence.roles import Member, SplitManifest
from ..job import group_of, thresholds
from ..labels import labels_digest
from ..project import VERSION, ProjectError
from ..settings import settings_from_json
from ..splits import split
from .bundle import json_bytes, record, records, verify_files
from .cases import default_plan, project_cases
from .graph import Parity, ReleaseError
from .identity import SemanticTuple, digest_of, frozen_digest
from .oracles import code_sources, model_oracles
from .package import package
from .sources import docextract_tuple
from .store import Store
from .verify import artifact_tuple, verify_release

SEED_STEP = 2  # of the cut of the held-out documents; 0 and 1 made the project's own splits
FEWEST_WORDS = 5  # a page with fewer says too little to be called a copy of another
ABOUT = {"licence": "not stated", "provenance": "documents of this project",
         "deduplication": "pages of equal words and boxes stay in one role"}


def project_plan(project):
    """The project's evaluation.json, or the default plan."""
    value = project.read_json("evaluation.json")
    return default_plan(project.schema().names) if value is None else plan_from_json(value)


def project_splits(project, documents, schema, plan, settings):
    """SplitManifest of a trained project: pages with their role, group and document."""
    parts = project.read_json("splits.json")
    if parts is None:
        raise ProjectError(f"{project.folder}: there is no splits.json yet: run `dx train {project.folder}` first")
    by_id = {d.id: d for d in documents}
    groups = {d.id: group_of(d) for d in documents}
    held = [name for name in parts["held_out"] if name in by_id]
    if len(held) < 2:
        raise ReleaseError(f"{len(held)} documents are held out: expected at least 2, one for thresholds and one for "
                           "the promotion test")
    own = {name: groups[name] for name in held}
    calibration, promotion = split(held, "0.5", settings.seed + SEED_STEP, own if any(own.values()) else None)
    roles = (("train", parts["training"]), ("development", parts["development"]), ("calibration", calibration),
             ("promotion", promotion))
    members = [Member(page.id, role, groups[name], None if page.id == name else name, content(page))
               for role, names in roles for name in names if name in by_id for page in by_id[name].pages]
    about = {**ABOUT, **{k: v for k, v in (project.read_json("release.json") or {}).items() if k in ABOUT}}
    dataset = digest_of([[m.id, m.content or ""] for m in members])
    return SplitManifest(dataset, about["licence"], about["provenance"], about["deduplication"], schema.digest,
                         "fields: places of words, all or nothing", plan.digest, tuple(members))


def content(page):
    """Digest of a page's words and boxes; None for a page of fewer than FEWEST_WORDS."""
    if len(page.words) < FEWEST_WORDS:
        return None
    return digest_of([[w.text.encode("utf-8", "surrogatepass").hex(), [float(v) for v in w.box]] for w in page.words])


def release_project(project, *, store=None, parent="current", with_text: bool = False, tell=print) -> dict:
    """Makes a release of a trained project.

    Parameters
    ----------
    project : Project, trained
    store : folder of releases; None: releases/ of the project
    parent : name of the parent release; "current": the one that is current, if any; None: no parent
    with_text : per-case outputs hold the texts of gold and predicted values; the release says so

    Returns
    -------
    dict, as verify_release's. The same project, ledger and parent give the same bytes.
    """
    store = Store(project.path("releases") if store is None else store)
    schema, settings = project.schema(), settings_from_json(_trained_settings(project))
    documents, labels = project.documents([]), project.labels(schema)
    model = DocExtract.from_pretrained(project.path("model"), fields=schema.names)
    plan = project_plan(project)
    if not plan.can_fail:
        raise ReleaseError(f"{project.path('evaluation.json')}: a plan with a gate or critical slice is needed before "
                           f"the promotion test is read: begin with `dx release {project.folder} --plan`")
    splits, by_id = project_splits(project, documents, schema, plan, settings), {d.id: d for d in documents}

    def of(role):
        names = [m.parent or m.id for m in splits.members if m.role == role]
        return [by_id[name] for name in dict.fromkeys(names)]

    ledger = Ledger(project.path("audit.jsonl"))
    made = frozen_digest(docextract_tuple(model, schema, dict.fromkeys(schema.names), VERSION))
    ledger.use("fit weights", "train", splits.ids("train"), subject=made, frozen=made)
    ledger.use("choose settings", "development", splits.ids("development"), subject=made, frozen=made)
    rows = evaluate(model, of("calibration"), labels, schema.names)
    pages = len(splits.ids("calibration"))
    chosen = {t.field: t.value for t in thresholds(rows, schema, settings, pages)}
    ledger.use("fit thresholds", "calibration", splits.ids("calibration"), subject=digest_of(chosen), frozen=made)
    one = docextract_tuple(model, schema, chosen, VERSION)
    ledger.use("evaluate frozen candidate", "promotion", splits.ids("promotion"), subject=one.digest, frozen=made,
               plan=plan.digest)
    tell(f"{len(splits.ids('promotion'))} pages of the promotion test")
    cases = project_cases(model, of("promotion"), labels, schema.names, chosen, with_text=with_text)
    files = package(
        one, artifact=_artifact(project, schema, chosen), licences=_licences(project), plan=plan, splits=splits,
        contracts=_contracts(project, settings, labels, schema), cases=cases, sources=code_sources(VERSION),
        audit=up_to(ledger.entries(), one.digest),
        oracles=model_oracles(model, [p for d in of("promotion") for p in d.pages]),
        **_of_parent(store, parent, one, of("promotion"), documents, labels, schema.names, with_text))
    return verify_release(store.add(files))


def _trained_settings(project):
    scores = project.read_json("scores.json")
    if scores is None:
        raise ProjectError(f"{project.folder}: there is no trained model yet: run `dx train {project.folder}` first")
    return scores["settings"]


def _artifact(project, schema, chosen):
    return {"model.safetensors": project.path("model/model.safetensors").read_bytes(),
            "schema.json": json_bytes(schema.to_json()), "thresholds.json": json_bytes(chosen)}


def _licences(project):
    """Licence and origin of every file of the artifact; release.json of the project says the licence."""
    licence = (project.read_json("release.json") or {}).get("licence", ABOUT["licence"])
    start = project.read_json("scores.json")["model"].get("start")
    origin = ("trained from scratch: its initial weights are drawn from the seed, and training again gives these bytes"
              if start is None else f"training went on from the weights {start}")
    return {"model.safetensors": {"licence": licence, "origin": origin},
            "schema.json": {"licence": licence, "origin": "written by the project's owner"},
            "thresholds.json": {"licence": licence, "origin": "chosen on the calibration examples"}}


def _contracts(project, settings, labels, schema):
    scores = project.read_json("scores.json")
    return {"training": {"settings": settings.to_json(), "labels": labels_digest(labels, schema),
                         "model": scores["model"], "numerics_version": scores["numerics_version"]},
            "runtime": {"input": "pages as words with boxes", "output": "fields",
                        "padding": "none: a window has exactly its words", "batching": "every page on its own"},
            "export": {"format": "dx container", "files": ["model.safetensors", "schema.json", "thresholds.json"]}}


def loaded(files):
    """(DocExtract, thresholds) of a bundle's files."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "model.safetensors").write_bytes(files["manifest/artifact/model.safetensors"])
        model = DocExtract.from_pretrained(folder)
    return model, json.loads(files["manifest/artifact/thresholds.json"])


def _of_parent(store, parent, one, promotion, documents, labels, fields, with_text) -> dict:
    """What package() needs of the parent: it answers the same promotion pages."""
    if parent == "current":
        now = store.current()
        parent = None if now is None else now["digest"]
    if parent is None:
        return {}
    folder = store.path(parent)
    verify_release(folder)
    files = verify_files(folder)
    model, chosen = loaded(files)
    missing = [name for name in fields if name not in chosen]
    if missing:
        raise ReleaseError(f"the parent release has no field {', '.join(missing)}: name no parent (--no-parent): "
                           "nothing can be compared case by case")
    cases = project_cases(model, promotion, labels, fields, chosen, with_text=with_text)
    stated = record(files, "manifest/release.json")["tuple"]
    old = SemanticTuple(stated["kind"], stated["parts"])
    parity = None
    if old.parts["runtime"] != one.parts["runtime"]:
        parity = runtime_parity(old, one, files, model, chosen, documents, labels)
    compared = {c["case"]: c for c in records(files, "evaluation/cases.jsonl")}
    same = [c["predicted"] == compared[c["case"]]["predicted"] for c in cases if c["case"] in compared]
    tests = [("the parent's files give the parent's tuple", artifact_tuple(files).digest == old.digest),
             (f"the parent answers {len(same)} cases as its own release tells", all(same))]
    return {"parent": folder, "parent_files": files, "parent_cases": cases, "parity": parity, "parity_tests": tests}


def runtime_parity(old, one, files, model, chosen, documents, labels) -> Parity:
    """The parent's model run again under this runtime, against the outputs that the parent's bundle holds: equal places
    and confidences are demanded, bit by bit."""
    stored = {case["case"]: case for case in records(files, "evaluation/cases.jsonl")}
    wanted = {case["page"] for case in stored.values()}
    known = [d for d in documents if any(p.id in wanted for p in d.pages)]
    largest, count = 0.0, 0
    for case in project_cases(model, known, labels, list(chosen), chosen):
        before = stored.get(case["case"])
        if before is not None:
            count += 1
            same = before["predicted"] == case["predicted"]
            away = [abs(a - b) for a, b in zip(before["confidences"], case["confidences"])]
            largest = max([largest, *away]) if same else 1.0
    return Parity(old.part_digest("runtime"), one.part_digest("runtime"), count, largest, 0.0)
