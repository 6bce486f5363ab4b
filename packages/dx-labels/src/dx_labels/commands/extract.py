"""dx extract"""
from pathlib import Path

from ..below import DocExtract, degree, get_degree, read_documents
from ..console import command, emit, emit_json, say, threads_option
from ..local_first import LocalFirst, extract
from ..project import Project


def add(commands):
    p = command(commands, "extract", run, "read the fields of pages; says where each value comes from", """\
  dx extract receipts new.jsonl             a project: its model, its thresholds
  dx extract receipts/model new.jsonl.gz    a model alone: every value is told as unsure
  dx extract receipts new.jsonl --json      one JSON object a document
columns: document, field, source (model, labeller, unsure), confidence, value""")
    p.add_argument("model", help="a project's folder, or a model file or its folder")
    p.add_argument("pages", nargs="+", help="JSON lines (.gz too): a page or a document a line")
    p.add_argument("--repair", action="store_true", help="repair boxes instead of refusing their page")
    threads_option(p)


def local_first(path, ask=None):
    """LocalFirst of a project or of a model alone."""
    if Path(path, "scores.json").exists():
        return Project(path).local_first(ask)
    return LocalFirst(DocExtract.from_pretrained(path), {}, ask)


def run(a):
    local, done, problems = local_first(a.model), 0, 0

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
                answer = extract(local, document)
                done += 1
                if "error" in answer:
                    problems += failed(answer["error"])
                if a.json:
                    emit_json(answer)
                else:
                    for line in columns(answer):
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
