"""dx export"""
import json

from ..below import DocExtract, degree, get_degree, write_atomic
from ..console import command, emit, emit_json, say, teller, threads_option
from ..exporting import label_config, project_tasks
from ..project import Project

FORMATS = ("label-studio",)


def add(commands):
    p = command(commands, "export", run, "write a project's pages and labels for a labelling tool", """\
  dx export label-studio receipts --out tasks.json --config config.xml
  dx export label-studio receipts --out tasks.json --predictions    what the model reads, to be corrected
  dx import label-studio export.json --to corrected                 and back

config.xml is the labelling configuration to paste into Label Studio; a page's picture is what its `image` says.""")
    p.add_argument("format", choices=FORMATS, metavar="FORMAT", help="label-studio")
    p.add_argument("project", metavar="PROJECT", help="the project's folder")
    p.add_argument("--out", required=True, metavar="FILE", help="the file of tasks; replaced whole")
    p.add_argument("--config", metavar="FILE", help="write the labelling configuration here")
    p.add_argument("--predictions", action="store_true", help="what the project's model reads, beside the labels")
    threads_option(p)


def run(a):
    project = Project(a.project)
    model = DocExtract.from_pretrained(project.path("model")) if a.predictions else None
    with degree(a.threads or get_degree()):
        tasks, problems = project_tasks(project, model, tell=say)
    text = json.dumps(tasks, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomic(a.out, text.encode("utf-8", "backslashreplace"))
    if a.config:
        write_atomic(a.config, label_config(project.schema()).encode("utf-8"))
    pictures = [task for task in tasks if task["data"]["ocr"]]
    if len(pictures) < len(tasks):
        teller(a)(f"{len(tasks) - len(pictures)} pages name no picture (`image`): their tasks show none")
    if a.json:
        labelled = len([task for task in tasks if "annotations" in task])
        emit_json({"tasks": len(tasks), "labelled": labelled, "problems": problems})
    else:
        emit(f"{a.out}: {len(tasks)} tasks")
    return 1 if problems else 0
