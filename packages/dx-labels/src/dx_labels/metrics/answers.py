"""Extractive answers: normalised exact match and token-overlap F1, split by answerability."""
import re
import string

from .common import equally_long, mean

_ARTICLES = re.compile(r"\b(a|an|the)\b", re.UNICODE)
_PUNCTUATION = frozenset(string.punctuation)


def normalize_answer(text: str) -> str:
    """Lower case, without ASCII punctuation, without the words a, an, the, blanks made single (SQuAD's scorer)."""
    text = "".join(c for c in text.lower() if c not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def token_f1(gold: str, predicted: str) -> float:
    """2 common / (gold + predicted) of the normalised tokens, each counted as often as it stands there; where one side
    has none, 1 when both have none, else 0."""
    a, b, common, left = normalize_answer(gold).split(), normalize_answer(predicted).split(), 0, {}
    if not a or not b:
        return float(a == b)
    for word in a:
        left[word] = left.get(word, 0) + 1
    for word in b:
        if left.get(word, 0):
            left[word] -= 1
            common += 1
    return 2 * common / (len(a) + len(b))


def one_answer(gold, predicted: str) -> tuple[int, float]:
    """(exact match, F1): the best over the gold answers; no gold answer means that "" is right."""
    texts = [g for g in gold if normalize_answer(g)] or [""]
    exact = max(int(normalize_answer(g) == normalize_answer(predicted)) for g in texts)
    return exact, max(token_f1(g, predicted) for g in texts)


def answer_scores(gold, predicted, *, covered=None, null_rule=None) -> dict:
    """Scores of extractive answers.

    Parameters
    ----------
    gold : lists of accepted answers; an empty list for a question without one
    predicted : texts, "" for no answer
    covered : whether some window of the item holds a whole gold answer; None: not told
    null_rule : the rule that chose "no answer", for the record

    Returns
    -------
    dict of slices all, answerable, unanswerable: n, exact, f1; and windows: answerable items, of those not covered (the
    truncation's failures, which no reader can mend), and the scores of the covered
    """
    equally_long(gold=gold, predicted=predicted)
    scored = [one_answer(g, p) for g, p in zip(gold, predicted)]
    has = [any(normalize_answer(t) for t in g) for g in gold]

    def part(keep):
        own = [s for s, k in zip(scored, keep) if k]
        return {"n": len(own), "exact": mean(e for e, _ in own), "f1": mean(f for _, f in own)}

    found = {"all": part([True] * len(scored)), "answerable": part(has), "unanswerable": part([not h for h in has]),
             "null_rule": null_rule, "windows": None}
    if covered is not None:
        equally_long(gold=gold, covered=covered)
        lost = [h and not c for h, c in zip(has, covered)].count(True)
        found["windows"] = {"answerable": has.count(True), "not_covered": lost,
                            "covered": part([h and bool(c) for h, c in zip(has, covered)])}
    return found
