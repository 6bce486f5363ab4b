"""dx import"""
from ..console import command, emit, emit_json, say, teller
from ..importing import import_source
from ..schema import read_schema
from ..sources import FORMATS


def add(commands):
    formats = "\n".join(f"  {name:<14} {text}" for name, (_, text) in FORMATS.items())
    p = command(commands, "import", run, "read documents of another form into a project folder", f"""\
  dx import sroie sroie.train.jsonl.gz --to receipts
  dx import label-studio export.json --to invoices --schema invoices.toml

formats:
{formats}

What could not be read is named on stderr, the rest is kept, and the exit code is 1.""")
    p.add_argument("format", choices=tuple(FORMATS), metavar="FORMAT", help="one of the formats below")
    p.add_argument("source", help="the file or folder to read")
    p.add_argument("--to", required=True, metavar="PROJECT", help="the project's folder; made where it is missing")
    p.add_argument("--schema", metavar="FILE", help="fields to take (default: the format's own)")
    p.add_argument("--replace", action="store_true", help="replace the project's pages, schema and values")


def run(a):
    schema = read_schema(a.schema) if a.schema else None
    answer = import_source(a.format, a.source, a.to, schema, replace=a.replace)
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
