"""dx extract"""
from pathlib import Path

from ..below import DocExtract, degree, get_degree, read_documents
from ..console import command, emit, emit_json, say, threads_option
from ..labellers import Cached, FileLabeller
from ..local_first import LocalFirst, asking, extract
from ..project import Project, ProjectError
from ..release.serving import is_release
from ..release.serving import local_first as release_local_first
from ..provenance import ReaderWatch
from .asking_options import labeller_of, labeller_options


def add(commands):
    p = command(commands, "extract", run, "read the fields of pages; says where each value comes from", """\
  dx extract receipts new.jsonl             a project: its model, its thresholds
  dx extract receipts/releases new.jsonl    the current release, or one release's folder: checked, then used
  dx extract receipts/model new.jsonl.gz    a model alone: every value is told as unsure
  dx extract receipts new.jsonl --json      one JSON object a document
  dx extract receipts new.jsonl --command "python ask.py"    asked for the fields the model is not sure of
  dx extract receipts new.jsonl --words     page, word, label, score, box and text of every word
columns: document, field, source (model, labeller, unsure), confidence, value""")
    p.add_argument("model", help="a project's folder, or a model file or its folder")
    p.add_argument("pages", nargs="+", help="JSON lines (.gz too): a page or a document a line")
    p.add_argument("--repair", action="store_true", help="repair boxes instead of refusing their page")
    p.add_argument("--words", action="store_true", help="the label of every word instead of the fields (--json: both)")
    labeller_options(p)
    threads_option(p)


def local_first(path, labeller=None):
    """LocalFirst of a project, or of a model alone (which has no schema to ask with). A project keeps the answers of a
    command or endpoint in answers/, so that nothing is asked twice."""
    if is_release(path):
        return release_local_first(path, labeller)
    if not Path(path, "scores.json").exists():
        if labeller is not None:
            raise ProjectError(f"{path} is no trained project: only a project's schema can be asked for")
        return LocalFirst(DocExtract.from_pretrained(path))
    project = Project(path)
    if labeller is None:
        return project.local_first()
    if not isinstance(labeller, FileLabeller):
        labeller = Cached(labeller, project.path("answers"))
    return project.local_first(asking(labeller, project.schema()))


def run(a):
    local, done, problems = local_first(a.model, labeller_of(a)), 0, 0

    watch = ReaderWatch(local.readers)

    def failed(text):
        say(text)
        if a.json:
            emit_json({"error": text})
        return 1

    with degree(a.threads or get_degree()):
        for path in a.pages:
            found = []
            documents = read_documents(path, repair=a.repair, problems=found)
            while True:
                try:
                    document = next(documents, None)
                except (OSError, ValueError) as error:
                    document = None
                    found.append(str(error) if str(path) in str(error) else f"{path}: {error}")
                for problem in found:
                    problems += failed(problem)
                found.clear()
                if document is None:
                    break
                for warning in watch.warnings(document):
                    say(warning)
                answer = extract(local, document, words=a.words)
                done += 1
                if "error" in answer:
                    problems += failed(answer["error"])
                if a.json:
                    emit_json(answer)
                else:
                    for line in word_columns(answer) if a.words else columns(answer):
                        emit(line)
    if problems or not a.quiet:
        say(f"{done} read, {problems} failed")
    return 1 if problems else 0


def columns(answer):
    """Lines of id, field, source, confidence, value, parted by tabs."""
    for name, one in answer["fields"].items():
        values = one["value"] if isinstance(one["value"], list) else [one["value"]]
        confidence = "-" if one["confidence"] is None else f"{one['confidence']:.6f}"
        for value in values or [None]:
            shown = "-" if value is None else " ".join(str(value).split())
            yield f"{answer['id']}\t{name}\t{one['source']}\t{confidence}\t{shown}"


def word_columns(answer):
    """Lines of id, page, word, label, score, box, text, parted by tabs; a part of a word has its characters behind the
    word's number."""
    for page, words in enumerate(answer["words"]):
        for one in words:
            part = f":{one['start']}-{one['end']}" if "start" in one else ""
            box = " ".join(f"{v:g}" for v in one["box"])
            yield (f"{answer['id']}\t{page}\t{one['word']}{part}\t{one['label']}\t{one['score']:.6f}\t{box}\t"
                   f"{' '.join(one['text'].split())}")
