"""What extraction gives: values with their words, boxes and confidences, for a page and for a document."""
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Part:
    """The part of one word that a value takes: characters start..end-1 of the page's word number `word` (in the order
    of the file), and the box (x0, y0, x1, y1) around them in the page's units."""

    word: int
    start: int
    end: int
    box: tuple

    def to_json(self) -> dict:
        return {"word": self.word, "start": self.start, "end": self.end, "box": list(self.box)}


@dataclass(frozen=True)
class Value:
    """A run of words read as one value.

    text : the words' parts, a space between different words
    confidence : probability of exactly this run under the page model (numerics.md "Decoding"); of this text when asked
        for votes
    parts : tuple of Part, in reading order
    rows : (first, last), the run among the page's rows
    page : the page's place in its document (from 0), None for a page by itself
    """

    text: str
    confidence: float
    parts: tuple
    rows: tuple
    page: int | None = None

    def to_json(self) -> dict:
        page = {} if self.page is None else {"page": self.page}
        return {"value": self.text, "confidence": self.confidence, **page, "words": [p.to_json() for p in self.parts]}


@dataclass(frozen=True)
class FieldResult:
    """One field of a page or document.

    repeated : whether the schema allows several values
    values : tuple of Value, in reading order; at most one unless repeated
    absent : probability that the page has no value
    alternatives : tuple of Value that were not chosen, most probable first
    """

    name: str
    repeated: bool
    values: tuple
    absent: float
    alternatives: tuple = ()

    @property
    def value(self) -> str | None:
        """The text of the (first) value; None without one."""
        return self.values[0].text if self.values else None

    @property
    def confidence(self) -> float:
        """Probability of what was decided: of the (first) value, else of "no value"."""
        return self.values[0].confidence if self.values else self.absent

    def to_json(self) -> dict:
        others = [v.to_json() for v in self.alternatives]
        if self.repeated:
            return {"values": [v.to_json() for v in self.values], "confidence": self.confidence, "absent": self.absent,
                    "alternatives": others}
        chosen = self.values[0].to_json() if self.values else {"value": None, "confidence": self.absent, "words": []}
        return {**chosen, "absent": self.absent, "alternatives": others}


@dataclass(frozen=True)
class Choice:
    """One of several names, and its probability."""

    name: str
    confidence: float

    def to_json(self) -> dict:
        return {"value": self.name, "confidence": self.confidence}


@dataclass(frozen=True)
class Entity:
    """Words of one role that belong together; value.confidence: probability of exactly this run and role."""

    role: str
    value: Value

    def to_json(self) -> dict:
        return {"role": self.role, **self.value.to_json()}


@dataclass(frozen=True)
class Pair:
    """A value entity and the key entity it points at, by their places in `entities`."""

    key: int
    value: int
    confidence: float

    def to_json(self) -> dict:
        return {"key": self.key, "value": self.value, "confidence": self.confidence}


@dataclass(frozen=True)
class Group:
    """A line item: the words that point at one anchor.

    anchor : Part · parts : tuple of Part, all its words · members : dict field → list of places in that field's values
    """

    anchor: Part
    parts: tuple
    members: dict

    def to_json(self) -> dict:
        return {"anchor": self.anchor.to_json(), "words": [p.to_json() for p in self.parts], "fields": self.members}


@dataclass(frozen=True)
class PageResult:
    """What a model read on one page.

    id : the page's · fields : dict name → FieldResult, in the schema's order · doc_type : Choice or None
    windows : forward passes that the page took · exact : whether the tagging is proved the best legal one
    entities, pairs, groups : tuples of Entity, Pair, Group; None when relations were not asked for
    """

    id: str
    fields: dict
    doc_type: Choice | None
    windows: int
    exact: bool
    entities: tuple | None = None
    pairs: tuple | None = None
    groups: tuple | None = None

    def group_confidence(self, place: int) -> float | None:
        """Score of the line item `groups[place]`: the lowest confidence of its cells, the values of its members.

        A cell's own score is its value's confidence, a field's is FieldResult.confidence. None: it has no value.
        """
        group = self.groups[place]
        return min((self.fields[name].values[k].confidence for name, places in group.members.items() for k in places),
                   default=None)

    def to_json(self) -> dict:
        """A plain dictionary; words by their numbers in the page."""
        result = {"id": self.id, "windows": self.windows, "exact": self.exact,
                  "fields": {name: f.to_json() for name, f in self.fields.items()}}
        if self.doc_type is not None:
            result["doc_type"] = self.doc_type.to_json()
        for name in ("entities", "pairs", "groups"):
            if getattr(self, name) is not None:
                result[name] = [one.to_json() for one in getattr(self, name)]
        for place, group in enumerate(result.get("groups", ())):
            group["confidence"] = self.group_confidence(place)
        return result


@dataclass(frozen=True)
class DocumentResult:
    """What a model read in a document: `fields` and `doc_type` of the document as a whole, and its pages' results."""

    id: str
    fields: dict
    doc_type: Choice | None
    pages: tuple = field(default=())

    def to_json(self) -> dict:
        result = {"id": self.id, "fields": {name: f.to_json() for name, f in self.fields.items()}}
        if self.doc_type is not None:
            result["doc_type"] = self.doc_type.to_json()
        return {**result, "pages": [page.to_json() for page in self.pages]}
