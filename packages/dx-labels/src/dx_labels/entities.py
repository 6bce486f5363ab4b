"""Entities of tag sequences, and F1 over sets of things that must agree exactly."""
from dataclasses import dataclass

from .intervals import clopper_pearson

REPAIRS = ("drop", "begin", "as-is")
SCHEMES = ("IOB2", "IOBES")


@dataclass(frozen=True)
class F1:
    """True positives, predicted and gold things. F1 = 2·TP / (predicted + gold); a share without a denominator is 0."""
    tp: int
    predicted: int
    gold: int

    @property
    def precision(self):
        return self.tp / self.predicted if self.predicted else 0.0

    @property
    def recall(self):
        return self.tp / self.gold if self.gold else 0.0

    @property
    def f1(self):
        return 2 * self.tp / (self.predicted + self.gold) if self.predicted + self.gold else 0.0

    def __add__(self, other):
        return F1(self.tp + other.tp, self.predicted + other.predicted, self.gold + other.gold)

    def to_json(self):
        """Counts, shares, and the Clopper-Pearson 95 % intervals of precision and recall; dict."""
        return {"tp": self.tp, "predicted": self.predicted, "gold": self.gold, "f1": self.f1,
                "precision": self.precision, "precision_interval": list(clopper_pearson(self.tp, self.predicted)),
                "recall": self.recall, "recall_interval": list(clopper_pearson(self.tp, self.gold))}


def exact_f1(gold, predicted):
    """F1 of things that must be equal, each counted as often as it stands there: entities as (document, label, words),
    links as (document, from, to), groups as (document, words).

    Parameters
    ----------
    gold, predicted : iterables of hashable values; words as tuples in a fixed order
    """
    gold, predicted, tp, left = list(gold), list(predicted), 0, {}
    for one in gold:
        left[one] = left.get(one, 0) + 1
    for one in predicted:
        if left.get(one, 0):
            left[one] -= 1
            tp += 1
    return F1(tp, len(predicted), len(gold))


def _parts(tag):
    if tag == "O":
        return "O", ""
    prefix, _, label = tag.partition("-")
    if prefix not in ("B", "I", "E", "S"):
        raise ValueError(f"tag {tag!r}: expected O, or B, I, E or S with -LABEL")
    return prefix, label


def tag_entities(tags, scheme="IOB2", repair="drop"):
    """The entities of one sequence of tags.

    Parameters
    ----------
    tags : list of str: O, B-LABEL, I-LABEL (and E-, S- in IOBES). Bare B, I, E, S are entities of the label ''.
    scheme : "IOB2": B, then I of the label; "IOBES": S alone, or B, then I, then E of the label
    repair : what becomes of tags that break the scheme. "drop": they are no entity (seqeval's strict mode). "begin": a
        run of one label begins wherever its first tag stands, whatever its letter, and ends where the label or an
        entity ends (conlleval, seqeval's default mode). "as-is": entities as dropped; what was dropped is kept as runs
        labelled '?LABEL', which count as predicted and equal no gold entity.

    Returns
    -------
    list of (label, first, last), in order
    """
    if scheme not in SCHEMES or repair not in REPAIRS:
        raise ValueError(f"scheme = {scheme!r}, repair = {repair!r}: expected one of {SCHEMES} and of {REPAIRS}")
    parts = [_parts(t) for t in tags]
    if repair == "begin":
        return _runs(parts)
    found, used = [], [False] * len(parts)
    for first, (prefix, label) in enumerate(parts):
        last = _end(parts, first, label, scheme) if prefix in ("B", "S") else None
        if last is not None:
            found.append((label, first, last))
            used[first:last + 1] = [True] * (last + 1 - first)
    if repair == "as-is":
        rest = [("O", "") if u else p for p, u in zip(parts, used)]
        found = sorted([*found, *(("?" + label, a, b) for label, a, b in _runs(rest))], key=lambda e: e[1:])
    return found


def _end(parts, first, label, scheme):
    """The last tag of the legal entity that begins at first; None when it is not legal."""
    if parts[first][0] == "S":
        return first if scheme == "IOBES" else None
    last = first
    while last + 1 < len(parts) and parts[last + 1] == ("I", label):
        last += 1
    if scheme == "IOB2":
        return last
    return last + 1 if last + 1 < len(parts) and parts[last + 1] == ("E", label) else None


def _runs(parts):
    """Runs by the lenient rule of conlleval."""
    found, first = [], None
    for i, (prefix, label) in enumerate([*parts, ("O", "")]):
        before = parts[i - 1] if i else ("O", "")
        starts = prefix != "O" and (before[0] in ("O", "E", "S") or before[1] != label or prefix in ("B", "S"))
        if first is not None and (prefix == "O" or starts):
            found.append((parts[i - 1][1], first, i - 1))
            first = None
        if starts:
            first = i
    return found


def tag_f1(gold, predicted, scheme="IOB2", repair="drop"):
    """Entity F1 of tag sequences, in all and per label, by a stated scheme and repair rule (both sides).

    Parameters
    ----------
    gold, predicted : lists of sequences of tags, equally long

    Returns
    -------
    (F1, dict label → F1, labels sorted)
    """
    if [len(g) for g in gold] != [len(p) for p in predicted]:
        raise ValueError("gold and predicted are not equally long")
    sides = [[(k, *entity) for k, tags in enumerate(side) for entity in tag_entities(tags, scheme, repair)]
             for side in (gold, predicted)]
    labels = sorted({e[1].lstrip("?") for side in sides for e in side})
    each = {label: exact_f1(*([e for e in side if e[1].lstrip("?") == label] for side in sides)) for label in labels}
    return exact_f1(*sides), each
