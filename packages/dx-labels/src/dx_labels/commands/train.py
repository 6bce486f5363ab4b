"""dx train"""
from ..below import degree, get_degree
from ..console import command, emit, emit_json, say, score_lines, teller, threads_option
from ..job import label_project, start_from, train_project
from ..project import Project


def add(commands):
    p = command(commands, "train", run, "train a project's model, score it on held-out pages, write the report", """\
  dx train receipts                       labels first where there are none; a run that was broken off goes on
  dx train receipts --from old-receipts   go on from a model (or project); old pages are scored before and after
  dx train receipts --epochs 40 --seed 1  settings.json holds everything else""")
    p.add_argument("project", help="the project's folder")
    p.add_argument("--from", dest="start", metavar="MODEL", help="a model file, its folder, or a project to go on from")
    p.add_argument("--fresh", action="store_true", help="throw away the checkpoints of an earlier run")
    p.add_argument("--epochs", type=int, metavar="N", help="passes over the training pages")
    p.add_argument("--steps", type=int, metavar="N", help="steps instead of epochs")
    p.add_argument("--seed", type=int, metavar="N", help="seed of splits, initial weights and training")
    threads_option(p)


def run(a):
    project, tell, changes = Project(a.project), teller(a), {}
    if not project.path("labels.jsonl").exists():
        labelled = label_project(project, tell=say)
        tell(f"{labelled['documents']} documents labelled")
    own = project.settings()
    train = {name: getattr(a, name) for name in ("epochs", "steps") if getattr(a, name) is not None}
    if train:
        changes["train"] = {**own.train, **train}
    if a.seed is not None:
        changes["seed"] = a.seed
    start = start_from(a.start) if a.start else None
    with degree(a.threads or get_degree()):
        answer = train_project(project, start=start, tell=tell, progress=False if a.quiet else None, changes=changes,
                               fresh=a.fresh)
    for problem in answer["problems"]:
        if a.quiet:
            say(problem)
    if a.json:
        emit_json({key: value for key, value in answer.items() if key not in ("curve", "values")})
        return 1 if answer["problems"] else 0
    for line in score_lines(answer["scores"], answer["thresholds"]):
        emit(line)
    if "continued" in answer:
        c = answer["continued"]
        emit(f"old pages ({c['documents']} documents), F1 by words: {c['before']['total']['words']['f1']:.3f} before, "
             f"{c['after']['total']['words']['f1']:.3f} after")
    emit(f"model {answer['model']['sha256']}")
    emit(f"report {project.path('report.html')}")
    return 1 if answer["problems"] else 0
