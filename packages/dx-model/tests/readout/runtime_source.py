"""Sources for the tests of the runtime: [CLS] tokens [SEP], or a pair, a token being two characters wide."""
import numpy as np
from dx_model import readout
from dx_model.runtime import Example

F = np.float32


def source(ids, before=(2,), after=(3,), question=()):
    """RowTable of before + question + after + ids + after (without a question: before + ids + after)."""
    parts = [(i, None, None, None) for i in before]
    if len(question):
        parts += [(i, 0, w, (2 * w, 2 * w + 1)) for w, i in enumerate(question)]
        parts += [(i, None, None, None) for i in after]
    u = 1 if len(question) else 0
    parts += [(i, u, w, (2 * w, 2 * w + 1)) for w, i in enumerate(ids)]
    parts += [(i, None, None, None) for i in after]
    n = len(parts)
    return readout.row_table(np.ones(n, bool), [p[1] is None for p in parts], [p[1] for p in parts],
                             [p[2] for p in parts], [p[3] for p in parts], ids=[p[0] for p in parts],
                             type_ids=[int(k > len(question) + 1 and u) for k in range(n)])


def examples(rng, *lengths, release="r1"):
    return [Example(f"e{k}", source(rng.integers(4, 40, n - 2)), release) for k, n in enumerate(lengths)]
