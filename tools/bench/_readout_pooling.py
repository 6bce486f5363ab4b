"""Pooling beside PyTorch eager: the modes of dx_model.readout.Pooling on padded batches, forward alone."""
import numpy as np

SHAPES = [(mode, *size) for size in ((8, 64, 384), (32, 128, 384), (4, 512, 768))
          for mode in ("mean", "max", "last", "position_weighted_mean", "attention")]
ATTENTION = 128


def of_torch(torch, mode, parameters):
    """The mode as usually written with PyTorch, for x (B, S, D) and a bool mask (B, S)."""
    weight, bias, v = (torch.from_numpy(parameters[f"attention.{n}"]) for n in ("weight", "bias", "v"))

    def mean(x, mask):
        w = mask.unsqueeze(-1).float()
        return (x * w).sum(1) / w.sum(1).clamp(min=1e-9)

    def largest(x, mask):
        return x.masked_fill(~mask.unsqueeze(-1), -torch.inf).max(1)

    def last(x, mask):
        at = (torch.arange(mask.shape[1]) * mask).argmax(1)
        return x[torch.arange(len(x)), at]

    def position(x, mask):
        w = (mask.cumsum(1) * mask).float()
        return torch.einsum("bs,bsd->bd", w, x) / w.sum(1, keepdim=True)

    def attention(x, mask):
        scores = (torch.tanh(x @ weight.T + bias) @ v.T).squeeze(-1).masked_fill(~mask, -torch.inf)
        return torch.einsum("bs,bsd->bd", torch.softmax(scores, -1), x)

    return {"mean": mean, "max": largest, "last": last, "position_weighted_mean": position,
            "attention": attention}[mode]


def sides(torch, shape):
    """The callables of one shape: dx, and torch when it is installed."""
    from dx_model import readout

    mode, batch, length, d = shape
    rng = np.random.default_rng(1)
    hidden = rng.standard_normal((batch, length, d)).astype(np.float32)
    mask = np.arange(length) < rng.integers(length // 2, length + 1, (batch, 1))
    pool = readout.AttentionPool(ATTENTION)
    pooling = readout.Pooling((pool if mode == "attention" else mode,))
    drawn = {n: (rng.standard_normal(s) / 20).astype(np.float32) for n, s in pool.shapes(d).items()}
    parameters = drawn if mode == "attention" else None
    calls = {"dx": lambda: pooling.forward(hidden, mask, parameters)}
    if torch is not None:
        x, m, theirs = torch.from_numpy(hidden), torch.from_numpy(mask), of_torch(torch, mode, drawn)

        def run():
            with torch.inference_mode():
                return theirs(x, m)
        calls["torch"] = run
    return calls
