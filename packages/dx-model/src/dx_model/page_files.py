"""Pages as JSON, one page or document a line."""
import gzip
import json
import os
import zlib

from . import strict_json
from .files import replace_file
from .pages import Document, Page, PageError, Word, is_number, repair_words, take_extra

_PAGE_KEYS = ("id", "width", "height", "words", "rotation", "document", "number")
_WORD_KEYS = frozenset(("text", "box", "line"))


def read_documents(path, *, repair=False, problems=None):
    """The documents of a JSON-lines file, one after the other.

    Parameters
    ----------
    path : str or path; a name that ends in .gz is read through gzip; blank lines are skipped
    repair : bool; repair boxes where that is possible and list it in Page.repairs, instead of PageError
    problems : list or None; when given, a broken line does not raise: its message is appended here and reading goes on

    Yields
    ------
    Document: of one page, or of several where the line has `pages`

    Raises
    ------
    PageError: "file:line: …" for text that is not UTF-8, JSON that is refused, a page that breaks a rule
    """
    path = os.fspath(path)
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
        number = 0
        while True:
            number += 1
            try:
                line = file.readline()
            except (OSError, EOFError, zlib.error) as error:
                raise PageError(f"{path}:{number}: {error}") from None
            if not line:
                return
            if number == 1 and line.startswith(b"\xef\xbb\xbf"):
                line = line[3:]
            if not line.strip():
                continue
            try:
                document = document_from_json(strict_json.loads(line.decode("utf-8")), repair=repair)
            except UnicodeDecodeError as error:
                problem = f"{path}:{number}: not UTF-8: {error.reason} at byte {error.start}"
            except (PageError, strict_json.StrictJSONError) as error:
                problem = f"{path}:{number}: {error}"
            else:
                yield document
                continue
            if problems is None:
                raise PageError(problem)
            problems.append(problem)


def read_pages(path, *, repair=False, problems=None):
    """The pages of a JSON-lines file, documents cut into pages; as read_documents."""
    for document in read_documents(path, repair=repair, problems=problems):
        yield from document.pages


def document_from_json(value, *, repair=False):
    """A Document from one JSON object: a page, or a document whose words say their `page` and whose `pages` lists
    [width, height] of each. The pages of a document are named `<id>/<number>`, numbers from 0."""
    if not isinstance(value, dict):
        raise PageError(f"{_short(value)}: expected an object with id, width, height, words")
    if "pages" not in value:
        page = page_from_json(value, repair=repair)
        return Document(page.document or page.id, (page,), {})
    name = value.get("id")
    sizes, words = value["pages"], value.get("words")
    if not isinstance(name, str) or not name:
        raise PageError(f"id is {_short(name)}: expected a string that is not empty")
    if not isinstance(sizes, list) or any(not isinstance(s, list) or len(s) != 2 for s in sizes):
        raise PageError(f"document {name!r}: pages is {_short(sizes)}: expected a list of [width, height]")
    if not isinstance(words, list):
        raise PageError(f"document {name!r}: words is {_short(words)}: expected a list")
    own = {k: v for k, v in value.items() if k in ("labels", "groups", "entities", "links")}
    _check_extra(f"document {name!r}", own, len(words))
    members = [[] for _ in sizes]
    for index, word in enumerate(words):
        number = word.get("page") if isinstance(word, dict) else None
        if type(number) is not int or not 0 <= number < len(sizes):
            raise PageError(f"document {name!r}, word {index}: page is {_short(number)}: "
                            f"expected 0 to {len(sizes) - 1}")
        members[number].append(index)
    pages = []
    for number, (size, indices) in enumerate(zip(sizes, members)):
        page = {"id": f"{name}/{number}", "width": size[0], "height": size[1], "document": name, "number": number,
                "words": [words[i] for i in indices]}
        place = {old: new for new, old in enumerate(indices)}
        page |= take_extra(own, place, len(words))
        pages.append(_page(page, repair, _WORD_KEYS | {"page"}))
    extra = {k: v for k, v in value.items() if k not in ("id", "words", "pages") and k not in own}
    return Document(name, tuple(pages), extra)


def page_from_json(value, *, repair=False):
    """A Page from one JSON object; PageError as read_documents."""
    return _page(value, repair, _WORD_KEYS)


def _page(value, repair, word_keys):
    if not isinstance(value, dict):
        raise PageError(f"{_short(value)}: expected an object with id, width, height, words")
    name = value.get("id")
    for key in ("id", "words"):
        if key not in value:
            raise PageError(f"page {_short(name)}: {key} is missing" if key != "id" else "id is missing")
    if not isinstance(value["words"], list):
        raise PageError(f"page {_short(name)}: words is {_short(value['words'])}: expected a list")
    words = [_word(name, index, word, word_keys) for index, word in enumerate(value["words"])]
    extra = {k: v for k, v in value.items() if k not in _PAGE_KEYS}
    _check_extra(f"page {_short(name)}", extra, len(words))
    width, height, repairs = value.get("width"), value.get("height"), []
    if repair:
        width, height = (_farthest(name, key, value.get(key), words, side, repairs)
                         for key, side in (("width", 0), ("height", 1)))
        if is_number(width) and is_number(height):
            words, done = repair_words(name, width, height, words)
            repairs += done
    return Page(name, width, height, words, value.get("rotation", 0), value.get("document"), value.get("number"), extra,
                tuple(repairs))


def _farthest(page, key, size, words, side, repairs):
    """A missing width or height is that of the farthest edge."""
    if size is None:
        size = 1
        for word in words:
            edges = word.box[side::2] if isinstance(word.box, tuple) else ()
            size = max([size, *(edge for edge in edges if is_number(edge))])
        repairs.append(f"page {page!r}: {key} is missing: {size}, the farthest edge")
    return size


def _word(page, index, value, keys):
    if not isinstance(value, dict) or "text" not in value or "box" not in value:
        raise PageError(f"page {page!r}, word {index}: {_short(value)}: expected an object with text and box")
    box = tuple(value["box"]) if isinstance(value["box"], list) else value["box"]
    extra = {k: v for k, v in value.items() if k not in keys} if not keys.issuperset(value) else {}
    return Word(value["text"], box, value.get("line"), extra)


def _check_extra(where, extra, words):
    """PageError unless `entities`, `links` and `groups`, where there are any, are what those who read them rely on."""
    for key in ("entities", "links", "groups"):
        if extra.get(key) is not None and not isinstance(extra[key], list):
            raise PageError(f"{where}: {key} is {_short(extra[key])}: expected a list")
    for entity in extra.get("entities") or ():
        if not isinstance(entity, dict) or not isinstance(entity.get("words", []), list):
            raise PageError(f"{where}: entity {_short(entity)}: expected an object with a list of words")
        if not _is_name(entity.get("id")):
            raise PageError(f"{where}: entity id {_short(entity['id'])}: expected whole number or text")
        for word in entity.get("words", ()):
            if type(word) is not int or not 0 <= word < words:  # exact: whole numbers
                raise PageError(f"{where}: entity {_short(entity)}: word {_short(word)}: expected 0 to {words - 1}")
    for link in extra.get("links") or ():
        if not isinstance(link, list) or len(link) != 2 or not all(map(_is_name, link)):
            raise PageError(f"{where}: link {_short(link)}: expected two entity ids")
    for group in extra.get("groups") or ():
        if not _is_name(group):
            raise PageError(f"{where}: group {_short(group)}: expected a number, text or null for each word")


def _is_name(value):
    return value is None or type(value) in (int, str)


def _short(value):
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def page_to_json(page):
    """The page as page_from_json reads it; dict."""
    value = {"id": page.id, "width": page.width, "height": page.height}
    for key, default in (("rotation", 0), ("document", None), ("number", None)):
        if getattr(page, key) != default:
            value[key] = getattr(page, key)
    value["words"] = [_word_to_json(w) for w in page.words]
    return {**value, **page.extra}


def _word_to_json(word):
    value = {"text": word.text, "box": list(word.box)}
    if word.line is not None:
        value["line"] = word.line
    return {**value, **word.extra}


def json_line(value):
    """A value as one line of JSON; bytes, UTF-8, or plain ASCII with escapes where a text is one that UTF-8 cannot hold
    (a lone surrogate). An int stays an int, a float is written so that it reads back to the same bits."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8") + b"\n"
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"


def write_pages(path, pages):
    """Writes pages as JSON lines (json_line), one at a time; the file is replaced whole or not at all."""
    with replace_file(path) as file:
        for page in pages:
            file.write(json_line(page_to_json(page)))
