"""The main job: a project's labels → splits, training, thresholds, scores, report."""
import dataclasses
import json

from .below import NUMERICS_VERSION, DocExtract, FineTune, continue_parameters, read_log
from .confusion import confusion
from .corrections import History, overlaid
from .evaluation import Development, evaluate, scored_documents
from .examples import training_examples
from .labels import label_document, labels_digest, usable_documents
from .project import VERSION, Project, ProjectError, file_digest, json_digest
from .provenance import reader_warnings, readers_of
from .report import drawn_page, report_html
from .scoring import score
from .splits import three_parts
from .thresholds import choose_threshold

WORST = 8  # pages drawn in the report
SCHEMA_SIZE = 20  # fewest documents below which the report warns


class JobError(ValueError):
    """The job cannot be done; the message says what is missing."""


def label_project(project, values_of=None, *, similar=True, strict=False, tell=print):
    """Grounds the values of a project's documents and writes labels.jsonl.

    Parameters
    ----------
    project : Project
    values_of : callable, Document → dict of values; default: values.jsonl, else the document's own `fields`;
        fields corrected by hand (reviews.jsonl) go before
    similar : misspelt values are matched to the most similar words, for training alone
    strict : given spans that cut a word's pieces are an error, and nothing is written
    tell : takes messages

    Returns
    -------
    dict: documents, outcomes (field → outcome → count), problems (messages of what could not be read or labelled;
    given spans that are misaligned, with the nearest border, among them)

    Raises
    ------
    JobError: strict, and a span is misaligned
    """
    schema, problems, misaligned = project.schema(), [], []
    settings = project.settings()
    encoding = settings.config(schema).encoding()
    given, corrections = project.values(problems), History(project.folder)
    labels, count = [], 0
    for document in project.each_document(problems):
        try:
            values = values_of(document) if values_of else own_values(document, schema, given)
            values = overlaid(values, corrections.of_document(document.id))
            if values is None:
                problems.append(f"document {document.id!r}: it has no values")
                continue
            found = label_document(document, schema, values, encoding, similar=similar, missing=settings.missing)
            misaligned += [f"page {x.page!r}, field {x.field!r}: {x.how[0]}" for x in found
                           if x.outcome == "scattered" and "misaligned" in x.how[0]]
            labels += found
            count += 1
        except ValueError as error:
            problems.append(str(error))
    if strict and misaligned:
        raise JobError("\n".join(misaligned))
    problems += misaligned
    for problem in problems:
        tell(problem)
    sources = [project.schema_file, *project.page_files]
    sources += [p for p in map(project.path, ("values.jsonl", "reviews.jsonl")) if p.exists()]
    if settings.missing != "none" or settings.model:
        sources.append(project.path("settings.json"))
    project.write_labels(labels, schema, "dx label", sources)
    return {"documents": count, "outcomes": outcomes(labels, schema), "problems": problems}


def own_values(document, schema, given):
    """A document's values: from `given`, else those it carries; None where there are none."""
    values = given.get(document.id)
    if values is not None:
        return values
    for holder in (document.extra, *(page.extra for page in document.pages)):
        if isinstance(holder.get("fields"), dict):
            return {name: value for name, value in holder["fields"].items() if name in schema.names}
    return None


def outcomes(labels, schema):
    """dict field → dict outcome → count."""
    counts = {name: {} for name in schema.names}
    for label in labels:
        own = counts[label.field]
        own[label.outcome] = own.get(label.outcome, 0) + 1
    return counts


def parts_of(documents, labels, settings, held=()):
    """(training, development, held out) ids of the labelled documents.

    Documents with a value that is not on the page are in none. Documents with a value grounded as similar are training
    documents. Documents of `held` stay held out; the rest is cut by the rule (splits.three_parts), those of one `group`
     (a key of document or page) on one side.
    """
    there = {d.id for d in documents}
    usable = [name for name in usable_documents(labels) if name in there]
    scored = set(scored_documents(labels))
    kept = [name for name in usable if name in held and name in scored]
    free = [name for name in usable if name in scored and name not in held]
    if len(free) < 3:
        raise JobError(f"{len(free)} documents with usable labels: expected at least 3 (one to train on, one for "
                       "development, one held out)")
    groups = {d.id: group_of(d) for d in documents}
    training, development, out = three_parts(free, settings.held_out, settings.development, settings.seed,
                                             groups if any(groups.values()) else None)
    if kept:
        training, out = training + out, kept
    taken = {groups[name] for name in (*development, *out) if groups[name]}
    training += [name for name in usable if name not in scored and name not in held and groups[name] not in taken]
    return training, development, out


def group_of(document):
    """What `group` says on a document or its first page, as text; None."""
    for holder in (document.extra, *(page.extra for page in document.pages[:1])):
        if holder.get("group") is not None:
            return str(holder["group"])
    return None


def train_project(project, *, start=None, tell=print, progress=None, changes=None, fresh=False):
    """Trains a project's model and writes model, splits, scores and report.

    Parameters
    ----------
    project : Project with labels
    start : Start, what training goes on from; None: a new model
    tell, progress : as FineTune.run
    changes : dict laid over settings.json
    fresh : an earlier run is thrown away, not continued

    Returns
    -------
    dict, what scores.json holds

    Raises
    ------
    JobError, ProjectError, LabelError, SettingsError, and what FineTune.run raises. A run that was broken off is
    continued; it ends with the same model bytes.
    """
    settings = project.settings(changes)
    schema, problems = project.schema(), []
    documents = project.documents(problems)
    for problem in problems:
        tell(problem)
    labels = project.labels(schema, tell)
    parts = parts_of(documents, labels, settings, start.held_out if start else ())
    by_id = {d.id: d for d in documents}
    training, development, held = ([by_id[name] for name in part] for part in parts)
    config = settings.config(schema, start.model.config if start else None)
    if start:
        model = DocExtract(continue_parameters(start.model.parameters, config, settings.seed))
    else:
        model = DocExtract.initial(config, settings.seed)
    tell(f"{len(training)} documents to train on, {len(development)} for development, {len(held)} held out; "
         f"{model.parameters.flat.size:,} parameters")
    examples = training_examples(training, labels, schema, config, variants=settings.variants, places=settings.places,
                                 seed=settings.seed)
    if not examples:
        raise JobError("no training document has a word on its pages")
    digests = {"labels": labels_digest(labels, schema), "split": json_digest([list(p) for p in parts])}
    result = FineTune(settings.training(len(examples))).run(
        model, examples, development=Development(development, labels, schema.names), digests=digests,
        folder=project.path("run"), fresh=fresh, progress=progress, tell=tell)
    model = DocExtract(result.parameters)
    project.path("model").mkdir(exist_ok=True)
    digest = model.save_pretrained(project.path("model"))
    sources = [project.schema_file, project.path("labels.jsonl"), *project.page_files]
    if project.path("settings.json").exists():
        sources.append(project.path("settings.json"))
    project.note("model/model.safetensors", "dx train", sources)
    project.write_json("splits.json", dict(zip(("training", "development", "held_out"), parts)), "dx train", sources)
    answer = {"version": VERSION, "numerics_version": NUMERICS_VERSION, "settings": settings.to_json(),
              "model": {"sha256": digest, "parameters": int(model.parameters.flat.size), "step": result.step,
                        "best_step": result.best_step, "best_development": result.best_score,
                        "start": start.digest if start else None},
              "problems": problems, "readers": readers_of(by_id[name] for part in parts for name in part)}
    answer["warnings"] = reader_warnings(answer["readers"], start.readers if start else ())
    for warning in answer["warnings"]:
        tell(warning)
    if start:
        answer["continued"] = compare(start, model, held, labels, schema)
    return finish(project, answer, model, documents, labels, parts, schema, settings)


def finish(project, answer, model, documents, labels, parts, schema, settings):
    """Scores the held-out documents and writes scores.json and report.html; the answer."""
    by_id, worst = {d.id: d for d in documents}, []
    held = [by_id[name] for name in parts[2] if name in by_id]
    answer["data"] = data_counts(documents, labels, parts)
    answer["grounding"] = outcomes(labels, schema)

    def each(page, result, rows):
        wrong = [r for r in rows if r.words and not r.exactly()]
        if wrong:
            worst.append((-len(wrong), page.id, page, result, rows))

    rows = evaluate(model, held, labels, schema.names, each)
    pages = sum(len(d.pages) for d in held)  # exact: whole numbers
    answer["scores"] = score(rows, schema.names).to_json()
    answer["confusion"] = confusion(rows, schema.names)
    answer["thresholds"] = {t.field: t.to_json() for t in thresholds(rows, schema, settings, pages)}
    answer["reliability"] = {name: reliability(rows, name) for name in schema.names}
    answer["values"] = {name: judged(rows, name) for name in schema.names}
    answer["curve"] = curve(project)
    sources = [project.path("model/model.safetensors"), project.path("labels.jsonl"), *project.page_files]
    project.write_json("scores.json", answer, "dx train", sources)
    worst = [drawn_page(page, result, rows) for _, _, page, result, rows in sorted(worst, key=lambda w: w[:2])[:WORST]]
    html = report_html(project.folder.resolve().name, answer, worst)
    project.write("report.html", html.encode("utf-8", "backslashreplace"), "dx train", sources)
    return answer


def score_project(project, model=None, *, tell=print):
    """Scores the project's held-out documents again, with its model or another one; the answer, as scores.json."""
    schema, problems = project.schema(), []
    documents, labels = project.documents(problems), project.labels(schema, tell)
    held = project.held_out()
    if held is None:
        raise ProjectError(f"{project.folder}: there is no splits.json yet: run `dx train {project.folder}` first")
    for problem in problems:
        tell(problem)
    settings = project.settings()
    path = project.path("model/model.safetensors") if model is None else model
    model = DocExtract.from_pretrained(path)
    missing = [name for name in schema.names if name not in model.config.fields]
    if missing:
        raise JobError(f"{path}: the model has no field {', '.join(missing)}")
    by_id = {d.id: d for d in documents}
    held = [by_id[name] for name in held if name in by_id]
    rows = evaluate(model, held, labels, schema.names)
    pages = sum(len(d.pages) for d in held)  # exact: whole numbers
    return {"model": {"sha256": model_digest(path)}, "problems": problems, "pages": pages,
            "scores": score(rows, schema.names).to_json(), "confusion": confusion(rows, schema.names),
            "thresholds": {t.field: t.to_json() for t in thresholds(rows, schema, settings, pages)}}


def model_digest(path):
    """SHA-256 of a model file, or of the file in a folder."""
    from pathlib import Path
    path = Path(path)
    return file_digest(path / "model.safetensors" if path.is_dir() else path)


@dataclasses.dataclass(frozen=True)
class Start:
    """What training goes on from.

    model : DocExtract
    held_out : ids of the documents that its project held out, which stay held out
    documents, labels : these documents and their labels, where the project has them still
    readers : names of the readers of the pages it was trained on
    """
    model: DocExtract
    held_out: tuple = ()
    documents: tuple = ()
    labels: tuple = ()
    readers: tuple = ()

    @property
    def digest(self):
        """SHA-256 (hex) of the weights, as release.sources.tensors_digest."""
        from .release.sources import tensors_digest
        return tensors_digest({name: self.model.parameters[name] for name in self.model.parameters})


def start_from(path):
    """Start of a model file, a folder with one, or a project folder."""
    from pathlib import Path
    folder = Path(path)
    if not (folder / "splits.json").exists():
        return Start(DocExtract.from_pretrained(folder))
    old = Project(folder)
    held = tuple(old.held_out())
    documents = tuple(d for d in old.documents([]) if d.id in held)
    labels = tuple(x for x in old.labels(old.schema()) if x.document in held)
    return Start(DocExtract.from_pretrained(folder / "model"), held, documents, labels,
                 old.readers())


def compare(start, model, held, labels, schema):
    """Scores of the old and the new model over the fields both have: on the documents that the old model's project held
    out, with their labels there; where that project is not at hand, on the held-out documents."""
    old, labels = (start.documents, start.labels) if start.documents else (held, labels)
    fields = [name for name in schema.names if name in start.model.config.fields]
    scores = [score(evaluate(m, old, labels, fields), fields).to_json() for m in (start.model, model)]
    return {"documents": len(old), "fields": fields, "before": scores[0], "after": scores[1]}


def data_counts(documents, labels, parts):
    labelled = {label.document for label in labels}
    pages = sum(len(d.pages) for d in documents)  # exact: whole numbers
    words = sum(len(p.words) for d in documents for p in d.pages)  # exact: whole numbers
    return {"documents": len(documents), "pages": pages, "words": words, "labelled": len(labelled),
            "excluded": len(labelled) - len(usable_documents(labels)),
            **{name: len(part) for name, part in zip(("training", "development", "held_out"), parts)}}


def judged(rows, name):
    """[confidence, right] of every value of a field that may be judged by words, falling confidence."""
    out = []
    for row in rows:
        if row.field == name and row.words:
            places = [p for runs in row.gold_places for p in runs]
            out += [[c, place in places] for c, place in zip(row.confidences, row.predicted_places)]
    return sorted(out, key=lambda v: (-v[0], v[1]))


def thresholds(rows, schema, settings, pages):
    """A Threshold for each field, chosen on the values of these pages."""
    out = []
    for name in schema.names:
        values = judged(rows, name)
        out.append(choose_threshold(name, [c for c, _ in values], [r for _, r in values], share=settings.share,
                                    least=settings.least, pages=pages))
    return out


def reliability(rows, name, bins=10):
    """[low, high, values, mean confidence, share right] of ten bins of confidence that hold values."""
    out = []
    for k in range(bins):
        own = [v for v in judged(rows, name) if min(int(v[0] * bins), bins - 1) == k]
        if own:
            total = 0.0
            for confidence, _ in own:
                total += confidence
            right = sum(bool(r) for _, r in own)  # exact: whole numbers
            out.append([k / bins, (k + 1) / bins, len(own), total / len(own), right / len(own)])
    return out


def curve(project):
    """[step, loss, development score or null] of the run's log, at most 400 points of mean losses."""
    try:
        log = read_log(project.path("run"))
    except (OSError, json.JSONDecodeError):
        return []
    size, out = max(1, -(-len(log) // 400)), []
    for begin in range(0, len(log), size):
        own = log[begin:begin + size]
        scores = [entry["score"] for entry in own if "score" in entry]
        total = 0.0
        for entry in own:
            total += entry["loss"]
        out.append([own[-1]["step"], total / len(own), scores[-1] if scores else None])
    return out
