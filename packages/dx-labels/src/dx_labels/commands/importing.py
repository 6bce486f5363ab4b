"""dx import"""
import sys
from pathlib import Path

from ..console import command, emit, emit_json, say, teller
from ..importing import import_source
from ..page_import import import_pages
from ..project import Project, ProjectError
from ..readers import READERS
from ..schema import nearest, read_schema
from ..sources import FORMATS



def add(commands):
    lines = {name: text for name, (_, text) in (FORMATS | READERS).items()}
    p = command(commands, "import", run, "read documents of another form into a project or a file of pages", f"""\
  dx import *.pdf --out pages.jsonl                     # the text of PDF files, a page a line
  dx import scans/ --ocr --languages deu+eng --to invoices
  dx import sroie sroie.train.jsonl.gz --to receipts
  dx import label-studio export.json --to invoices --schema invoices.toml

data sets and labelling tools (name the format first):
{chr(10).join(f"  {name:<14} {lines[name]}" for name in FORMATS)}

files of pages (known by their first bytes, or named by --format):
{chr(10).join(f"  {name:<14} {lines[name]}" for name in READERS)}

What could not be read is named on stderr, the rest is kept, and the exit code is 1.""")
    p.add_argument("source", nargs="+", metavar="[FORMAT] SOURCE", help="files and folders to read")
    p.add_argument("--to", metavar="PROJECT", help="the project's folder; made where it is missing")
    p.add_argument("--out", metavar="FILE", help="a file of pages, a page a line (default without --to: stdout)")
    p.add_argument("--format", metavar="FORMAT", help="the form of all the files (default: by their first bytes)")
    p.add_argument("--ocr", action="store_true", help="PDF pages without text go through Tesseract")
    p.add_argument("--languages", default="eng", metavar="L", help="Tesseract's languages, joined by + (default: eng)")
    p.add_argument("--password", metavar="P", help="of encrypted PDF files")
    p.add_argument("--crop", type=box, metavar="X0,Y0,X1,Y1", help="leave out words outside this box of the page")
    p.add_argument("--join-letters", type=int, action="append", default=[], choices=(0, 90, 180, 270), metavar="ANGLE",
                   help="join single letters turned by 0, 90, 180 or 270 degrees to words")
    p.add_argument("--schema", metavar="FILE", help="fields to take from a data set (default: the format's own)")
    p.add_argument("--replace", action="store_true", help="replace the project's pages, schema and values")


def run(a):
    if a.format is None and len(a.source) > 1 and a.source[0] in (FORMATS | READERS):
        a.format, a.source = a.source[0], a.source[1:]
    elif a.format is None and nearest(a.source[0], FORMATS | READERS) and not Path(a.source[0]).exists():
        a.format = a.source[0]  # a mistyped format rather than a file
    if a.format is not None and a.format not in FORMATS | READERS:
        a.parser.error(f"unknown format {a.format!r}{nearest(a.format, FORMATS | READERS)}: expected one of "
                       f"{', '.join(FORMATS | READERS)}")
    if a.to and a.out:
        a.parser.error("--to and --out exclude each other")
    if a.format in FORMATS and (a.crop or a.join_letters):
        a.parser.error("--crop and --join-letters go with files of pages: labels of a data set name its words")
    return data_set(a) if a.format in FORMATS else pages(a)


def box(text):
    """Four numbers parted by commas."""
    x0, y0, x1, y1 = map(float, text.split(","))
    return x0, y0, x1, y1


def data_set(a):
    """One source of labelled documents into a project."""
    if len(a.source) != 1 or not a.to:
        a.parser.error(f"{a.format} takes one source and --to PROJECT")
    schema = read_schema(a.schema) if a.schema else None
    answer = import_source(a.format, a.source[0], a.to, schema, replace=a.replace)
    for problem in answer["problems"]:
        say(problem)
    for note in answer["notes"]:
        teller(a)(f"changed: {note}")
    if a.json:
        emit_json(answer)
    else:
        emit(f"{a.to}: {answer['documents']} documents, {answer['pages']} pages, values of {answer['values']}; "
             f"{len(answer['problems'])} problems, {len(answer['notes'])} changes")
    return 1 if answer["problems"] else 0


def pages(a):
    """Files of pages into one file, a project, or stdout."""
    if a.schema and not a.to:
        a.parser.error("--schema goes with --to PROJECT")
    out = a.out
    if a.to:
        out = Path(a.to) / "pages.jsonl"
        if out.exists() and not a.replace:
            raise ProjectError(f"{out} exists already: --replace replaces it")
        out.parent.mkdir(parents=True, exist_ok=True)
    elif out is None:
        out = sys.stdout.buffer.write
    answer = import_pages(a.source, out, tell=teller(a), format=a.format, ocr=a.ocr, languages=a.languages,
                          password=a.password, crop=a.crop, join=a.join_letters)
    if a.to:
        project = Project(a.to)
        project.note("pages.jsonl", "dx import", [p for p in a.source if Path(p).is_file()])
        if a.schema:
            project.write_json("schema.json", read_schema(a.schema).to_json(), "dx import", [a.schema])
    for problem in answer["problems"]:
        say(problem)
    for note in answer["notes"]:
        teller(a)(f"changed: {note}")
    if a.to or a.out:
        if a.json:
            emit_json(answer)
        else:
            emit(f"{a.to or a.out}: {answer['files']} files, {answer['pages']} pages, {answer['words']} words; "
                 f"{len(answer['failed'])} files failed, {len(answer['problems'])} problems")
    return 1 if answer["problems"] else 0
