"""A project's pages and labels as tasks for Label Studio's OCR template; sources/label_studio.py reads them back."""
from xml.sax.saxutils import quoteattr

from .below import extract_document
from .evaluation import place_of

TO = "image"  # the name of the picture in the labelling configuration


def label_config(schema):
    """The labelling configuration that the tasks belong to: XML to paste into Label Studio; str."""
    labels = "".join(f"\n    <Label value={quoteattr(name)}/>" for name in schema.names)
    return (f'<View>\n  <Image name="{TO}" value="$ocr"/>\n  <Labels name="label" toName="{TO}">{labels}\n  </Labels>\n'
            f'  <Rectangle name="bbox" toName="{TO}" strokeWidth="2"/>\n'
            f'  <TextArea name="transcription" toName="{TO}" editable="true" perRegion="true" rows="1"/>\n</View>\n')


def page_tasks(document, labels, predictions=None):
    """The tasks of a document, one a page.

    Parameters
    ----------
    document : Document
    labels : list of its Label
    predictions : DocumentResult or None: what a model reads there

    Returns
    -------
    list of dict. Every word with text is a region (rectangle and text) in percent of the page; the words of a value
    have its field as label and are linked by relations, word to word. A word of which a value takes a part is a region
    for each part. Of several places of one value the first is given. A page with labels has them as an annotation,
    predictions stand beside them. `data` keeps id, document, number, rotation and reader of the page, and its `image`
    as `ocr` (empty: the task has no picture).
    """
    tasks = []
    for number, page in enumerate(document.pages):
        own = [(x.field, x.runs[0], None) for x in labels if x.page == page.id and x.state == "value"]
        image = page.extra.get("image")
        data = {"ocr": image if isinstance(image, str) else "", "id": page.id}
        data |= {key: value for key, value in (("document", page.document), ("number", page.number))
                 if value is not None}
        data |= {"rotation": page.rotation} if page.rotation else {}
        data |= {"reader": page.extra["reader"]} if "reader" in page.extra else {}
        task = {"data": data}
        if any(x.page == page.id for x in labels):
            task["annotations"] = [{"result": page_results(page, own)}]
        if predictions is not None:
            found = [(name, place_of(v), v.confidence) for name, one in predictions.fields.items() for v in one.values
                     if (v.page or 0) == number]
            least = min((c for _, _, c in found), default=1.0)
            task["predictions"] = [{"model_version": "dx", "score": least, "result": page_results(page, found)}]
        tasks.append(task)
    return tasks


def page_results(page, values):
    """The results of a page: regions of its words, and relations between the words of a value.

    values : list of (field, place, score or None), a place a tuple of (word, start, end)
    """
    claims, names, results = {}, {}, []  # word → spans with field and score; (word, start, end) → region's id
    for field, place, score in values:
        for word, start, end in place:
            claims.setdefault(word, []).append((start, end, field, score))
    for index, word in enumerate(page.words):
        own = claims.get(index, ())
        edges = sorted({0, len(word.text), *(edge for claim in own for edge in claim[:2])})
        for start, end in zip(edges, edges[1:]):
            if word.text[start:end].strip():
                whole = (start, end) == (0, len(word.text))
                name = names[index, start, end] = f"w{index}" if whole else f"w{index}-{start}"
                fields = [(field, score) for a, b, field, score in own if a <= start and end <= b]
                results += _region(page, word, start, end, name, fields)
    for _, place, _ in values:
        inside = [name for (word, start, end), name in names.items()
                  if any(word == w and a <= start and end <= b for w, a, b in place)]
        results += [{"type": "relation", "from_id": a, "to_id": b, "direction": "right"}
                    for a, b in zip(inside, inside[1:])]
    return results


def _region(page, word, start, end, name, fields):
    x0, y0, x1, y1 = word.box
    if (start, end) != (0, len(word.text)):
        x0, x1 = x0 + (x1 - x0) * start / len(word.text), x0 + (x1 - x0) * end / len(word.text)
    box = {"x": 100 * x0 / page.width, "y": 100 * y0 / page.height, "width": 100 * (x1 - x0) / page.width,
           "height": 100 * (y1 - y0) / page.height, "rotation": 0}
    head = {"id": name, "to_name": TO, "original_width": page.width, "original_height": page.height,
            "image_rotation": 0}
    yield {**head, "from_name": "bbox", "type": "rectangle", "value": box}
    if fields:
        scores = [score for _, score in fields if score is not None]
        yield {**head, "from_name": "label", "type": "labels", "value": {**box, "labels": [f for f, _ in fields]},
               **({"score": scores[0]} if scores else {})}
    yield {**head, "from_name": "transcription", "type": "textarea", "value": {**box, "text": [word.text[start:end]]}}


def project_tasks(project, model=None, tell=None):
    """The tasks of a project's documents, in order, with its labels where it has them, and what could not be read;
    (list of dict, list of str).

    model : DocExtract or None; its readings become predictions
    tell : takes messages of documents that cannot be read, or None
    """
    problems, schema = [], project.schema()
    documents = project.documents(problems)
    labels = project.labels(schema) if project.path("labels.jsonl").exists() else []
    own, tasks = {}, []
    for label in labels:
        own.setdefault(label.document, []).append(label)
    for document in documents:
        found = extract_document(model, document, alternatives=0) if model is not None else None
        tasks += page_tasks(document, own.get(document.id, []), found)
    for problem in problems if tell is not None else ():
        tell(problem)
    return tasks, problems
