"""dx check"""
from pathlib import Path

from ..check import Finding, check_files, exit_code
from ..console import command, emit, emit_json, teller
from ..job import own_values
from ..labellers import FileLabeller
from ..project import Project
from ..schema import read_schema
from ..settings import JobSettings


def add(commands):
    p = command(commands, "check", run, "list what is wrong with a project's pages and values", """\
  dx check receipts                               a project: pages, schema and values
  dx check pages.jsonl --schema s.toml --json     a file of pages with their own `fields`, as JSON
  dx check receipts --strict                      warnings fail too

exit code: 0 nothing found, 3 warnings alone, 1 errors""")
    p.add_argument("path", help="a project's folder, or a file of pages")
    p.add_argument("--schema", metavar="FILE", help="the schema, for a file of pages")
    p.add_argument("--values", metavar="FILE", help="values of the documents, JSON lines {id, fields}")
    p.add_argument("--strict", action="store_true", help="exit code 1 for warnings too")


def run(a):
    problems, schema, given, settings = [], None, {}, JobSettings()
    if Path(a.path).is_dir():
        project = Project(a.path)
        paths, given = project.page_files, project.values(problems)
        settings = project.settings()
        schema = project.schema() if not a.schema and project.has_schema else None
    else:
        paths = [a.path]
    schema = read_schema(a.schema) if a.schema else schema
    if a.values:
        labeller = FileLabeller(a.values)
        given, problems = labeller.values, labeller.problems
    values_of = (lambda document: own_values(document, schema, given)) if schema else None
    encoding = settings.config(schema).encoding() if schema else None
    found, documents, pages = check_files(paths, schema, values_of, encoding=encoding, missing=settings.missing)
    for problem in problems:
        found.append(Finding("error", "values", problem.split(":")[0], problem))
    code = exit_code(found, a.strict)
    counts = {}
    for one in found:
        counts[one.kind] = counts.get(one.kind, 0) + 1
    if a.json:
        emit_json({"documents": documents, "pages": pages, "counts": counts, "findings": [f.to_json() for f in found]})
    else:
        for one in found:
            emit(f"{one.severity}: {one.kind}: {one.message}")
        summary = ", ".join(f"{n} {kind}" for kind, n in counts.items()) or "nothing found"
        teller(a)(f"{documents} documents, {pages} pages: {summary}")
    return code

