"""Tag sequences: exact entities under a named scorer, illegal tags, and which kind of error each entity is."""
from ..entities import F1, _parts, tag_entities, tag_f1
from ..scoring import Share
from .common import averages, equally_long


def illegal_tags(sequences, scheme="IOB2") -> dict:
    """"before > tag" → how often a tag stands where the scheme forbids it; "^" is a sequence's begin, "$" its end."""
    found = {}
    for tags in sequences:
        parts = [_parts(t) for t in tags]
        for i in range(len(parts) + 1):
            before = parts[i - 1] if i else ("O", "")
            now = parts[i] if i < len(parts) else ("O", "")
            if not _legal(before, now, scheme):
                key = f"{tags[i - 1] if i else '^'} > {tags[i] if i < len(tags) else '$'}"
                found[key] = found.get(key, 0) + 1
    return dict(sorted(found.items()))


def _legal(before, now, scheme) -> bool:
    inside = before[0] in ("B", "I")
    if scheme == "IOB2":
        return now[0] in ("O", "B") or now[0] == "I" and inside and before[1] == now[1]
    if now[0] in ("I", "E"):
        return inside and before[1] == now[1]
    return not inside  # O, B and S end nothing: an open entity must have been closed by E


def span_errors(gold, predicted) -> dict:
    """Each entity of either side once: right, type (same words, another label), boundary (overlap, same label), both
    (overlap, another label), missed, spurious. Entities are (label, first, last); predicted ones are taken in order and
    each gold one is used once, the same words before an overlap."""
    left, open_, found = list(gold), [], dict.fromkeys(ERRORS, 0)
    for one in predicted:
        if one in left:
            left.remove(one)
            found["right"] += 1
        else:
            open_.append(one)
    for tests in ((lambda a, b: a[1:] == b[1:],), (_overlap, _same_label), (_overlap,)):
        rest = []
        for one in open_:
            match = next((g for g in left if all(test(one, g) for test in tests)), None)
            if match is None:
                rest.append(one)
                continue
            left.remove(match)
            found["type" if one[1:] == match[1:] else "boundary" if one[0] == match[0] else "both"] += 1
        open_ = rest
    found["missed"], found["spurious"] = len(left), len(open_)
    return found


ERRORS = ("right", "type", "boundary", "both", "missed", "spurious")


def _overlap(a, b):
    return a[1] <= b[2] and b[1] <= a[2]


def _same_label(a, b):
    return a[0] == b[0]


def tag_scores(gold, predicted, *, scheme: str, repair: str) -> dict:
    """Scores of tag sequences under a scorer named by scheme and repair (entities.tag_entities); both are required,
    because the figure depends on them.

    Returns
    -------
    dict: scorer, entities (F1), labels (F1 each), macro, micro, tokens (accuracy, a Share), illegal (of the predicted
    tags), errors (span_errors, summed), support of gold entities by length in words
    """
    equally_long(gold=gold, predicted=predicted)
    whole, each = tag_f1(gold, predicted, scheme, repair)
    right = total = 0
    errors, lengths = dict.fromkeys(ERRORS, 0), {}
    for g, p in zip(gold, predicted):
        right += [a == b for a, b in zip(g, p)].count(True)
        total += len(g)
        spans = [tag_entities(side, scheme, repair) for side in (g, p)]
        for name, n in span_errors(*spans).items():
            errors[name] += n
        for span in spans[0]:
            size = str(span[2] - span[1] + 1)
            lengths[size] = lengths.get(size, 0) + 1
    counts = {name: F1(c.tp, c.predicted, c.gold) for name, c in each.items()}
    return {"n": len(gold), "scorer": {"scheme": scheme, "repair": repair, "match": "label and both borders"},
            "entities": whole.to_json(), "labels": {k: c.to_json() for k, c in counts.items()}, **averages(counts),
            "tokens": Share(right, total).to_json(), "illegal": illegal_tags(predicted, scheme), "errors": errors,
            "lengths": {k: lengths[k] for k in sorted(lengths, key=int)}}
