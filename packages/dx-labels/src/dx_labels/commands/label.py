"""dx label"""
from ..console import command, emit, emit_json, say
from ..job import label_project
from ..project import Project


def add(commands):
    p = command(commands, "label", run, "find the words of a project's values on its pages", """\
  dx label receipts              values.jsonl, or the `fields` of each document → labels.jsonl
  dx label receipts --json""")
    p.add_argument("project", help="the project's folder")


def run(a):
    answer = label_project(Project(a.project), tell=say)
    if a.json:
        emit_json(answer)
    else:
        for name, own in answer["outcomes"].items():
            emit(f"{name:<16} " + ", ".join(f"{n} {outcome}" for outcome, n in sorted(own.items())))
    return 1 if answer["problems"] else 0
