"""dx rollback"""
from pathlib import Path

from ..console import command, emit, emit_json
from ..release import Store


def add(commands):
    p = command(commands, "rollback", run, "go back to a whole known-good release, or refuse", """\
  dx rollback receipts                         to the current release's rollback target
  dx rollback receipts --to 0123456789abcdef   to another one that was current once""")
    p.add_argument("project", help="the project's folder, or with --store anything")
    p.add_argument("--store", metavar="FOLDER", help="folder of releases; default: releases/ of the project")
    p.add_argument("--to", metavar="RELEASE", help="a release that was current once")


def run(a):
    found = Store(a.store or Path(a.project, "releases")).rollback(a.to)
    if a.json:
        emit_json(found)
        return 0
    emit(f"current {found['release']}")
    emit(f"digest  {found['digest']}")
    for state, namespace in (found["plan"] or {}).get("drop", {}).items():
        emit(f"drop    {state} {namespace}")
    return 0
