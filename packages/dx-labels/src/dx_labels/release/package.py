"""The files of a bundle from its records: what docextract projects and readouts have in common."""
from collections.abc import Mapping

from ..evidence.paired import paired
from ..evidence.plan import EvaluationPlan
from ..evidence.roles import SplitManifest
from ..evidence.suite import evaluate_cases
from .bundle import bundle_digest, json_bytes, jsonl_bytes, record
from .graph import Parity
from .identity import SemanticTuple, compatibility
from .migration import migration
from .states import text_of


def package(one: SemanticTuple, *, artifact: Mapping, licences: Mapping, contracts: Mapping, splits: SplitManifest,
            plan: EvaluationPlan, cases: list, audit: list, sources: list, oracles: list, parent=None,
            parent_files=None, parent_cases=None, parity: Parity | None = None, parity_tests=()) -> dict:
    """path → bytes of a bundle.

    artifact : name → bytes · parent, parent_files : folder and files of the parent release, or None · parent_cases :
    the parent's outputs on the same cases · parity : evidence for a changed runtime · parity_tests : (name, passed)
    """
    files = {f"manifest/artifact/{name}": data for name, data in artifact.items()}
    spaces, old, parent_digest = one.namespaces(), None, None
    if parent is not None:
        parent_digest, stated = bundle_digest(parent), record(parent_files, "manifest/release.json")
        old = SemanticTuple(stated["tuple"]["kind"], stated["tuple"]["parts"])
    compatible = {"from": None, "to": one.digest} if old is None else compatibility(old, one, parity)
    release = {"format": 1, "tuple": one.to_json(), "digest": one.digest,
               "holds_page_text": any(text_of(case) is not None for case in cases),
               "parent": None if old is None else {"digest": parent_digest, "tuple": old.digest,
                                                   "trained_on_promotion": seen_by(parent_files, splits)}}
    result = {"tuple": one.digest, "result": evaluate_cases(plan, cases)}
    handoff = {"release": one.digest, "parent": release["parent"], "cache_namespaces": spaces,
               "rollback_to": parent_digest, "drop": compatible.get("drop", {}),
               "operations": "promotion to production, shadow traffic, canary, monitoring and the service's own "
                             "rollback are decided by whoever operates it; this record says what to restore"}
    rollback = {"target": parent_digest, "tuple": None if old is None else old.to_json(),
                "cache_namespaces": None if old is None else old.namespaces(),
                "withdraw": old is None}
    files |= {path: json_bytes(value) for path, value in {
        "manifest/release.json": release, "manifest/licences.json": licences, "manifest/contracts.json": contracts,
        "manifest/splits.json": splits.to_json(), "evaluation/plan.json": plan.to_json(),
        "evaluation/result.json": result, "implementation/sources.json": sources,
        "implementation/oracles.json": oracles, "lifecycle/compatibility.json": compatible,
        "lifecycle/rollback.json": rollback, "lifecycle/handoff.json": handoff}.items()}
    files["evaluation/cases.jsonl"], files["evaluation/audit.jsonl"] = jsonl_bytes(cases), jsonl_bytes(audit)
    if old is not None:
        files["lifecycle/parent_tuple.json"] = json_bytes(old.to_json())
        files["evaluation/parent_cases.jsonl"] = jsonl_bytes(parent_cases)
        files["evaluation/paired.json"] = json_bytes(paired(plan, cases, parent_cases))
        if old.digest != one.digest:
            moved = migration(old, one, source=old.digest, target=one.digest, rollback_to=parent_digest, parity=parity,
                              tests=parity_tests)
            files["lifecycle/migration.json"] = json_bytes(moved)
    return files


def seen_by(parent_files, splits: SplitManifest) -> int:
    """How many of these promotion examples the parent was trained on: its figures on them are better than it is."""
    trained = {m["id"] for m in record(parent_files, "manifest/splits.json")["members"] if m["role"] == "train"}
    return len([i for i in splits.ids("promotion") if i in trained])
