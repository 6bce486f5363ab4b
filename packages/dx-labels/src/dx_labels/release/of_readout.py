"""A release of a readout from a folder of its manifest, its files and its evidence.

    manifest.json     the readout's record; release.files names the other files of the artifact with their digests
    readout.json      {"window", "calibrator"}: policy for long sources and the calibrator's record, or null
    licences.json contracts.json splits.json plan.json audit.jsonl cases.jsonl sources.json oracles.json
    parent_cases.jsonl, parity.json, parity_tests.json   with a parent: its outputs on the same cases, evidence for a
                      changed runtime, and the parity tests that have run, [name, passed] each
"""
from pathlib import Path

from ..evidence.audit import up_to
from ..evidence.plan import plan_from_json
from ..evidence.roles import splits_from_json
from .bundle import json_bytes, record, records, verify_files
from .graph import Parity
from .package import package
from .sources import readout_tuple
from .store import Store
from .verify import admitted, verify_release

SETTINGS = {"window": None, "calibrator": None}


def release_readout(folder, *, store=None, parent="current") -> dict:
    """Makes a release of a readout's folder; dict as verify_release's. Parameters as release_project."""
    folder = Path(folder)
    store = Store(folder / "releases" if store is None else store)
    files = {p.name: p.read_bytes() for p in sorted(folder.iterdir()) if p.is_file()}
    manifest = admitted(files)
    settings = {**SETTINGS, **(record(files, "readout.json") if "readout.json" in files else {})}
    one = readout_tuple(manifest, **settings)
    artifact = {"manifest.json": files["manifest.json"], "readout.json": json_bytes(settings)}
    artifact |= {name: files[name] for name in manifest["release"]["files"]}
    known = {}
    if parent == "current":
        now = store.current()
        parent = None if now is None else now["digest"]
    if parent is not None:
        path = store.path(parent)
        verify_release(path)
        parity = Parity(**record(files, "parity.json")) if "parity.json" in files else None
        known = {"parent": path, "parent_files": verify_files(path), "parity": parity,
                 "parent_cases": records(files, "parent_cases.jsonl"),
                 "parity_tests": [tuple(t) for t in record(files, "parity_tests.json")]
                 if "parity_tests.json" in files else []}
    made = package(
        one, artifact=artifact, licences=record(files, "licences.json"), contracts=record(files, "contracts.json"),
        splits=splits_from_json(record(files, "splits.json")), plan=plan_from_json(record(files, "plan.json")),
        cases=records(files, "cases.jsonl"), audit=up_to(records(files, "audit.jsonl"), one.digest),
        sources=record(files, "sources.json"), oracles=record(files, "oracles.json"), **known)
    return verify_release(store.add(made))
