"""Words, pages and documents, and the one place where boxes are checked.

Boxes are (x0, y0, x1, y1) in the page's own units, origin top left, y down, 0 <= x0 <= x1 <= width and
0 <= y0 <= y1 <= height."""
from dataclasses import dataclass, field, replace
from numbers import Integral, Real

import numpy as np

LIMIT = 2.0 ** 30  # exact: the largest coordinate
ROTATIONS = (0, 90, 180, 270)
NUMBERS = frozenset((int, float))


class PageError(ValueError):
    """A page that breaks a rule; the message names page, word, value and rule."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word as the source gives it.

    text : str, any Unicode text, may be empty
    box : (x0, y0, x1, y1), numbers, in the page's units; a tuple, a list or an array
    line : int or None, the source's own line number (>= 0)
    extra : dict, further keys of the word, kept as they are

    Real numbers of any type (numpy's too, no bool) become the int or float of exactly that value.
    """
    text: str
    box: tuple
    line: int | None = None
    extra: dict = field(default_factory=dict)

    def __post_init__(self):
        box = self.box
        if type(box) is not tuple or not NUMBERS.issuperset(map(type, box)):
            if isinstance(box, (tuple, list)) or (isinstance(box, np.ndarray) and box.ndim == 1):
                object.__setattr__(self, "box", tuple(map(plain_number, box)))
        if type(self.line) is not int and self.line is not None:
            object.__setattr__(self, "line", plain_number(self.line))


@dataclass(frozen=True)
class Page:
    """One page. Making one checks it: PageError names page, word and value.

    id : str, not empty
    width, height : numbers above 0
    words : tuple of Word, in the source's order
    rotation : 0, 90, 180 or 270, degrees by which the content is turned clockwise against upright reading
    document, number : the document it was cut from and its place there (from 0), or None
    extra : dict, further keys (labels, fields, reader, crop, …), kept as they are
    repairs : tuple of str, what reading with repair=True changed
    """
    id: str
    width: float
    height: float
    words: tuple = ()
    rotation: int = 0
    document: str | None = None
    number: int | None = None
    extra: dict = field(default_factory=dict)
    repairs: tuple = ()

    def __post_init__(self):
        object.__setattr__(self, "words", tuple(self.words))
        for name in ("width", "height", "rotation"):
            object.__setattr__(self, name, plain_number(getattr(self, name)))
        check_page(self)

    @property
    def texts(self):
        """The texts of the words; list of str."""
        return [w.text for w in self.words]

    @property
    def unmapped_glyphs(self):
        """How many replacement characters (U+FFFD) the words hold: glyphs the reader could not map; int."""
        count = 0
        for word in self.words:
            count += word.text.count("\ufffd")
        return count


@dataclass(frozen=True)
class Document:
    """Pages that belong together. extra: what the file says of the document as a whole (fields, …)."""
    id: str
    pages: tuple = ()
    extra: dict = field(default_factory=dict)


def plain_number(value):
    """A real number of another type as the int or float of exactly that value; anything else, and a number that no
    float equals, as it is."""
    if type(value) in NUMBERS or isinstance(value, bool) or not isinstance(value, Real):
        return value
    plain = int(value) if isinstance(value, Integral) else float(value)
    return plain if plain == value or plain != plain else value


def is_number(value):
    """Is value an int or float (no bool) within ±2^30? NaN and infinity are not; bool."""
    return type(value) in (int, float) and -LIMIT <= value <= LIMIT


def check_page(page):
    """PageError unless every rule of Page holds."""
    if not isinstance(page.id, str) or not page.id:
        raise PageError(f"id is {page.id!r}: expected a string that is not empty")
    for name in ("width", "height"):
        size = getattr(page, name)
        if not is_number(size) or size <= 0:
            raise PageError(f"page {page.id!r}: {name} is {size!r}: expected a number above 0, at most 2^30")
    if page.rotation not in ROTATIONS or type(page.rotation) is not int:
        raise PageError(f"page {page.id!r}: rotation is {page.rotation!r}: expected 0, 90, 180 or 270")
    if page.document is not None and (not isinstance(page.document, str) or not page.document):
        raise PageError(f"page {page.id!r}: document is {page.document!r}: expected a text or none")
    if page.number is not None and (type(page.number) is not int or page.number < 0):  # exact: a whole number
        raise PageError(f"page {page.id!r}: number is {page.number!r}: expected a whole number from 0, or none")
    for index, word in enumerate(page.words):
        if not is_good(word, page.width, page.height):
            problem = word_problem(word) or box_problem(word.box, page.width, page.height)
            raise PageError(f"{word_name(page.id, index, word)}: {problem}")


def is_good(word, width, height):
    """Does a word keep every rule on its page? The quick answer for the usual case: where it is no, word_problem and
    box_problem say why; bool."""
    box, line = word.box, word.line
    return (isinstance(word.text, str) and type(box) is tuple and len(box) == 4 and NUMBERS.issuperset(map(type, box))
            and 0 <= box[0] <= box[2] <= width and 0 <= box[1] <= box[3] <= height
            and (line is None or (type(line) is int and 0 <= line < 2 ** 31)))  # exact: whole numbers


def word_name(page_id, index, word):
    """How messages name a word; str."""
    text = word.text if isinstance(word.text, str) else repr(word.text)
    return f"page {page_id!r}, word {index} ({text[:30]!r})"


def word_problem(word):
    """What is wrong with a word apart from its place: no repair for that; str or None."""
    if not isinstance(word.text, str):
        return f"text is {word.text!r}: expected a string"
    if word.line is not None and (type(word.line) is not int or not 0 <= word.line < 2 ** 31):  # exact: whole numbers
        return f"line is {word.line!r}: expected a whole number from 0 to 2^31 - 1"
    if not isinstance(word.box, tuple) or len(word.box) != 4:
        return f"box is {word.box!r}: expected four numbers x0, y0, x1, y1"
    for name, value in zip(("x0", "y0", "x1", "y1"), word.box):
        if not is_number(value):
            return f"box {list(word.box)}: {name} = {value!r}: expected a number from -2^30 to 2^30"
    return None


def box_problem(box, width, height):
    """The first rule that four numbers break as a box on a page; str or None."""
    x0, y0, x1, y1 = box
    if 0 <= x0 <= x1 <= width and 0 <= y0 <= y1 <= height:
        return None
    for low, high, a, b, name, size in (("x0", "x1", x0, x1, "width", width), ("y0", "y1", y0, y1, "height", height)):
        if a > b:
            return f"box {list(box)}: {low} = {a} is greater than {high} = {b}: expected {low} <= {high}"
        if a < 0:
            return f"box {list(box)}: {low} = {a} is below 0"
        if b > size:
            return f"box {list(box)}: {high} = {b} is beyond the page's {name} {size}"


def repair_box(box, width, height):
    """(box, what was done): edges in the wrong order swapped, what hangs over the page clipped, a side without length
    made one unit long (less at the page's edge); (tuple, list of str)."""
    done = []
    sides = []
    for a, b, size, low, high in ((box[0], box[2], width, "x0", "x1"), (box[1], box[3], height, "y0", "y1")):
        if a > b:
            a, b = b, a
            done.append(f"{low} and {high} swapped")
        clipped = min(max(a, 0), size), min(max(b, 0), size)
        if clipped != (a, b):
            done.append(f"{low}, {high} clipped to the page")
        a, b = clipped
        if a == b:
            a, b = max(a - 0.5, 0), min(b + 0.5, size)
            done.append(f"{low}, {high} made longer than 0")
        sides.append((a, b))
    return (sides[0][0], sides[1][0], sides[0][1], sides[1][1]), done


def repair_words(page_id, width, height, words):
    """(words with boxes that hold on the page, list of what was done). PageError for what cannot be repaired."""
    fixed, repairs = [], []
    for index, word in enumerate(words):
        good = is_good(word, width, height)
        problem = None if good else word_problem(word)
        if problem:
            raise PageError(f"{word_name(page_id, index, word)}: {problem}")
        if good and word.box[0] < word.box[2] and word.box[1] < word.box[3]:
            fixed.append(word)
            continue
        box, done = repair_box(word.box, width, height)
        if done:
            repairs.append(f"{word_name(page_id, index, word)}: box {list(word.box)}: {', '.join(done)}: {list(box)}")
            word = Word(word.text, box, word.line, word.extra)
        fixed.append(word)
    return fixed, repairs


def crop_page(page, box=None):
    """The page without the words whose middle lies outside a crop box.

    Parameters
    ----------
    page : Page
    box : (x0, y0, x1, y1) or None: the page's own extra["crop"]; without one the page is returned as it is
    """
    box = page.extra.get("crop") if box is None else box
    if box is None:
        return page
    problem = word_problem(Word("", tuple(box) if isinstance(box, list) else box))
    if problem:
        raise PageError(f"page {page.id!r}: crop {problem}")
    x0, y0, x1, y1 = box
    kept = [i for i, w in enumerate(page.words)
            if x0 <= (w.box[0] + w.box[2]) / 2 <= x1 and y0 <= (w.box[1] + w.box[3]) / 2 <= y1]
    return take_words(page, kept)


def take_words(page, kept):
    """The page with the words of these numbers alone, in this order; what extra says of single words goes along."""
    place = {old: new for new, old in enumerate(kept)}
    return replace(page, words=[page.words[i] for i in kept], extra=take_extra(page.extra, place, len(page.words)))


def take_extra(extra, place, words):
    """extra for the words old → new of place: lists with one entry a word, word numbers of entities, and links between
    entities that are left; dict."""
    result = dict(extra)
    old = sorted(place, key=place.get)
    for name in ("labels", "groups"):
        if isinstance(extra.get(name), list) and len(extra[name]) == words:
            result[name] = [extra[name][i] for i in old]
    if isinstance(extra.get("entities"), list):
        moved = [{**e, "words": [place[i] for i in e.get("words", ()) if i in place]} for e in extra["entities"]]
        result["entities"] = [e for e, was in zip(moved, extra["entities"]) if e["words"] or not was.get("words")]
        left = {e.get("id") for e in result["entities"]}
        if isinstance(extra.get("links"), list):
            result["links"] = [link for link in extra["links"] if all(end in left for end in link)]
    return result
