"""Speed parts of bench readout: each is (name, shapes, sides), sides(shape) giving the callables to interleave."""
import dx_kernels as k
import numpy as np

from . import _readout_pooling, interleave, progress

F = np.float32
# query rows, rows of a document, documents, width: one query against its candidates
MAXSIM = [(32, 128, 16, 128), (32, 180, 100, 128), (8, 40, 200, 64)]
# anchors, candidates, width
CONTRASTIVE = [(32, 32, 384), (128, 128, 384), (128, 512, 768)]


def unit_rows(rng, *shape):
    x = rng.standard_normal(shape)
    return (x / np.sqrt((x * x).sum(-1, keepdims=True))).astype(F)


def measure(part, shape, sides, quick):
    """One row: dx beside torch on this shape; vs_torch is None where torch is missing."""
    progress(f"{part} {shape}")
    calls = sides(shape)
    times = interleave(calls, quick)
    return {"part": part, "shape": "x".join(map(str, shape)), "dx_us": 1e6 * times.seconds["dx"],
            "vs_torch": times.ratio("torch") if "torch" in calls else None}


def maxsim(torch, shape):
    """Scores with winners, and the gradients of all rows."""
    m, n, count, d = shape
    rng = np.random.default_rng(12)
    q, docs = unit_rows(rng, m, d), unit_rows(rng, count * n, d)
    qs, ds = np.array([0, m]), np.arange(count + 1) * n
    scores, winners, dscores = np.empty((1, count), F), np.empty((m, count), np.int32), np.ones((1, count), F)
    dq, ddocs = np.empty_like(q), np.empty_like(docs)

    def dx():
        k.maxsim_forward(q, qs, docs, ds, scores, winners)
        k.maxsim_backward(dscores, q, qs, docs, ds, winners, dq, ddocs)
    if torch is None:
        return {"dx": dx}
    tq, tdocs = torch.tensor(q, requires_grad=True), torch.tensor(docs.reshape(count, n, d), requires_grad=True)
    qmask, mask = torch.ones(count, m, dtype=torch.bool), torch.ones(count, n, dtype=torch.bool)

    def theirs():
        tq.grad = tdocs.grad = None
        similarity = tq.expand(count, m, d) @ tdocs.transpose(-1, -2)
        best = similarity.masked_fill(~mask[:, None, :], -torch.inf).max(-1).values
        best.masked_fill(~qmask, 0.0).sum().backward()
    return {"dx": dx, "torch": theirs}


def contrastive(torch, shape):
    """Scores of unit vectors, the loss with its masks, and the gradients of both sides."""
    anchors, candidates, d = shape
    rng = np.random.default_rng(13)
    q, docs = unit_rows(rng, anchors, d), unit_rows(rng, candidates, d)
    positive, admit = np.eye(anchors, candidates, dtype=np.uint8), np.ones((anchors, candidates), np.uint8)
    scores, dscores = (np.empty((anchors, candidates), F) for _ in range(2))
    dq, ddocs = np.empty_like(q), np.empty_like(docs)

    def dx():
        k.linear_forward(q, docs, None, scores)
        k.contrastive_backward(scores, positive, dscores, temperature=0.05, admit=admit)
        k.linear_backward(dscores, q, docs, dq, ddocs, None)
    if torch is None:
        return {"dx": dx}
    tq, tdocs = torch.tensor(q, requires_grad=True), torch.tensor(docs, requires_grad=True)
    tpositive, tadmit = torch.tensor(positive).bool(), torch.tensor(admit).bool()

    def theirs():
        tq.grad = tdocs.grad = None
        z = (tq @ tdocs.T) / 0.05
        loss = (torch.logsumexp(z.masked_fill(~tadmit, -torch.inf), 1)
                - torch.logsumexp(z.masked_fill(~tpositive, -torch.inf), 1))
        loss.mean().backward()
    return {"dx": dx, "torch": theirs}


def parts(torch):
    """The parts there are."""
    return [("pooling", _readout_pooling.SHAPES, lambda shape: _readout_pooling.sides(torch, shape)),
            ("maxsim", MAXSIM, lambda shape: maxsim(torch, shape)),
            ("contrastive", CONTRASTIVE, lambda shape: contrastive(torch, shape))]
