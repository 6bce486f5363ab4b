"""Reader of Label Studio's exports: OCR tasks, rectangles or polygons with a label and a text."""
import os

from ..below import Document, PageError, StrictJSONError, document_from_json, parse_json
from .base import Imported, SourceError
from .tools import with_schema

TEMPLATES = ("OCR (regions with text: data {'ocr': image} or {'image': image}, results rectangle or rectanglelabels, "
             "labels, textarea)",)


def _load(path):
    with open(path, "rb") as file:
        data = file.read().removeprefix(b"\xef\xbb\xbf")
    try:
        return parse_json(data.decode("utf-8"))
    except (UnicodeDecodeError, StrictJSONError) as error:
        raise SourceError(f"{path}: {error}") from None


def regions(results):
    """The regions of a task's results: results that share an id are one region with all their attributes; list of dict
    {"id", "box": (x, y, width, height in percent), "size", "labels", "text", "choices"}. A polygon has the box around
    its points. Relations are none of them."""
    found = {}
    for result in results:
        if result.get("type") == "relation":
            continue
        value = result.get("value", {})
        one = found.setdefault(result.get("id"), {"id": result.get("id"), "box": None, "size": None, "labels": [],
                                                  "text": None, "choices": []})
        box = None
        if all(k in value for k in ("x", "y", "width", "height")):
            box = tuple(value[k] for k in ("x", "y", "width", "height"))
        elif value.get("points"):
            xs, ys = [p[0] for p in value["points"]], [p[1] for p in value["points"]]
            box = min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys)
        if one["box"] is None and box is not None:
            one["box"], one["size"] = box, (result.get("original_width"), result.get("original_height"))
        for key in ("rectanglelabels", "polygonlabels", "labels"):
            one["labels"] += [v for v in value.get(key, []) if v not in one["labels"]]
        one["choices"] += [v for v in value.get("choices", []) if v not in one["choices"]]
        text = value.get("text")
        if text is not None:
            one["text"] = " ".join(text) if isinstance(text, list) else text
    return list(found.values())


def chains(results, own):
    """Regions that relations of one direction link and that share a label are one value: for each label of each region
    that begins one the chain of regions; list of (label, list of region).

    own : the regions, as `regions` gives them
    """
    by_id = {one["id"]: one for one in own}
    after = {}
    for result in results:
        if result.get("type") == "relation":
            ends = result.get("from_id"), result.get("to_id")
            ends = ends[::-1] if result.get("direction") == "left" else ends
            if all(end in by_id for end in ends):
                after.setdefault(ends[0], []).append(ends[1])
    followers = {(label, to) for start, ends in after.items() for to in ends
                 for label in by_id[start]["labels"] if label in by_id[to]["labels"]}
    starts = [(label, one["id"]) for one in own for label in one["labels"]]
    out, taken = [], set()
    for label, name in sorted(starts, key=lambda start: start in followers):  # then what stands in circles
        if (label, name) in taken:
            continue
        chain = [name]
        while True:
            taken.add((label, chain[-1]))
            more = [to for to in after.get(chain[-1], ()) if (label, to) not in taken and label in by_id[to]["labels"]]
            if not more:
                break
            chain.append(more[0])
        out.append((label, [by_id[one] for one in chain]))
    place = {one["id"]: i for i, one in enumerate(own)}
    return sorted(out, key=lambda one: place[one[1][0]["id"]])


def read_label_studio(path, schema=None):
    """Tasks exported as JSON from Label Studio's OCR template: regions with a label and a text. Every region becomes
    words; a region's label is the field of its text; regions that relations link and that share a label are one value.
    What `dx export` wrote comes back with its ids: tasks of one document become its pages."""
    tasks = _load(path)
    if not isinstance(tasks, list):
        raise SourceError(f"{path}: expected a list of tasks")
    out, names, pages = Imported(), {}, {}
    for number, task in enumerate(tasks):
        where = f"{os.fspath(path)}: task {number}"
        data = task.get("data", {}) if isinstance(task, dict) else {}
        if not any(k in data for k in ("ocr", "image")):
            out.problems.append(f"{where}: data has {', '.join(map(repr, data)) or 'nothing'}: accepted templates are "
                                f"{'; '.join(TEMPLATES)}")
            continue
        results = [r for a in task.get("annotations", [])[:1] for r in a.get("result", [])]
        own = [one for one in regions(results) if one["box"] is not None and (one["text"] or "").strip()]
        size = next((one["size"] for one in reversed(own) if all(one["size"])), (100, 100))
        words, places = [], {}
        for one in own:
            places[one["id"]] = list(range(len(words), len(words) + len(one["text"].split())))
            words += _words(one, size)
        name = data["id"] if isinstance(data.get("id"), str) and data["id"] else str(task.get("id", number))
        value = {"id": name, "width": size[0], "height": size[1], "words": words}
        value |= {key: data[key] for key in ("rotation", "document", "number", "reader") if key in data}
        try:
            page = document_from_json(value, repair=True).pages[0]
        except PageError as error:
            out.problems.append(f"{where}: {error}")
            continue
        out.notes += page.repairs
        document = page.document or page.id
        pages.setdefault(document, []).append(page)
        values = out.values.setdefault(document, {})
        for label, chain in chains(results, own):
            names[label] = True
            at = {"page": len(pages[document]) - 1} if len(pages[document]) > 1 else {}
            values.setdefault(label, []).append({"value": " ".join(one["text"] for one in chain), **at,
                                                 "words": [w for one in chain for w in places[one["id"]]]})
    out.documents = [Document(name, tuple(own), {}) for name, own in pages.items()]
    return with_schema(out, names, schema)


def _words(region, size):
    """The words of a region's text, its box cut in proportion to the characters; list of dict."""
    x, y, w, h = (v * s / 100 for v, s in zip(region["box"], (*size, *size)))
    text, words, at = region["text"].strip(), [], 0
    for part in text.split():
        begin = text.index(part, at)
        at = begin + len(part)
        box = [x + w * begin / len(text), y, x + w * at / len(text), y + h]
        for i, (edge, most) in enumerate(zip(box, (*size, *size))):
            if most < edge < most * 1.000001:
                box[i] = most  # a percentage's rounding
        words.append({"text": part, "box": box})
    return words
