"""A fixed docextract pass from words to gradients, for comparing its bits across processes (tools/bench/bits.py)."""
import numpy as np
from dx_model import Page, Word, encode_page
from dx_model.docextract import DocExtract, DocExtractConfig, Gradients, Losses, Targets, Workspace, initial_parameters

CONFIG = DocExtractConfig(fields=("total", "date", "item"), repeated=("item",), roles=("key", "value"),
                          doc_types=("receipt", "letter"), hidden_size=24, num_hidden_layers=2,
                          num_attention_heads=2, intermediate_size=40, max_chars=12, char_dim=8,
                          char_channels=20, pair_hidden=12, relation_size=8)
WEIGHTS = {"tag": 1.0, "run": 0.5, "role": 0.5, "doc": 0.25, "item": 0.5, "key_value": 0.5}
TEXTS = ("Receipt", "№12", "Date:", "2018-03-14", "Tea", "2", "x", "1.50", "3.00", "Cake", "4.25", "Total", "7.25",
         "EUR", "Ünïcode", "漢字", "-", "(VAT", "19%)", "1.16", "thank", "you", "Total", "7.25")


def page(words, height=400):
    """A page of that many words in rows of five."""
    made = []
    for i in range(words):
        x, y = 40 * (i % 5) + i % 3, 14 * (i // 5) + i % 2
        made.append(Word(TEXTS[i % len(TEXTS)], (x, y, x + 8 + 5 * (i % 6), y + 10)))
    return Page(f"page-{words}", 240, height, made)


def targets(n):
    """Some of everything; -1 here and there."""
    at = np.arange(n, dtype=np.int32)
    tag = np.where(at % 7 == 3, 1 + 2 * (at // 7 % 3), np.where(at % 5 == 4, -1, 0)).astype(np.int32)
    places = np.array([[0, 0, 0], [0, n // 2, n // 2]], np.int32) if n > 1 else np.zeros((0, 3), np.int32)
    return Targets(tag=tag, role=(at % 5 - 1).astype(np.int32), doc=1, item=at[::-1].copy(),
                   key_value=np.where(at % 3 == 0, -1, at // 2).astype(np.int32),
                   run_fields=np.array([0, 1], np.int32), run_places=places)


def passes():
    """name → array for each of several pages: encoded page, outputs, losses, gradients."""
    parameters, losses = initial_parameters(CONFIG, 7), Losses(CONFIG, WEIGHTS)
    for _, tensor in parameters.items():
        if not tensor.any():  # nothing may be cut off by zeros of the initial weights
            tensor.reshape(-1)[:] = (np.arange(tensor.size) % 23 - 11) / np.float32(64)
    model = DocExtract(parameters)
    for words in (1, 2, 17, 33, 100):
        encoded = encode_page(page(words), CONFIG.encoding())
        gradients, space = Gradients(CONFIG), Workspace()
        saved = model.forward_saved(encoded, space)
        parts, douts = losses.run(saved.outputs, targets(len(encoded)), 1.0, space)
        model.backward(saved, douts, gradients)
        result = {f"page/{k}": getattr(encoded, k) for k in ("word", "characters", "inverse", "features", "position")}
        result |= {f"out/{k}": getattr(saved.outputs, k) for k in ("tag", "role", "doc", "item", "key_value")}
        result |= {f"loss/{k}": np.array([v.numerator, v.denominator]) for k, v in parts.items()}
        yield result | {f"grad/{k}": v for k, v in gradients.to_container().items()}
