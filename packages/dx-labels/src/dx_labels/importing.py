"""A source's documents as a project folder."""
import os
from pathlib import Path

from .asking import write_values
from .below import json_line, page_to_json, replace_file
from .project import Project, ProjectError
from .sources import read_source


def document_to_json(document):
    """A document as one object that read_documents reads: a page, or words with their `page` and `pages`; dict. Of a
    document of several pages the pages' own extras (entities, links) are not kept."""
    if len(document.pages) == 1:
        return page_to_json(document.pages[0])
    pages = [page_to_json(page) for page in document.pages]
    return {"id": document.id, "pages": [[p["width"], p["height"]] for p in pages],
            "words": [{**word, "page": i} for i, page in enumerate(pages) for word in page["words"]], **document.extra}


def import_source(name, path, folder, schema=None, *, replace=False):
    """Reads a source into a project folder: pages.jsonl, schema.json and values.jsonl.

    Parameters
    ----------
    name : a key of sources.FORMATS
    path : file or folder of the source
    folder : the project's; made where it is missing
    schema : Schema or None (the format's own)
    replace : existing files are replaced; otherwise they are an error

    Returns
    -------
    dict: documents, pages, values, roles, problems, notes

    Raises
    ------
    ProjectError: a file that would be replaced, a source without a document
    """
    out = read_source(name, path, schema)
    if not out.documents:
        raise ProjectError(f"{os.fspath(path)}: no document could be read" + "".join(f"\n{p}" for p in out.problems))
    folder = Path(folder)
    standing = [n for n in ("pages.jsonl", "values.jsonl", "schema.json", "schema.toml") if (folder / n).exists()]
    if standing and not replace:
        raise ProjectError(f"{folder / standing[0]} exists already: --replace replaces it")
    folder.mkdir(parents=True, exist_ok=True)
    project, by = Project(folder), f"dx import {name}"
    with replace_file(project.path("pages.jsonl")) as file:
        for document in out.documents:
            file.write(json_line(document_to_json(document)))
    sources = [path] if os.path.isfile(path) else []
    project.note("pages.jsonl", by, sources)
    if out.schema is not None:
        if "schema.toml" not in standing:
            project.write_json("schema.json", out.schema.to_json(), by, sources)
        write_values(project, out.values, by, sources)
    pages = [page for document in out.documents for page in document.pages]
    return {"documents": len(out.documents), "pages": len(pages), "values": len(out.values) if out.schema else 0,
            "roles": list(out.roles), "problems": out.problems, "notes": out.notes}
