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
import dataclasses
import sys

import dx_labels
import dx_model
import dx_train
import numpy as np

from . import machine_notes, progress
from ._documents import NoData, Score, data, development, fit, nothing

GAP = 0.8
CROPS = 24  # variants a page
ROLES = ("header", "question", "answer")
SETTINGS = {"epochs": 110, "augment": 1.0, "learning_rate": 1e-3, "final_rate": 0.05, "warmup": 60, "beta2": 0.98,
            "weight_decay": 0.05, "field_weight": 1.0, "variant_share": 0.9, "ema_decay": 0.998,
            "seed": 0}
WEIGHTS = {"role": 1.0, "key_value": 0.5, "item": 0.0}
FIGURES = ("role_f1", "role_f1_file_order", "link_f1", "link_f1_predicted", "base_role_f1", "base_link_f1", "seconds")
NOTES = ["settings chosen on every sixth training form by sorted id; base_*: there is no base model yet",
         "words get segment numbers by position (gaps in a row); variants of training forms are parts of them",
         "published: from scratch FUNSD's own baseline 0.57 labelling, 0.04 linking; pretrained BERT-base 0.603, "
         "LayoutLM-base 0.787, LiLT 0.884 labelling in file order (with its grouping), LayoutXLM 0.548 "
         "linking: not like for like with sorted words"]


def pages(values, keep_file_order=False):
    """Pages without what the file says of groups; words get segment numbers by position."""
    return [segmented(dx_model.page_from_json({k: v for k, v in value.items() if k != "groups"}, repair=True),
                      keep_file_order) for value in values]


def segmented(page, keep_file_order):
    """The page with its words' `line`: rows cut where the gap is wider than GAP median word heights."""
    order, row = dx_model.reading_order(page, keep_file_order=keep_file_order)
    heights = sorted(w.box[3] - w.box[1] for w in page.words)
    limit, number, words = GAP * heights[len(heights) // 2] if heights else 0, -1, list(page.words)
    for i, w in enumerate(order.tolist()):
        before = page.words[order[i - 1]].box
        if i == 0 or row[i] != row[i - 1] or page.words[w].box[0] - before[2] > limit:
            number += 1
        words[w] = dataclasses.replace(page.words[w], line=number)
    return dataclasses.replace(page, words=tuple(words))


def crops(page, count, seed=0):
    """`count` parts of a page: bands of 40 to 100 % of its height and 70 to 100 % of its width, drawn by SplitMix64."""
    draws = np.empty(4 * count)
    dx_labels.uniform64(dx_labels.substream(dx_labels.substream(seed, "crops"), page.id), draws)
    made = []
    for tall, wide, top, left in draws.reshape(-1, 4).tolist():
        height, width = page.height * (0.4 + 0.6 * tall), page.width * (0.7 + 0.3 * wide)
        x, y = (page.width - width) * left, (page.height - height) * top
        part = dx_model.crop_page(page, (x, y, x + width, y + height))
        if len(part.words) >= 10:
            made.append(part)
    return made


def windows(page, config):
    """(EncodedPage, Targets) of a page's windows (FUNSD's pages fit into one)."""
    encoded = dx_model.encode_page(page, config.encoding())
    relations = dx_labels.relation_rows(page, dx_labels.Rows(page, encoded), ROLES)[:3]
    return dx_labels.window_targets(encoded, None, [], config.max_words, relations=relations)


def examples(forms, config):
    """Every page as an example, parts of it as its variants."""
    out = []
    for page in forms:
        variants = tuple(windows(part, config)[0] for part in crops(page, CROPS))
        out += [dx_train.Example(dx_model.window_id(page.id, k), *window, variants)
                for k, window in enumerate(windows(page, config))]
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
        model, seconds = train(pages(training, order == "file"), settings, order == "file")
        roles, given, predicted = evaluate(model, pages(test, order == "file"))
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
    training, held = (pages(part, order == "file") for part in development(data("funsd.train")))
    model, seconds = train(training, settings, order == "file")
    roles, links, predicted = evaluate(model, held)
    progress(f"{' '.join(arguments)}: roles {roles.f1():.4f}, links {links.f1():.4f}, on own entities "
             f"{predicted.f1():.4f}; {seconds:.0f} s; " + str({r: round(roles.f1(r) or 0, 3) for r in ROLES}))


if __name__ == "__main__":
    choose(sys.argv[1:])
