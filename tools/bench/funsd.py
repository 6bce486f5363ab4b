"""Forms of FUNSD: word roles and links from scratch, trained on the 149, tested once on the official 50.

figures  role_f1: strict entities (exactly the gold words and role: header, question, answer), words sorted by position
         role_f1_file_order: the published convention; the file's order stands the words of an entity together, which
         gives the grouping away
         link_f1: question-answer pairs, entities and their roles given; link_f1_predicted: on the model's own entities
         base_role_f1, base_link_f1: from the base model; seconds: training, wall, degree 2, sorted words
rows     per role: precision, recall, F1, for both orders

`python -m bench.funsd [setting=value …]` (PYTHONPATH=tools) trains on five sixths of the training forms and scores the
sixth (every sixth by sorted id): how settings were chosen.
"""
import sys

import dx_labels
import dx_model
import dx_train
import numpy as np

from . import machine_notes, progress
from ._documents import NoData, Score, data, development, fit, nothing

ROLES = ("header", "question", "answer")
SETTINGS = {"epochs": 60, "augment": 1.0, "learning_rate": 1e-3, "final_rate": 0.05, "warmup": 60, "beta2": 0.98,
            "weight_decay": 0.05, "field_weight": 1.0, "seed": 0}
WEIGHTS = {"role": 1.0, "key_value": 0.5, "item": 0.5}
FIGURES = ("role_f1", "role_f1_file_order", "link_f1", "link_f1_predicted", "base_role_f1", "base_link_f1", "seconds")
NOTES = ["settings chosen on every sixth training form by sorted id; base_*: there is no base model yet",
         "published: from scratch FUNSD's own baseline 0.57 labelling, 0.04 linking; pretrained BERT-base 0.603, "
         "LayoutLM-base 0.787, LiLT 0.884 labelling in file order (with its grouping), LayoutXLM 0.548 "
         "linking: not like for like with sorted words"]


def pages(values):
    out = []
    for value in values:
        value = {k: v for k, v in value.items() if k != "groups"}
        out.append(dx_model.page_from_json(value, repair=True))
    return out


def examples(forms, config):
    """Every page as one example (FUNSD's fit into one window)."""
    out = []
    for page in forms:
        encoded = dx_model.encode_page(page, config.encoding())
        rows = dx_labels.Rows(page, encoded)
        relations = dx_labels.relation_rows(page, rows, ROLES)[:3]
        for k, (window, targets) in enumerate(dx_labels.window_targets(encoded, None, [], config.max_words,
                                                                       relations=relations)):
            out.append(dx_train.Example(dx_model.window_id(page.id, k), window, targets))
    return out


def train(forms, settings, keep_file_order):
    config = dx_model.DocExtractConfig(roles=ROLES, cut=False, keep_file_order=keep_file_order)
    return fit(config, examples(forms, config), settings)


def evaluate(model, forms):
    """(roles, links on gold entities, links on predicted entities) as Scores."""
    roles, given, predicted = Score(ROLES), Score(["link"]), Score(["link"])
    for page in forms:
        gold = {e["id"]: (e["label"], frozenset(e["words"])) for e in page.extra["entities"] if e["words"]}
        wanted = {(a, b) for a, b in map(tuple, page.extra["links"])
                  if gold.get(a, ("",))[0] == "question" and gold.get(b, ("",))[0] == "answer"}
        found = dx_model.extract_page(model, page, alternatives=0, relations=True)
        own = [(e.role, frozenset(p.word for p in e.value.parts)) for e in found.entities]
        real = set(gold.values())
        for role in ROLES:
            roles.count(role, {e for e in own if e[0] == role}, {e for e in real if e[0] == role})
        pairs = given_links(model, page, gold)
        given.count("link", pairs, wanted)
        named = {words: number for number, (_, words) in gold.items()}
        linked = {(named.get(own[p.key][1], -1), named.get(own[p.value][1], -2 - i)) for i, p in enumerate(found.pairs)
                  if own[p.key][0] == "question" and own[p.value][0] == "answer"}
        predicted.count("link", linked, wanted)
    return roles, given, predicted


def given_links(model, page, gold):
    """(question, answer) pairs when entities and roles are given: each answer takes the question that its rows point at
    most, by the sum over the question's rows of the pointers' probabilities, if that is more than on the answer."""
    encoded = dx_model.encode_page(page, model.config.encoding())
    n = min(len(encoded), model.config.max_words)
    scores = model.forward(encoded if n == len(encoded) else encoded.window(0, n), ("pointer",)).key_value
    p = np.exp(scores - scores.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    rows = {number: [i for i, w in enumerate(encoded.word[:n].tolist()) if w in words]
            for number, (_, words) in gold.items()}
    questions = [number for number, (role, _) in gold.items() if role == "question" and rows[number]]
    pairs = set()
    for number, (role, _) in gold.items():
        if role == "answer" and rows[number] and questions:
            mass = {q: float(p[np.ix_(rows[number], rows[q])].sum()) for q in questions}
            best = max(questions, key=lambda q: mass[q])
            if mass[best] > float(p[np.ix_(rows[number], rows[number])].sum()):
                pairs.add((best, number))
    return pairs


def run(quick):
    try:
        training, test = data("funsd.train"), data("funsd.test")
    except NoData as error:
        return nothing(FIGURES, str(error))
    options = SETTINGS | {"loss_weights": WEIGHTS}
    if quick:
        training, test, options = training[:8], test[:4], options | {"epochs": 1}
    settings = dx_train.TrainSettings(**options)
    figures, rows = dict.fromkeys(FIGURES), []
    for order in ("sorted", "file"):
        model, seconds = train(pages(training), settings, order == "file")
        roles, given, predicted = evaluate(model, pages(test))
        figures["role_f1" if order == "sorted" else "role_f1_file_order"] = roles.f1()
        if order == "sorted":
            figures |= {"link_f1": given.f1(), "link_f1_predicted": predicted.f1(), "seconds": seconds}
        rows += [{"order": order, "role": role, "f1": roles.f1(role), "recall": roles.recall(role)} for role in ROLES]
    return {"figures": figures, "rows": rows, "notes": NOTES + machine_notes()}


def choose(arguments):
    given = dict(a.split("=", 1) for a in arguments)
    order = given.pop("order", "sorted")
    weights = {k: float(given.pop(k, v)) for k, v in WEIGHTS.items()}
    changed = {k: type(SETTINGS.get(k, 0.0))(v) for k, v in given.items()}
    settings = dx_train.TrainSettings(**SETTINGS | changed | {"loss_weights": weights})
    training, held = (pages(part) for part in development(data("funsd.train")))
    model, seconds = train(training, settings, order == "file")
    roles, links, predicted = evaluate(model, held)
    progress(f"{' '.join(arguments)}: roles {roles.f1():.4f}, links {links.f1():.4f}, on own entities "
             f"{predicted.f1():.4f}; {seconds:.0f} s; " + str({r: round(roles.f1(r) or 0, 3) for r in ROLES}))


if __name__ == "__main__":
    choose(sys.argv[1:])
