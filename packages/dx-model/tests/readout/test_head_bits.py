"""Every head's outputs, losses and gradients: the same bytes on every kernel path and thread count."""
import hashlib

import numpy as np
from dx_model import available_paths, degree, kernel_path, readout
from dx_model.readout import heads
from test_heads import LABELS, TARGETS, normal


def feed(h, *values):
    for v in values:
        if isinstance(v, dict):
            feed(h, *v.values())
        elif isinstance(v, tuple):
            feed(h, *v)
        else:
            h.update(np.ascontiguousarray(v).tobytes() if isinstance(v, np.ndarray) else repr(v).encode())


def everything():
    """SHA-256 of all heads on made inputs, large enough that threads have work."""
    rng, h = np.random.default_rng(8), hashlib.sha256()
    r, hidden = normal(rng, 300, 40), normal(rng, 6, 80, 40)
    valid = rng.random((6, 80)) < 0.8
    w, b = normal(rng, 3, 40), normal(rng, 3)
    y = rng.integers(-1, 3, 300)
    head = heads.SingleLabelHead(LABELS, w, b)
    z = head.forward(r)
    feed(h, z, head.loss(z, y), *head.backward(z, y, r))
    head = heads.MultilabelHead(LABELS, w, b, [0.5] * 3, gamma=2.0)
    many = rng.integers(-1, 2, (300, 3))
    feed(h, head.loss(z, many), *head.backward(z, many, r))
    for kind in ("squared", "absolute", "huber", "gaussian"):
        width = 4 if kind == "gaussian" else 2
        head = heads.RegressionHead(TARGETS, heads.RegressionObjective(kind), normal(rng, width, 40),
                                    normal(rng, width))
        values, p = rng.random((300, 2)) * 100, head.forward(r)
        feed(h, head.loss(p, values), *head.backward(p, values, r))
    head = heads.TokenHead(LABELS, w, b)
    targets = np.where(valid, rng.integers(0, 3, valid.shape), -1)
    z = head.forward(hidden, valid)
    feed(h, z, head.loss(z, targets, valid), *head.backward(z, targets, valid, hidden))
    head = heads.CrfHead(LABELS, w, b, normal(rng, 3, 3), normal(rng, 3), normal(rng, 3))
    e, begin = head.forward(hidden, valid)
    tags = targets[valid]
    feed(h, head.loss(e, begin, tags), *head.backward(e, begin, tags, hidden, valid), *head.decode(e, begin),
         head.marginals(e, begin, "r").values)
    head = heads.AnswerHead(normal(rng, 2, 40), normal(rng, 2), 9)
    z, spans = head.forward(hidden, valid), np.array([[np.flatnonzero(v)[3], np.flatnonzero(v)[5]] for v in valid])
    feed(h, head.loss(z, spans, valid), *head.backward(z, spans, valid, hidden, valid))
    feed(h, *head.best(z[0], valid[0], 5))
    head = heads.BiaffineHead(normal(rng, 40, 40), normal(rng, 40), normal(rng, 40), normal(rng, 1), 9)
    s, saved = head.forward(hidden[0], hidden[1])
    feed(h, s, *head.backward(s, tuple(spans[0].tolist()), valid[0], saved))
    head = heads.SpanEnumerationHead(heads.LabelMap(("none", "x", "y")), w, normal(rng, 3, 40), normal(rng, 4, 3), b)
    spans = head.spans(valid[0])
    z, classes = head.forward(hidden[0], spans), rng.integers(-1, 3, len(spans))
    feed(h, z, *head.backward(z, classes, hidden[0], spans))
    for kind in ("dot", "cosine", "squared_l2"):
        s, saved = readout.PairScore(kind).forward(r, r[:50])
        feed(h, s, *readout.PairScore(kind).backward(s, saved))
    return h.hexdigest()


def test_heads_have_the_same_bits_on_every_path_and_degree():
    digests = set()
    for path in available_paths():
        for threads in (1, 3):
            with kernel_path(path), degree(threads):
                digests.add(everything())
    assert len(digests) == 1
