"""Which encoder layers a readout reads: one, the mean of a set, or a learned mixture with its scale."""
from dataclasses import dataclass

import numpy as np

from ..below import ieee_mode, pool_softmax_backward, pool_softmax_forward, pool_sum_backward, pool_sum_forward
from .errors import require
from .pooling import F32, add_examples, check_parameters
from .selection import select_rows

KINDS = ("one", "mean", "mixture")


@dataclass(frozen=True)
class LayerChoice:
    """The layers of a readout; part of the identity of its rows.

    Attributes
    ----------
    layers : numbers of hidden states, 0 the embeddings; negative ones count from the end. One for "one", at least one
        and no two the same otherwise
    kind : "one" layer; "mean" of the set; "mixture": gamma * sum of softmax(logits)[k] * layer k, with the trained
        parameters layers.logits (one a layer, in the order of `layers`) and layers.gamma (1,), which belong to the head
    """

    layers: tuple[int, ...] = (-1,)
    kind: str = "one"

    def __post_init__(self):
        require(self.kind in KINDS, "contextual_state.layers.kind", self.kind, ", ".join(KINDS))
        whole = all(isinstance(k, int) and not isinstance(k, bool) for k in self.layers)
        require(len(self.layers) >= 1 and whole and (self.kind != "one" or len(self.layers) == 1),
                "contextual_state.layers", self.layers, "one number" if self.kind == "one" else "numbers of layers")

    def parameter_shapes(self):
        """name → shape of the trained tensors."""
        return {"layers.logits": (len(self.layers),), "layers.gamma": (1,)} if self.kind == "mixture" else {}

    def indices(self, count: int) -> list[int]:
        """The layers as 0..count - 1, refused when outside or twice the same."""
        found = [k + count if k < 0 else k for k in self.layers]
        require(all(0 <= k < count for k in found), "contextual_state.layers", self.layers, f"layers of 0..{count - 1}")
        require(len(set(found)) == len(found), "contextual_state.layers", self.layers, "different layers")
        return found

    @ieee_mode()
    def forward(self, states, parameters=None):
        """(H, saved): the rows of the declared layers.

        Parameters
        ----------
        states : all hidden states in order, float32 arrays (B, S, D)
        parameters : name → float32 array of parameter_shapes()

        Each element is a sum16 (mean, then one division by the number of layers) or a dot16 with the softmax (mixture,
        then one product with gamma) over the layers in the order of `layers`.
        """
        parameters = check_parameters(parameters, self.parameter_shapes())
        indices = self.indices(len(states))
        for k in indices:
            require(states[k].dtype == np.float32 and states[k].shape == states[indices[0]].shape,
                    f"states[{k}]", f"{states[k].dtype.name} {states[k].shape}", f"float32 {states[indices[0]].shape}")
        shape = states[indices[0]].shape
        if self.kind == "one":
            return np.ascontiguousarray(states[indices[0]]), (indices, len(states), shape)
        stack = np.stack([states[k] for k in indices]).reshape(len(indices), -1)
        y, starts = np.empty((1, stack.shape[1]), F32), np.array([0, len(indices)], np.int64)
        if self.kind == "mean":
            pool_sum_forward(stack, None, starts, y, divisors=np.array([len(indices)], F32))
            return y.reshape(shape), (indices, len(states), shape)
        alpha, gamma = np.empty((1, len(indices)), F32), parameters["layers.gamma"]
        pool_softmax_forward(parameters["layers.logits"].reshape(1, -1), starts, alpha)
        pool_sum_forward(stack, None, starts, y, weights=alpha[0])
        return (gamma * y).reshape(shape), (indices, len(states), shape, stack, y, alpha, gamma)

    @ieee_mode()
    def backward(self, dh, saved, valid):
        """(gradients of the states by layer number, gradients of the parameters) for dh (B, S, D) float32.

        valid : (B, S) bool, rows the model sees. The parameters' gradients are dots over an example's valid rows,
        gathered in order, then added in example order; so padding changes no bit of them.
        """
        indices, _, shape, *mixture = saved
        require(dh.dtype == np.float32 and dh.shape == shape, "dh", f"{dh.dtype.name} {dh.shape}", f"float32 {shape}")
        if self.kind == "one":
            return {indices[0]: dh.copy()}, {}
        if self.kind == "mean":
            return dict.fromkeys(indices, dh / F32(len(indices))), {}
        stack, y, alpha, gamma = mixture
        dsum = gamma * dh
        states = {k: alpha[0, i] * dsum for i, k in enumerate(indices)}
        selected, d = select_rows(valid), shape[2]
        require(selected.shape == shape[:2], "valid.shape", selected.shape, str(shape[:2]))
        dalphas, dgammas, starts = [], [], np.array([0, len(indices)], np.int64)
        for begin, end in zip(selected.starts[:-1].tolist(), selected.starts[1:].tolist(), strict=True):
            of_sum, of_h, layers, mixed = (_example(a, d, selected.rows[begin:end]) for a in (dsum, dh, stack, y))
            dalpha, dgamma = np.empty(len(indices), F32), np.empty(1, F32)
            pool_sum_backward(of_sum, None, starts, None, dalpha, x=layers)
            pool_sum_backward(of_h, None, np.array([0, 1], np.int64), None, dgamma, x=mixed)
            dalphas.append(dalpha)
            dgammas.append(dgamma)
        if not dalphas:
            return states, {name: np.zeros(s, F32) for name, s in self.parameter_shapes().items()}
        dlogits = np.empty_like(alpha)
        pool_softmax_backward(alpha, add_examples(dalphas).reshape(1, -1), starts, dlogits)
        return states, {"layers.logits": dlogits[0], "layers.gamma": add_examples(dgammas)}


def _example(values, d, rows):
    """(layers, rows * D): these rows of each layer of values, (layers, B * S * D) or (B, S, D)."""
    layers = 1 if values.ndim == 3 else len(values)
    return np.ascontiguousarray(values.reshape(layers, -1, d)[:, rows].reshape(layers, -1))
