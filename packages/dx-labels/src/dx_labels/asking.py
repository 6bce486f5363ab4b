"""A project's documents asked of a labelling model: what comes back is kept in values.jsonl."""
import json

from .labellers import Cached, FileLabeller, LabellerError, ask_all


def ask_project(project, labeller, *, workers=1, again=False, tell=print):
    """Asks for the documents that have no values yet.

    Parameters
    ----------
    project : Project
    labeller : Labeller; its answers are also kept one by one in the project's folder answers/, so that after a crash
        nothing is asked again
    workers : how many documents are asked at a time
    again : also for documents that have values
    tell : takes messages

    Returns
    -------
    dict: labelled, asked, from_cache (counts), failed (messages)
    """
    schema, problems = project.schema(), []
    values = project.values()
    documents = [d for d in project.documents(problems) if again or d.id not in values]
    keep = not isinstance(labeller, FileLabeller)  # a file's values belong to ids, not to pages
    cached = Cached(labeller, project.path("answers")) if keep else labeller
    labelled = 0
    for number, (document, answer) in enumerate(ask_all(cached, documents, schema, workers), 1):
        if isinstance(answer, LabellerError):
            problems.append(str(answer))
        else:
            values[document.id] = answer
            labelled += 1
        if number % 100 == 0:
            tell(f"{number} of {len(documents)} documents asked")
    write_values(project, values, "dx label")
    counts = {"asked": cached.asked, "from_cache": cached.found} if keep else {"asked": 0, "from_cache": 0}
    return {"labelled": labelled, **counts, "failed": problems}


def write_values(project, values, by, sources=()):
    """Replaces the project's values.jsonl."""
    lines = []
    for name, fields in values.items():
        text = json.dumps({"id": name, "fields": fields}, ensure_ascii=False, allow_nan=False)
        try:
            lines.append(text.encode("utf-8"))
        except UnicodeEncodeError:  # a lone surrogate
            lines.append(json.dumps({"id": name, "fields": fields}, allow_nan=False).encode("ascii"))
    project.write("values.jsonl", b"".join(line + b"\n" for line in lines), by, sources)
