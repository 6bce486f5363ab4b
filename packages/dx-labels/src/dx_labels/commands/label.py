"""dx label"""
from ..asking import ask_project
from ..console import command, emit, emit_json, positive, say, teller
from ..job import label_project
from ..project import Project
from .asking_options import labeller_of, labeller_options


def add(commands):
    p = command(commands, "label", run, "find the words of a project's values on its pages", """\
  dx label receipts              values.jsonl, or the `fields` of each document → labels.jsonl
  dx label receipts --json
  dx label receipts --values more.jsonl           values of further documents: {"id", "fields"} a line
  dx label receipts --command "python ask.py"     a command: document on stdin, values on stdout
  dx label receipts --endpoint https://host/v1/chat/completions --model NAME --workers 4

A labelling model is asked for the documents that have no values in values.jsonl; its answers are kept in answers/, so
nothing is asked twice. The key of an endpoint comes from the environment variable DX_LABEL_KEY.""")
    p.add_argument("project", help="the project's folder")
    labeller_options(p)
    p.add_argument("--workers", type=positive, default=1, metavar="N", help="documents asked at a time (default 1)")
    p.add_argument("--strict", action="store_true", help="write nothing where a given span cuts a word's pieces")
    p.add_argument("--again", action="store_true", help="ask for documents that have values too")


def run(a):
    labeller = labeller_of(a)
    project, asked = Project(a.project), None
    if labeller is not None:
        asked = ask_project(project, labeller, workers=a.workers, again=a.again, tell=teller(a))
        asked["failed"] += getattr(labeller, "problems", [])
        for message in asked["failed"]:
            say(message)
    answer = label_project(project, strict=a.strict, tell=say)
    if asked is not None:
        answer["asked"] = asked
    if a.json:
        emit_json(answer)
    else:
        for name, own in answer["outcomes"].items():
            emit(f"{name:<16} " + ", ".join(f"{n} {outcome}" for outcome, n in sorted(own.items())))
    return 1 if answer["problems"] or asked and asked["failed"] else 0

