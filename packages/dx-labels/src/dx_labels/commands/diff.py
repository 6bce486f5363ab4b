"""dx diff"""
import json

from ..console import command, emit, emit_json
from ..release import diff_releases


def add(commands):
    p = command(commands, "diff", run, "what differs between two releases, and what that invalidates", """\
  dx diff receipts/releases/0123456789abcdef receipts/releases/fedcba9876543210""")
    p.add_argument("old", help="a release's folder")
    p.add_argument("new", help="another one")


def run(a):
    answer = diff_releases(a.old, a.new)
    if a.json:
        emit_json(answer)
        return 0
    for one in answer["fields"]:
        old, new = (json.dumps(one[k], ensure_ascii=False) for k in ("old", "new"))
        emit(f"{one['field']}: {_short(old)} -> {_short(new)}")
    for state, verdict in answer["states"].items():
        emit(f"{state:<18} {verdict}")
    if not answer["fields"]:
        emit("no field of the semantic tuple differs")
    return 0


def _short(text, most=60):
    return text if len(text) <= most else text[:most - 1] + "…"
