"""Pages for the tests of decoding, posteriors and the run loss, and sums over every legal tagging of small ones."""
import numpy as np


def page(rng, n, fields, scale=2.0, outside=0.0):
    z = (rng.standard_normal((n, 1 + 2 * fields)) * scale).astype(np.float32)
    z[:, 0] += np.float32(outside)
    return z


def schema(fields, repeated=()):
    flags = np.zeros(fields, np.uint8)
    flags[list(repeated)] = 1
    return flags


def runs_of(tags):
    runs = []
    for t, tag in enumerate(tags):
        if tag % 2:
            runs.append([tag // 2, t, t])
        elif tag:
            runs[-1][2] = t
    return [tuple(run) for run in runs]


def legal_taggings(n, fields, exclusive):
    """Every BIO tagging with at most one run of each exclusive field."""
    out = [()]
    for _ in range(n):
        out = [y + (tag,) for y in out for tag in range(1 + 2 * fields)
               if tag == 0 or tag % 2 or (y and y[-1] in (tag, tag - 1))]
    return [y for y in out if all(sum(tag == 1 + 2 * k for tag in y) <= 1 for k in exclusive)]


def distribution(z, exclusive):
    """(taggings, scores against all O, probabilities) in float64."""
    z = z.astype(np.float64)
    taggings = legal_taggings(len(z), (z.shape[1] - 1) // 2, exclusive)
    scores = np.array([sum(z[t, tag] - z[t, 0] for t, tag in enumerate(y)) for y in taggings])
    p = np.exp(scores - scores.max())
    return taggings, scores, p / p.sum()


SMALL = [(0, 2, ()), (1, 1, ()), (1, 3, (1,)), (4, 2, ()), (5, 2, (1,)), (4, 3, ()), (7, 1, ()), (5, 2, (0, 1)),
         (3, 0, ()), (3, 5, (4,))]
