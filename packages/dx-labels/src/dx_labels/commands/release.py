"""dx release"""
from pathlib import Path

from ..below import degree, get_degree
from ..console import command, emit, emit_json, teller, threads_option
from ..project import Project
from ..release import Store, release_project
from ..release.of_project import project_plan
from ..release.of_readout import release_readout


def add(commands):
    p = command(commands, "release", run, "make a release of a trained project or a readout, with its evidence", """\
  dx release receipts --plan > receipts/evaluation.json   the evaluation plan: put in gates and floors first
  dx release receipts                     into receipts/releases; says its state and what the next one lacks
  dx release receipts --promote           and make it the current one, if it is a CANDIDATE
  dx release intents --readout            a folder with a readout's manifest, files and evidence""")
    p.add_argument("project", help="the project's folder, or with --readout a readout's folder")
    p.add_argument("--readout", action="store_true", help="the folder holds a readout, not a docextract project")
    p.add_argument("--store", metavar="FOLDER", help="folder of releases; default: releases/ of the project")
    p.add_argument("--parent", metavar="RELEASE", help="the parent; default: the current release")
    p.add_argument("--no-parent", action="store_true", help="a first release of its own")
    p.add_argument("--with-text", action="store_true", help="per-case outputs hold the values' texts")
    p.add_argument("--promote", action="store_true", help="make it the current release")
    p.add_argument("--plan", action="store_true", help="print the evaluation plan and do nothing else")
    threads_option(p)


def run(a):
    if a.plan:
        import json
        emit(json.dumps(project_plan(Project(a.project)).to_json(), indent=1, ensure_ascii=False))
        return 0
    folder = Path(a.store) if a.store else Path(a.project, "releases")
    parent = None if a.no_parent else a.parent or "current"
    with degree(a.threads or get_degree()):
        if a.readout:
            answer = release_readout(a.project, store=folder, parent=parent)
        else:
            answer = release_project(Project(a.project), store=folder, parent=parent, with_text=a.with_text,
                                     tell=teller(a))
    if a.promote:
        answer["current"] = Store(folder).promote(answer["digest"])["serial"]
    if a.json:
        emit_json(answer)
    else:
        show(answer)
    return 0


def show(answer):
    """Lines of what a release is."""
    emit(f"release {answer['release']}  {answer['state']}")
    emit(f"digest  {answer['digest']}")
    emit(f"tuple   {answer['tuple']}")
    emit(f"text    {'holds page text' if answer['holds_page_text'] else 'holds no page text'}")
    for line in answer["missing"]:
        emit(f"missing {line}")
    if "current" in answer:
        emit(f"current step {answer['current']}")
