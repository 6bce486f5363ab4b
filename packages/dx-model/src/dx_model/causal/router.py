"""Mixture layers: a router gives each row weights over experts, the row takes the top k of them."""
import numpy as np

from ..below import ieee_mode, layer_norm_forward, linear_forward, softmax_forward
from ..readout.errors import require
from .config import CausalConfig
from .model import CausalEncoder


def routing_weights(logits: np.ndarray, k: int):
    """(weights, chosen): float32 (S, experts) softmax over all experts, in the experts' order, and bool (S, experts),
    the k largest logits of each row; equal ones go to the lower expert."""
    logits = np.ascontiguousarray(logits, np.float32)
    require(0 < k <= logits.shape[1], "top_k", k, f"1..{logits.shape[1]} experts")
    weights = np.empty_like(logits)
    softmax_forward(logits, weights)
    chosen = np.zeros(logits.shape, np.bool_)
    order = np.argsort(-logits, axis=1, kind="stable")[:, :k]
    np.put_along_axis(chosen, order, True, axis=1)
    return weights, chosen


class MixtureEncoder:
    """A CausalEncoder followed by mixture layers, inference only:

        x += sum over the chosen experts e ascending of w_e * fc2_e(gelu(fc1_e(layer_norm(x))))

    with w the router's softmax over all experts, divided by the sum of the chosen ones. config.mixtures layers.
    """

    def __init__(self, config: CausalConfig, tensors: dict[str, np.ndarray]):
        require(config.mixtures > 0, "config.mixtures", config.mixtures, "at least one mixture layer")
        self.config, self.tensors = config, tensors
        plain = CausalConfig(**(config.to_json() | {"mixtures": 0, "experts": 0, "top_k": 0}))
        self.base = CausalEncoder(plain, {name: tensors[name] for name in plain.tensors()})
        self._blocks = self.base.part(norm=False)

    @ieee_mode()
    def forward(self, ids):
        """(rows, routes): float32 (S, hidden) after the final layer norm, and for each mixture layer in order the
        float32 (S, experts) softmax of its router."""
        x, routes = self._blocks.forward(self.base.embed(ids)), []
        for i in range(self.config.mixtures):
            x, weights = self._mixture(f"mixtures.{i}.", x)
            routes.append(weights)
        return self._norm("ln", x), routes

    def _norm(self, at, x):
        y = np.empty_like(x)
        layer_norm_forward(x, self.tensors[at + ".weight"], self.tensors[at + ".bias"], y, eps=self.config.eps)
        return y

    def _mixture(self, at, x):
        t, config = self.tensors, self.config
        a = self._norm(at + "ln", x)
        logits = np.empty((len(x), config.experts), np.float32)
        linear_forward(a, t[at + "router.weight"], None, logits)
        weights, chosen = routing_weights(logits, config.top_k)
        total = np.zeros(len(x), np.float32)
        for e in range(config.experts):
            total = np.where(chosen[:, e], total + weights[:, e], total)
        x = x.copy()
        for e in range(config.experts):
            rows = np.flatnonzero(chosen[:, e])
            if len(rows):
                y = self._expert(f"{at}experts.{e}.", a[rows])
                x[rows] = x[rows] + (weights[rows, e] / total[rows])[:, None] * y
        return x, weights

    def _expert(self, at, a):
        hidden, saved = (np.empty((len(a), self.config.inner), np.float32) for _ in range(2))
        y = np.empty_like(a)
        t = self.tensors
        linear_forward(a, t[at + "fc1.weight"], t[at + "fc1.bias"], hidden, activation="gelu_tanh", saved=saved)
        linear_forward(hidden, t[at + "fc2.weight"], t[at + "fc2.bias"], y)
        return y
