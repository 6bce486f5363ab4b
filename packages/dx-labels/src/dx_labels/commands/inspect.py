"""dx inspect"""
from pathlib import Path

from ..below import NUMERICS_VERSION, DocExtract
from ..console import command, emit, emit_json
from ..job import model_digest
from ..project import Project, file_digest


def add(commands):
    p = command(commands, "inspect", run, "say what a project or a model is, and whether it is as it was made", """\
  dx inspect receipts          every file: what made it, from what, and whether it still is that file
  dx inspect receipts/model    fields, sizes, digest""")
    p.add_argument("path", help="a project's folder, or a model file or its folder")


def run(a):
    made = Path(a.path, "made.json").exists()
    answer = project(Project(a.path)) if made else model(a.path)
    if a.json:
        emit_json(answer)
    elif made:
        for name, one in answer["files"].items():
            emit(f"{name:<24} {one['state']:<18} {one['by']}, {one['version']}")
    else:
        emit(f"{answer['path']}: docextract, {answer['parameters']:,} parameters")
        emit(f"sha256  {answer['sha256']}")
        emit(f"fields  {', '.join(answer['config']['fields'])}")
    return 1 if made and any(one["state"] in ("changed", "missing") for one in answer["files"].values()) else 0


def model(path):
    found = DocExtract.from_pretrained(path)
    return {"path": str(path), "sha256": model_digest(path), "parameters": int(found.parameters.flat.size),
            "numerics_version": NUMERICS_VERSION, "config": found.config.to_json()}


def project(one):
    """Every file that made.json knows: as made, changed, missing, or out of date (what it was made from changed)."""
    files = {}
    for name, entry in one.made().items():
        files[name] = {**entry, "state": state(one, name, entry)}
    return {"path": str(one.folder), "files": files}


def state(one, name, entry):
    if not one.path(name).exists():
        return "missing"
    if file_digest(one.path(name)) != entry["sha256"]:
        return "changed"
    return "out of date" if one.changed_sources(name) else "as made"
