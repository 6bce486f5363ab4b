"""Entities, key-value pairs and line items from the role and pointer heads."""
import numpy as np

from ..below import decode_tags, groups_of_pointers, run_posteriors, runs_of_tags
from .results import Entity, Group, Pair


def entities_of_roles(config, logits, places) -> tuple:
    """Runs of the best legal role tagging, in reading order; a role may have any number of runs."""
    repeated, tags = np.ones(len(config.roles), np.uint8), np.empty(len(logits), np.int32)
    decode_tags(logits, repeated, tags)
    runs = runs_of_tags(tags)
    p = np.empty(len(runs))
    run_posteriors(logits, repeated, np.empty(len(config.roles)), runs, p)
    return tuple(Entity(config.roles[k], places.value(first, last, q))
                 for (k, first, last), q in zip(runs.tolist(), p.tolist()))


def pairs_of_entities(entities, pointers, probability) -> tuple:
    """Each entity with the entity that most of its rows point at, the first of equal ones; no pair where that is itself
    or rows outside all entities. The pointing entity is the value, the other the key. confidence: the mean of the
    probabilities of those rows' pointers, in the order of rows, times their share of the entity's rows."""
    owner = {}
    for number, entity in enumerate(entities):
        first, last = entity.value.rows
        owner |= dict.fromkeys(range(first, last + 1), number)
    pairs = []
    for number, entity in enumerate(entities):
        first, last = entity.value.rows
        votes = {}
        for row in range(first, last + 1):
            votes.setdefault(owner.get(int(pointers[row]), -1), []).append(float(probability[row]))
        key = min(votes, key=lambda k: (-len(votes[k]), k))
        if key in (-1, number):
            continue
        total = 0.0
        for p in votes[key]:
            total += p
        pairs.append(Pair(key, number, total / (last + 1 - first)))
    return tuple(pairs)


def groups_of_values(fields, pointers, places) -> tuple:
    """Line items: rows whose pointers lead to one anchor (numerics.md "Decoding"), groups of two or more rows, in the
    order of their anchors. A value belongs to the group of most of its rows, the first of equal ones."""
    anchors = np.empty(len(pointers), np.int32)
    groups_of_pointers(np.ascontiguousarray(pointers), anchors)
    rows, members = {}, {}
    for row, anchor in enumerate(anchors.tolist()):
        rows.setdefault(anchor, []).append(row)
    for name, result in fields.items():
        for number, value in enumerate(result.values):
            counts = {}
            for row in range(value.rows[0], value.rows[1] + 1):
                counts[int(anchors[row])] = counts.get(int(anchors[row]), 0) + 1
            anchor = min(counts, key=lambda a: (-counts[a], a))
            members.setdefault(anchor, {}).setdefault(name, []).append(number)
    return tuple(Group(places.parts(anchor, anchor)[0], _all_parts(places, own), members.get(anchor, {}))
                 for anchor, own in sorted(rows.items()) if len(own) > 1)


def _all_parts(places, rows):
    """Parts of rows that need not follow one another."""
    parts, first = [], rows[0]
    for row, after in zip(rows, rows[1:] + [None]):
        if after != row + 1:
            parts += places.parts(first, row)
            first = after
    return tuple(parts)
