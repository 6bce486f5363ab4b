"""dx score"""
from ..below import degree, get_degree
from ..console import command, emit, emit_json, score_lines, teller, threads_option
from ..job import score_project
from ..project import Project


def add(commands):
    p = command(commands, "score", run, "score a model on a project's held-out pages", """\
  dx score receipts                        the project's own model
  dx score receipts --model other/model    another one
  dx score receipts --json""")
    p.add_argument("project", help="the project's folder")
    p.add_argument("--model", metavar="MODEL", help="a model file or the folder that holds it")
    threads_option(p)


def run(a):
    with degree(a.threads or get_degree()):
        answer = score_project(Project(a.project), a.model, tell=teller(a))
    if a.json:
        emit_json(answer)
    else:
        for line in score_lines(answer["scores"], answer["thresholds"]):
            emit(line)
    return 1 if answer["problems"] else 0
