"""From row predictions back to the source: pieces to words, words to entities with their characters and a score.

Grouping is by word first: the tag of a word decides, never the tags of its pieces one by one, and words are known from
the tokenizer's word ids and offsets, never from how a piece looks.
"""
from dataclasses import dataclass

import numpy as np

from ...below import log64
from ..errors import require
from ..pieces import words_of_rows
from ..rows import RowTable
from ..scores import Scores, ScoreType
from .tagging import TagScheme

WORD_RULES = ("first", "vote", "mean")


@dataclass(frozen=True)
class SourceEntity:
    """One entity of the source text.

    kind : its type · sequence, start, end : half-open characters of its source · words : first and last word id ·
    score : by `method` · method : how the score was formed
    """

    kind: str
    sequence: int
    start: int
    end: int
    words: tuple[int, int]
    score: float
    method: str

    def text(self, source: str) -> str:
        return source[self.start:self.end]


def word_probabilities(table: RowTable, probabilities: Scores, rule: str):
    """(words_of_rows(table), (W, C) float64): one row of probabilities for each word.

    rule : "first" reads the word's first piece · "mean" is the mean of its pieces (binary64, ascending, then / count) ·
        "vote" is the share of pieces whose best label it is (the lowest label wins a piece's tie)
    """
    require(rule in WORD_RULES, "word_rule", rule, f"one of {', '.join(WORD_RULES)}")
    require(probabilities.type in (ScoreType.SOFTMAX_PROBABILITY, ScoreType.CALIBRATED_PROBABILITY), "scores.type",
            probabilities.type.value, "softmax or calibrated probabilities")
    require(probabilities.values.shape[0] == len(table), "scores.values.shape", probabilities.values.shape,
            f"({len(table)}, C), one row of scores for each row")
    p, words = probabilities.values.astype(np.float64), words_of_rows(table)
    result = np.zeros((len(words), p.shape[1]))
    for i in range(len(words)):
        rows = words.rows(i)
        if rule == "first":
            result[i] = p[rows[0]]
            continue
        for s in rows:
            if rule == "mean":
                result[i] = result[i] + p[s]
            else:
                result[i, int(np.argmax(p[s]))] += 1.0
        result[i] = result[i] / float(len(rows))
    return words, result


def source_entities(table: RowTable, probabilities: Scores, scheme: TagScheme, *, word_rule: str = "first"):
    """list of SourceEntity: the most probable legal tagging of the words, back in characters.

    A tagging's score is the sum of log64 of its words' probabilities (a probability of 0 never wins against a legal
    other); an entity's own score is the lowest word probability inside it ("lowest word probability (rule)").

    Raises
    ------
    ReadoutError
        No offsets; scores that are no probabilities over the scheme's labels.
    """
    offsets = table.need_offsets("an entity of the source")
    require(probabilities.axis == scheme.labels.names, "scores.axis", probabilities.axis, str(scheme.labels.names))
    words, p = word_probabilities(table, probabilities, word_rule)
    found = []
    for sequence in dict.fromkeys(words.sequence.tolist()):
        own = np.flatnonzero(words.sequence == sequence).tolist()
        levels = log64(np.maximum(p[own], 2.0**-1022)).astype(np.float32)
        best, _ = scheme.decode(levels)
        for kind, first, last in scheme.entities(best.tolist()):
            rows = [s for i in range(first, last + 1) for s in words.rows(own[i])]
            score = min(float(p[own[i], best[i]]) for i in range(first, last + 1))
            found.append(SourceEntity(
                kind, sequence, int(min(offsets[s, 0] for s in rows)), int(max(offsets[s, 1] for s in rows)),
                (int(words.word_ids[own[first]]), int(words.word_ids[own[last]])), score,
                f"lowest word probability ({word_rule})"))
    return found
