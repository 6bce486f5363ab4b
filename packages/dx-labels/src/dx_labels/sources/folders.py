"""Readers of data sets in the form their makers publish: SROIE, FUNSD, CORD, Donut."""
import os
from pathlib import Path

from ..below import PageError, StrictJSONError, document_from_json, parse_json
from ..schema import schema_from_json
from .base import Imported, SourceError
from .jsonl import CORD_CLASSES, FUNSD_ROLES, SROIE


def _files(folder, suffix):
    """The files of a folder (and its folders) with that suffix, sorted by path; SourceError when there are none."""
    folder = Path(folder)
    if not folder.is_dir():
        raise SourceError(f"{folder}: no folder")
    found = sorted(p for p in folder.rglob(f"*{suffix}") if p.is_file())
    if not found:
        raise SourceError(f"{folder}: no file *{suffix}")
    return found


def _text(path):
    data = Path(path).read_bytes().removeprefix(b"\xef\xbb\xbf")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SourceError(f"{path}: not UTF-8: {error.reason} at byte {error.start}") from None


def _json(path):
    try:
        return parse_json(_text(path))
    except StrictJSONError as error:
        raise SourceError(f"{path}: {error}") from None


def _each(paths, read):
    """Imported of what read(path) gives of each file: (page value, values); broken ones become problems."""
    out = Imported()
    for path in paths:
        try:
            value, values = read(path)
            document = document_from_json(value, repair=True)
        except (SourceError, PageError) as error:
            text = str(error)
            out.problems.append(text if text.startswith(str(path)) else f"{path}: {text}")
            continue
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            out.problems.append(f"{path}: not of this format ({type(error).__name__}: {error})")
            continue
        out.documents.append(document)
        out.values[document.id] = values
        out.notes += [note for page in document.pages for note in page.repairs]
    return out


def _corners(numbers):
    """[x0, y0, x1, y1] around corner coordinates x, y, x, y, …"""
    xs, ys = numbers[0::2], numbers[1::2]
    return [min(xs), min(ys), max(xs), max(ys)]


def words_of_line(text, box, line):
    """A line's words, its box cut at white space in proportion to the characters; list of dict."""
    x0, y0, x1, y1 = box
    words, begin, count = [], 0, max(len(text), 1)
    for part in text.split():
        begin = text.index(part, begin)
        end = begin + len(part)
        words.append({"text": part, "line": line,
                      "box": [x0 + (x1 - x0) * begin / count, y0, x0 + (x1 - x0) * end / count, y1]})
        begin = end
    return words


def read_sroie_folder(path, schema=None):
    """Box files "x1,y1,…,y4,text" (a line each) and key files of the same name in JSON: in one folder side by side as
    NAME.txt and NAME.json, or in folders of their own, where the key files (.txt or .json) lie in one named key…,
    entities…"""
    texts, keys = [], {}
    for p in sorted({*_files(path, ".txt"), *sorted(Path(path).rglob("*.json"))}):
        if p.parent.name.startswith(("key", "entities")) or p.suffix == ".json":
            keys[p.stem] = p
        else:
            texts.append(p)
    names = schema or schema_from_json(SROIE)

    def read(file):
        words = []
        for number, line in enumerate(_text(file).splitlines()):
            if not line.strip():
                continue
            parts = line.split(",", 8)
            try:
                box = _corners([float(v) for v in parts[:8]])
            except ValueError:
                raise SourceError(f"{file}:{number + 1}: {line[:40]!r}: expected eight numbers and a text") from None
            if len(parts) < 9:
                raise SourceError(f"{file}:{number + 1}: {line[:40]!r}: expected eight numbers and a text")
            words += words_of_line(parts[8], box, number)
        values = _json(keys[file.stem]) if file.stem in keys else {}
        return {"id": file.stem, "words": words}, {k: v for k, v in values.items() if k in names.names}

    out = _each(texts, read)
    out.schema = names
    return out


def read_funsd_folder(path, schema=None):
    """Annotation files {"form": [{"id", "label", "text", "words": [{"text", "box"}], "linking"}]}."""
    def read(file):
        words, entities, links = [], [], {}
        for entity in _json(file)["form"]:
            own = [w for w in entity["words"] if w["text"].strip()]
            entities.append({"id": entity["id"], "label": entity["label"],
                             "words": list(range(len(words), len(words) + len(own)))})
            words += [{"text": w["text"], "box": w["box"]} for w in own]
            links |= {tuple(link): True for link in entity["linking"]}
        return {"id": file.stem, "words": words, "entities": entities, "links": [list(link) for link in links]}, {}

    out = _each(_files(path, ".json"), read)
    out.schema, out.roles = schema, FUNSD_ROLES
    return out


def read_xfund(path, schema=None):
    """JSON files {"documents": [{"id", "img": {"width", "height"}, "document": [{"id", "label", "text", "words":
    [{"text", "box"}], "linking"}]}]}: FUNSD's forms in other languages, one file a language and part. An entity without
    words has its text as one word in its own box; links to entities that are not there are left out and named."""
    out = Imported(schema=schema, roles=FUNSD_ROLES)
    for file in [Path(path)] if os.path.isfile(path) else _files(path, ".json"):
        try:
            documents = _json(file)["documents"]
            if not isinstance(documents, list):
                raise TypeError("documents is no list")
        except (SourceError, KeyError, TypeError) as error:
            text = str(error)
            out.problems.append(text if text.startswith(str(file)) else f"{file}: not of this format ({error})")
            continue
        for number, value in enumerate(documents):
            try:
                document = document_from_json(_xfund_page(value, out.notes), repair=True)
            except (PageError, KeyError, TypeError, AttributeError, ValueError) as error:
                out.problems.append(f"{file}: document {number}: {type(error).__name__}: {error}")
                continue
            out.documents.append(document)
            out.notes += [note for page in document.pages for note in page.repairs]
    if not out.documents and not out.problems:
        raise SourceError(f"{path}: no document")
    return out


def _xfund_page(value, notes):
    words, entities, links = [], [], {}
    for entity in value["document"]:
        own = [w for w in entity.get("words") or [entity] if w["text"].strip()]
        entities.append({"id": entity["id"], "label": entity["label"].lower(),
                         "words": list(range(len(words), len(words) + len(own)))})
        words += [{"text": w["text"], "box": w["box"]} for w in own]
        links |= {tuple(link): True for link in entity.get("linking") or ()}
    there = {entity["id"] for entity in entities}
    lost = [link for link in links if not there.issuperset(link)]
    if lost:
        notes.append(f"document {value['id']!r}: {len(lost)} links to entities that are not there left out")
    size = {key: value["img"][key] for key in ("width", "height")} if "img" in value else {}
    return {"id": value["id"], **size, "words": words, "entities": entities,
            "links": [list(link) for link in links if there.issuperset(link)]}


def read_cord_folder(path, schema=None):
    """JSON files {"valid_line": [{"category", "group_id", "words": [{"quad", "text"}]}], "meta": …}; or Donut's
    metadata.jsonl, which has values (gt_parse) and no words: an error that says so."""
    if os.path.isfile(path) or (Path(path) / "metadata.jsonl").is_file():
        raise SourceError(f"{path}: Donut's metadata.jsonl holds values without words; pages with words are needed "
                          "(CORD's own JSON files have them)")
    names = schema or schema_from_json({"name": "cord", "fields": [
        {"name": name, "repeated": True} for name in CORD_CLASSES]})

    def read(file):
        value = _json(file)
        words, groups, entities, values = [], [], [], {}
        for line in value["valid_line"]:
            own = []
            for w in line["words"]:
                if w["text"].strip():
                    q = w["quad"]
                    box = _corners([q[f"{axis}{i}"] for i in range(1, 5) for axis in "xy"])
                    own.append(len(words))
                    words.append({"text": w["text"], "box": box, "line": w.get("row_id")})
                    groups.append(line["group_id"])
            if own:
                entities.append({"id": len(entities), "label": line["category"], "words": own})
                if line["category"] in names.names:
                    values.setdefault(line["category"], []).append(
                        {"value": " ".join(words[w]["text"] for w in own), "words": own})
        size = value.get("meta", {}).get("image_size", {})
        page = {"id": file.stem, "words": words, "groups": groups, "entities": entities}
        return {**page, **{k: size[k] for k in ("width", "height") if k in size}}, values

    out = _each(_files(path, ".json"), read)
    out.schema = names
    return out


