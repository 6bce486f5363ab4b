"""Small made-up receipts and a small model, for tests that train."""
import dataclasses

import dx_train
import numpy as np
from dx_train import DocExtract, DocExtractConfig, Example, FineTune, Page, Targets, TrainSettings, Word

CONFIG = DocExtractConfig(
    fields=("date", "total"), roles=("key", "value"), doc_types=("receipt", "invoice"), hidden_size=32,
    num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, max_chars=8, char_dim=8, char_channels=16,
    position_buckets=32, pair_hidden=8, relation_size=4, max_words=64)
SETTINGS = TrainSettings(seed=5, steps=12, batch=3, learning_rate=3e-3, warmup=4, augment=1.0, checkpoint_every=3,
                         loss_weights=(("tag", 1.0), ("run", 1.0), ("role", 0.5), ("doc", 0.25), ("item", 0.5),
                                       ("key_value", 0.5)))
NAMES = ("TEA", "COFFEE", "CAKE", "MILK", "BREAD", "JUICE")


def receipt(k, config=CONFIG):
    """(page, values): receipt k with its date, total and shop number; values: field → words of its place."""
    rng = np.random.default_rng(k)
    rows = [["SHOP", f"NO{k}"], ["DATE", f"{rng.integers(1, 29):02d}/{rng.integers(1, 13):02d}/2024"]]
    rows += [[NAMES[rng.integers(6)], f"{rng.integers(1, 90)}.{rng.integers(100):02d}"] for _ in range(1 + k % 4)]
    rows.append(["TOTAL", f"{rng.integers(90, 200)}.{rng.integers(100):02d}"])
    words, y = [], 10.0 + int(rng.integers(20))
    for row in rows:
        x = 10.0 + int(rng.integers(10))
        for text in row:
            words.append(Word(text, (x, y, x + 6.0 * len(text), y + 10.0)))
            x += 6.0 * len(text) + 30.0
        y += 14.0
    return Page(f"r{k}", 200, 300, words), {"date": [3], "total": [len(words) - 1], "shop": [1]}


def example(k, config=CONFIG):
    """Receipt k with targets for every loss."""
    page, values = receipt(k)
    encoded = dx_train.encode_page(page, config.encoding())
    n = len(encoded)
    tag, places = np.zeros(n, np.int32), []
    for field, name in enumerate(config.fields):
        rows = [r for r in range(n) if encoded.word[r] in values[name]]
        tag[rows] = 2 + 2 * field
        tag[rows[0]] = 1 + 2 * field
        places.append((field, rows[0], rows[-1]))
    role = np.where(encoded.word % 2 == 0, 1, 3).astype(np.int32)
    pointer = np.array([np.flatnonzero(encoded.row == row)[0] for row in encoded.row], np.int32)
    value = pointer.copy()
    value[:2] = -1
    if not config.roles:
        return Example(f"r{k}#0", encoded, Targets(tag, run_fields=np.arange(len(places), dtype=np.int32),
                                                   run_places=np.array(places, np.int32)))
    return Example(f"r{k}#0", encoded, Targets(tag, role, k % 2, pointer, value, np.arange(len(places), dtype=np.int32),
                                               np.array(places, np.int32)))


def only(targets, field):
    """The targets with the run term of one field alone."""
    places = targets.run_places[targets.run_places[:, 0] == field].copy()
    places[:, 0] = 0
    return dataclasses.replace(targets, run_fields=np.array([field], np.int32), run_places=places)


def examples(count=7, variants=False):
    """Receipts 0 to count - 1; with variants: some have another receipt as a page-level variant."""
    found = [example(k) for k in range(count)]
    if variants:
        other = example(100)
        found[1] = dataclasses.replace(found[1], variants=((other.page, other.targets),))
    return found


def model(seed=1, config=CONFIG):
    return DocExtract(dx_train.initial_parameters(config, seed))


def quiet(text):
    """A message nobody reads."""


def train(folder=None, settings=SETTINGS, count=7, **more):
    """A run over the receipts; TrainResult."""
    options = {key: more.pop(key) for key in ("scales", "frozen_rows") if key in more}
    return FineTune(settings, **options).run(more.pop("start", None) or model(), examples(count, True), folder=folder,
                                            tell=quiet, progress=False, **more)


def score(model):
    """Share of right tags on three receipts that are not trained on."""
    right = count = 0
    for k in (50, 51, 52):
        held = example(k)
        right += int(np.count_nonzero(model.forward(held.page, ("tag",)).tag.argmax(1) == held.targets.tag))
        count += len(held.targets.tag)
    return right / count
R = dataclasses.replace
