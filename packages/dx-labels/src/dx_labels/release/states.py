"""The life of a semantic artifact: DRAFT → RECONCILED → EVALUATED → CANDIDATE, each by evidence in the bundle.

A state is never declared: it is what the bundle's own records support, computed again by whoever asks.

    RECONCILED   hashes, schemas, source markers and local oracles pass
    EVALUATED    the frozen suite and its critical slices pass on an untouched promotion test of exactly this tuple
    CANDIDATE    the package is complete: compatibility, migration, invalidation plan, rollback target, hand-over
"""
from dataclasses import dataclass

from ..evidence.audit import admit_audit
from ..evidence.plan import plan_from_json
from ..evidence.roles import EvidenceError, admit_splits, splits_from_json
from ..evidence.suite import evaluate_cases
from ..metrics.common import MetricError
from .bundle import record, records
from .graph import Parity, ReleaseError
from .identity import SemanticTuple, compatibility, frozen_digest
from .migration import admit_migration

DRAFT, RECONCILED, EVALUATED, CANDIDATE = "DRAFT", "RECONCILED", "EVALUATED", "CANDIDATE"
STATES = (DRAFT, RECONCILED, EVALUATED, CANDIDATE)
HANDOVER = ("release", "parent", "cache_namespaces", "rollback_to", "operations")
CONTRACTS = ("training", "runtime", "export")
TEXT_KEYS = ("text", "texts", "value", "values", "gold_texts", "predicted_texts")


@dataclass(frozen=True)
class State:
    """name : of STATES · missing : what the next state lacks, a text each; () for a CANDIDATE"""

    name: str
    missing: tuple = ()


def _tuple(files, path="manifest/release.json") -> SemanticTuple:
    stated = record(files, path)
    stated = stated["tuple"] if "tuple" in stated else stated
    return SemanticTuple(stated["kind"], stated["parts"])


def _need(holds, text):
    if not holds:
        raise ReleaseError(text)


# --- RECONCILED ------------------------------------------------------------------------------------------------------

def _release_record(files):
    release = record(files, "manifest/release.json")
    _need(release["digest"] == _tuple(files).digest, "manifest/release.json: the digest is not the tuple's")
    _need(isinstance(release["holds_page_text"], bool), "manifest/release.json: holds_page_text is not said")
    artifact = {path.split("/", 2)[2]: path for path in files if path.startswith("manifest/artifact/")}
    _need(artifact, "manifest/artifact/ is empty")
    licences = record(files, "manifest/licences.json")
    for name in sorted(artifact):
        entry = licences.get(name, {})
        _need(all(entry.get(k) for k in ("licence", "origin")), f"licences: {name} has no licence or origin")
    contracts = record(files, "manifest/contracts.json")
    for name in CONTRACTS:
        _need(contracts.get(name), f"manifest/contracts.json: {name} is missing")
    if not release["holds_page_text"]:
        for path in ("evaluation/cases.jsonl", "evaluation/parent_cases.jsonl"):
            for case in records(files, path) if path in files else []:
                found = text_of(case)
                _need(not found, f"{path}: case {case['case']!r} holds page text under {found!r}; the release says "
                                 "that it holds none")


def text_of(case) -> str | None:
    """The key under which a case holds a page's text, None without one. Cases of answers are texts."""
    answers = isinstance(case.get("predicted"), str) and isinstance(case.get("gold"), list)
    return next((key for key in TEXT_KEYS if key in case), "predicted" if answers else None)


def _sources(files):
    found = record(files, "implementation/sources.json")
    _need(found, "implementation/sources.json names no source")
    for one in found:
        _need(one.get("revision") and len(one.get("sha256", "")) == 64, f"source {one.get('name')!r} is not pinned")
        _need(one.get("markers"), f"source {one['name']!r}: no marker was looked for")
        missing = sorted(name for name, there in one["markers"].items() if there is not True)
        _need(not missing, f"source {one['name']!r}: marker {missing[:1]} was not found")


def _oracles(files):
    found = record(files, "implementation/oracles.json")
    _need(found, "implementation/oracles.json: no oracle has run")
    for one in found:
        _need(one.get("passed") is True, f"oracle {one.get('name')!r} did not pass: {one.get('seen')}")


# --- EVALUATED -------------------------------------------------------------------------------------------------------

def _splits(files):
    splits = splits_from_json(record(files, "manifest/splits.json"))
    admit_splits(splits)
    plan = plan_from_json(record(files, "evaluation/plan.json"))
    _need(splits.plan == plan.digest, f"splits name the plan {splits.plan[:16]}: the bundle has {plan.digest[:16]}")
    release, one = record(files, "manifest/release.json"), _tuple(files)
    admit_audit(records(files, "evaluation/audit.jsonl"), subject=release["digest"], frozen=frozen_digest(one),
                plan=plan.digest, promotion=splits.ids("promotion"))


def _result(files):
    plan, cases = plan_from_json(record(files, "evaluation/plan.json")), records(files, "evaluation/cases.jsonl")
    promotion = frozenset(splits_from_json(record(files, "manifest/splits.json")).ids("promotion"))
    covered = frozenset(case["example"] for case in cases)
    for case in cases:
        _need(case["example"] in promotion, f"case {case['case']!r} is of {case['example']!r}, which is not promotion")
    missing = sorted(promotion - covered)
    _need(not missing, f"promotion example {missing[:1]} has no case")
    _need(plan.can_fail, "the plan has neither a gate nor a critical slice: nothing could fail")
    found, stated = evaluate_cases(plan, cases), record(files, "evaluation/result.json")
    _need(stated["tuple"] == record(files, "manifest/release.json")["digest"], "the result is of another tuple")
    _need(stated["result"] == found, "evaluation/result.json is not what the cases give")
    for gate in found["gates"]:
        _need(gate["passed"], f"gate {gate['figure']} = {gate['value']}: expected {gate['wanted']}")
    for one in found["slices"]:
        _need(one["verdict"] in ("passed", "told"), f"slice {one['name']!r}: {one['verdict']}: {one['right']['k']} of "
              f"{one['n']} right, floor {one['floor']} of at least {one['least']}")
    _need(found["passed"], "the evaluation holds no case")


# --- CANDIDATE -------------------------------------------------------------------------------------------------------

def _parity(stored):
    return None if stored is None else Parity(**stored)


def _lifecycle(files):
    release, one = record(files, "manifest/release.json"), _tuple(files)
    compatible, parent = record(files, "lifecycle/compatibility.json"), release["parent"]
    rollback, handoff = record(files, "lifecycle/rollback.json"), record(files, "lifecycle/handoff.json")
    for name in HANDOVER:
        _need(name in handoff, f"lifecycle/handoff.json: {name} is missing")
    _need(handoff["cache_namespaces"] == one.namespaces(), "lifecycle/handoff.json: namespaces are not the tuple's")
    _need(handoff["rollback_to"] == rollback["target"], "the hand-over and the rollback record name two targets")
    if parent is None:
        _need(rollback["target"] is None and rollback["withdraw"], "rollback.json: a first release is withdrawn")
        return
    old = _tuple(files, "lifecycle/parent_tuple.json")
    _need(old.digest == parent["tuple"], "lifecycle/parent_tuple.json is not the parent's tuple")
    _need(rollback["target"] == parent["digest"], "the rollback target is not the parent")
    parity = _parity(compatible["parity"])
    _need(compatible == compatibility(old, one, parity), "lifecycle/compatibility.json is not what the two tuples give")
    unproven = sorted(state for state, verdict in compatible["states"].items() if verdict == "unproven")
    _need(not unproven, f"{', '.join(unproven)}: the runtime changed and no parity test has run")
    if old.digest != one.digest:
        admit_migration(record(files, "lifecycle/migration.json"), old, one, parity)
    _paired(files)


def _paired(files):
    from ..evidence.paired import paired
    plan = plan_from_json(record(files, "evaluation/plan.json"))
    found = paired(plan, records(files, "evaluation/cases.jsonl"), records(files, "evaluation/parent_cases.jsonl"))
    _need(record(files, "evaluation/paired.json") == found, "evaluation/paired.json is not what the cases give")


_CHECKS = ((RECONCILED, (("schemas", _release_record), ("source markers", _sources), ("oracles", _oracles))),
          (EVALUATED, (("frozen splits", _splits), ("frozen suite", _result))),
          (CANDIDATE, (("lifecycle", _lifecycle),)))


def state_of(files) -> State:
    """The highest state that a bundle's records support, and what the next one lacks.

    files : path → bytes, their digests checked already (bundle.verify_files)
    """
    reached = DRAFT
    for name, checks in _CHECKS:
        missing = []
        for what, check in checks:
            try:
                check(files)
            except (ReleaseError, EvidenceError, MetricError) as error:
                missing.append(f"{what}: {error}")
            except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
                missing.append(f"{what}: a record is not of its form: {type(error).__name__}: {error}")
        if missing:
            return State(reached, tuple(missing))
        reached = name
    return State(reached)
