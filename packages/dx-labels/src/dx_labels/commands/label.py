"""dx label"""
import shlex

from ..asking import ask_project
from ..console import command, emit, emit_json, positive, say, teller
from ..job import label_project
from ..labellers import ChatLabeller, CommandLabeller, FileLabeller
from ..project import Project


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
    who = p.add_mutually_exclusive_group()
    who.add_argument("--values", metavar="FILE", help="a file of values")
    who.add_argument("--command", metavar="COMMAND", help="a command to ask, split as a shell would; no shell runs")
    who.add_argument("--endpoint", metavar="URL", help="an OpenAI-compatible chat endpoint to ask (needs --model)")
    p.add_argument("--model", metavar="NAME", help="the endpoint's model")
    p.add_argument("--timeout", type=positive, default=60, metavar="SECONDS", help="for one attempt (default 60)")
    p.add_argument("--attempts", type=positive, default=4, metavar="N", help="attempts a document (default 4)")
    p.add_argument("--workers", type=positive, default=1, metavar="N", help="documents asked at a time (default 1)")
    p.add_argument("--again", action="store_true", help="ask for documents that have values too")


def run(a):
    if bool(a.endpoint) != bool(a.model):
        say("dx label: --endpoint and --model go together")
        return 2
    project, asked = Project(a.project), None
    labeller = _labeller(a)
    if labeller is not None:
        asked = ask_project(project, labeller, workers=a.workers, again=a.again, tell=teller(a))
        asked["failed"] += getattr(labeller, "problems", [])
        for message in asked["failed"]:
            say(message)
    answer = label_project(project, tell=say)
    if asked is not None:
        answer["asked"] = asked
    if a.json:
        emit_json(answer)
    else:
        for name, own in answer["outcomes"].items():
            emit(f"{name:<16} " + ", ".join(f"{n} {outcome}" for outcome, n in sorted(own.items())))
    return 1 if answer["problems"] or asked and asked["failed"] else 0


def _labeller(a):
    if a.values:
        return FileLabeller(a.values)
    if a.command:
        return CommandLabeller(shlex.split(a.command), a.timeout)
    return ChatLabeller(a.endpoint, a.model, timeout=a.timeout, attempts=a.attempts) if a.endpoint else None
