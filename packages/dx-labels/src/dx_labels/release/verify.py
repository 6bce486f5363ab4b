"""Verification of a bundle: digests, records, the tuple from the files themselves, the state. No network, no trust."""
import tempfile
from pathlib import Path

from ..below import DocExtract, ModelFileError, ReadoutError, admit_manifest, parse_json
from ..schema import SchemaError, read_schema
from .bundle import bundle_digest, record, verify_files
from .graph import ReleaseError
from .identity import SemanticTuple, changed_parts, differences
from .sources import docextract_tuple, readout_tuple
from .states import state_of


def artifact_tuple(files) -> SemanticTuple:
    """The semantic tuple that the artifact's own files give."""
    stated = record(files, "manifest/release.json")["tuple"]
    if stated["kind"] == "readout":
        settings = record(files, "manifest/artifact/readout.json")
        return readout_tuple(admitted(files, "manifest/artifact/"), settings["window"], settings["calibrator"])
    with tempfile.TemporaryDirectory() as folder:
        for name in ("model.safetensors", "schema.json"):
            if f"manifest/artifact/{name}" not in files:
                raise ReleaseError(f"manifest/artifact/{name} is missing")
            Path(folder, name).write_bytes(files[f"manifest/artifact/{name}"])
        try:
            model, schema = DocExtract.from_pretrained(folder), read_schema(Path(folder, "schema.json"))
        except (ModelFileError, SchemaError) as error:
            raise ReleaseError(f"manifest/artifact: {str(error).replace(folder, '')}") from None
    thresholds = record(files, "manifest/artifact/thresholds.json")
    return docextract_tuple(model, schema, thresholds, stated["parts"]["runtime"]["framework_revision"])


def admitted(files, folder="") -> dict:
    """The record of a readout's manifest, admitted whole, with exactly the files it names beside it; ReleaseError."""
    if f"{folder}manifest.json" not in files:
        raise ReleaseError(f"{folder}manifest.json is missing")
    try:
        manifest = admit_manifest(files[f"{folder}manifest.json"])
        named = manifest["release.files"]
        manifest.check_files({name: files[f"{folder}{name}"] for name in named if f"{folder}{name}" in files})
        return parse_json(manifest.to_json().decode())
    except (ReadoutError, UnicodeDecodeError, ValueError) as error:
        raise ReleaseError(f"{folder}manifest.json: {error}") from None


def verify_release(folder, digest: str | None = None) -> dict:
    """Everything that can be said of a release from its folder alone.

    Parameters
    ----------
    folder : the bundle · digest : the release's digest as the reader knows it from elsewhere, or None

    Returns
    -------
    dict: release, digest, tuple, kind, state, missing, holds_page_text, files; ReleaseError names what is wrong: a file
    that was changed, added or lost, a tuple that is not that of the files, another digest than the one asked for
    """
    found = bundle_digest(folder)
    if digest is not None and (len(digest) != 64 or found != digest):
        raise ReleaseError(f"{folder} has the digest {found}: expected {digest}")
    files = verify_files(folder)
    try:
        release = record(files, "manifest/release.json")
        stated = SemanticTuple(release["tuple"]["kind"], release["tuple"]["parts"])
        made = artifact_tuple(files)
        if made.digest != stated.digest:
            part = changed_parts(stated, made)[0]
            name, old, new = next(differences(stated.parts[part], made.parts[part]))
            raise ReleaseError(f"{folder}: the files give {part}.{name} = {new!r}: manifest/release.json says {old!r}")
        state = state_of(files)
        return {"release": Path(folder).name, "digest": found, "tuple": stated.digest, "kind": stated.kind,
                "state": state.name, "missing": list(state.missing), "holds_page_text": release["holds_page_text"],
                "parent": release["parent"], "files": len(files)}
    except (KeyError, TypeError, AttributeError) as error:
        raise ReleaseError(f"{folder}: a record is not of its form: {type(error).__name__}: {error}") from None


def diff_releases(old, new) -> dict:
    """What differs between two bundles (folders): fields of the tuple, what that invalidates, and slices."""
    from .identity import compatibility
    sides = []
    for folder in (old, new):
        verify_release(folder)
        sides.append(verify_files(folder))
    stated = [record(files, "manifest/release.json")["tuple"] for files in sides]
    tuples = [SemanticTuple(one["kind"], one["parts"]) for one in stated]
    found = compatibility(*tuples) if tuples[0].kind == tuples[1].kind else {"changes": ["kind"], "states": {}}
    fields = [{"field": name, "old": a, "new": b} for part in tuples[0].parts if part in tuples[1].parts
              for name, a, b in differences(tuples[0].parts[part], tuples[1].parts[part], part)]
    figures = [record(f, "evaluation/result.json") if "evaluation/result.json" in f else None for f in sides]
    same_plan = all(figures) and figures[0]["result"]["plan"] == figures[1]["result"]["plan"]
    return {"old": bundle_digest(old), "new": bundle_digest(new), "changes": found["changes"], "fields": fields,
            "invalidated": [s for s, verdict in found["states"].items() if verdict == "invalid"],
            "states": found["states"], "keep": found.get("keep", {}), "drop": found.get("drop", {}),
            "same_plan": bool(same_plan), "slices": [None if f is None else
                                                     {s["name"]: s["verdict"] for s in f["result"]["slices"]}
                                                     for f in figures]}
