"""Small trained paths beside a frozen base: bottlenecks between blocks, low-rank updates of linear maps."""
import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from .below import (CausalEncoder, canonical_bytes, gelu_tanh_backward, ieee_mode, initial_tensors, linear_backward,
                    linear_forward)
from .trainable import ContractError


@dataclass(frozen=True)
class AdapterRelease:
    """kind : "bottleneck" or "lora" · base : digest of the weights it was trained beside · targets : blocks after
    which a bottleneck stands, or names of the matrices that LoRA updates · rank : width of a bottleneck, rank of LoRA ·
    alpha : LoRA's update is alpha / rank times the product"""

    kind: str
    base: str
    targets: tuple
    rank: int
    alpha: float = 1.0

    def __post_init__(self):
        if self.kind not in ("bottleneck", "lora"):
            raise ContractError(f"adapter_kind = {self.kind!r}: expected bottleneck or lora")
        if self.rank < 1 or not self.targets or len(dict.fromkeys(self.targets)) != len(self.targets):
            raise ContractError(f"adapter targets {self.targets}, rank {self.rank}: expected different targets, rank "
                                "1 or more")

    def digest(self) -> str:
        """SHA-256 (hex) of the record."""
        return hashlib.sha256(canonical_bytes(asdict(self) | {"targets": list(self.targets)})).hexdigest()

    def admit(self, base: str) -> None:
        """ContractError when the adapter was trained beside other weights."""
        if base != self.base:
            raise ContractError(f"base_release = {base!r}: the adapter was trained beside {self.base!r}")


def _bottleneck_table(release, width):
    rank = release.rank
    parts = {"down.weight": ((rank, width), 0.02), "down.bias": ((rank,), "zeros"),
             "up.weight": ((width, rank), "zeros"), "up.bias": ((width,), "zeros")}
    return {f"adapter.{at}.{name}": spec for at in release.targets for name, spec in parts.items()}


class AdaptedEncoder:
    """A CausalEncoder with bottlenecks x + up(gelu(down(x))) after some of its blocks; the base is only read.
    With the starting values (up = 0) it gives the base's rows."""

    def __init__(self, base: CausalEncoder, release: AdapterRelease, seed: int = 0):
        if release.kind != "bottleneck":
            raise ContractError(f"adapter_kind = {release.kind!r}: expected bottleneck")
        release.admit(base.digest())
        for at in release.targets:
            if not 0 <= at < base.config.blocks:
                raise ContractError(f"adapter target {at}: expected a block, 0..{base.config.blocks - 1}")
        self.base, self.release = base, release
        self.tensors = initial_tensors(_bottleneck_table(release, base.config.hidden), seed)
        cuts = [0, *(at + 1 for at in sorted(release.targets)), base.config.blocks]
        self._parts = [base.part(a, b, norm=b == cuts[-1] and i == len(cuts) - 2)
                       for i, (a, b) in enumerate(zip(cuts, cuts[1:]))]

    @ieee_mode()
    def forward_saved(self, ids):
        """(rows, what backward needs): nothing is kept of the blocks before the first bottleneck, which need no
        backward."""
        x, kept = self.base.embed(ids), []
        for i, part in enumerate(self._parts):
            if i == 0:
                x = part.forward(x)
            else:
                x, bottleneck = self._bottleneck(sorted(self.release.targets)[i - 1], x)
                x, blocks = part.forward_saved(x)
                kept.append((bottleneck, blocks))
        return x, kept

    def forward(self, ids) -> np.ndarray:
        """float32 (S, hidden)."""
        return self.forward_saved(ids)[0]

    def _bottleneck(self, at, x):
        t, name = self.tensors, f"adapter.{at}."
        pre, saved, hidden = (np.empty((len(x), self.release.rank), np.float32) for _ in range(3))
        y = np.empty_like(x)
        linear_forward(x, t[name + "down.weight"], t[name + "down.bias"], hidden, activation="gelu_tanh", pre=pre,
                       saved=saved)
        linear_forward(hidden, t[name + "up.weight"], t[name + "up.bias"], y, residual=x)
        return y, (name, x, pre, saved, hidden)

    @ieee_mode()
    def backward(self, kept, drows: np.ndarray) -> dict[str, np.ndarray]:
        """name → gradient of every adapter tensor; the gradient passes the frozen blocks after the first bottleneck and
        stops there."""
        gradients, dx = {}, drows
        for i in reversed(range(len(kept))):
            (name, x, pre, saved, hidden), blocks = kept[i]
            _, dx = self._parts[i + 1].backward(blocks, dx)
            dhidden, back = np.empty_like(hidden), np.empty_like(x)
            for part, upstream, inputs, into in (("up", dx, hidden, dhidden), ("down", dhidden, x, back)):
                weight = self.tensors[name + part + ".weight"]
                dweight, dbias = np.empty_like(weight), np.empty_like(self.tensors[name + part + ".bias"])
                linear_backward(upstream, inputs, weight, into, dweight, dbias)
                gradients |= {f"{name}{part}.weight": dweight, f"{name}{part}.bias": dbias}
                if part == "up":
                    gelu_tanh_backward(dhidden.reshape(-1).copy(), pre.reshape(-1), saved.reshape(-1),
                                       dhidden.reshape(-1))
            dx = dx + back
        return {n: gradients[n] for n in self.tensors}


class LoRA:
    """Low-rank updates of some matrices: W_used = W + (alpha / rank) * (B A), one rounding each for the product (dot16
    over the rank), the factor and the sum. B starts as zeros, so W_used starts as W.

    base : name → float32 array, read and never written · release : its targets are names of matrices
    """

    def __init__(self, base: Mapping[str, np.ndarray], release: AdapterRelease, seed: int = 0):
        if release.kind != "lora":
            raise ContractError(f"adapter_kind = {release.kind!r}: expected lora")
        table = {}
        for name in release.targets:
            if name not in base or base[name].ndim != 2:
                raise ContractError(f"adapter target {name!r}: expected a matrix of the base")
            out, width = base[name].shape
            table |= {f"lora.{name}.a": ((release.rank, width), 0.02), f"lora.{name}.b": ((out, release.rank), "zeros")}
        self.base, self.release = base, release
        self.tensors = initial_tensors(table, seed)
        self._factor = np.float32(release.alpha / release.rank)

    def _pair(self, name):
        return self.tensors[f"lora.{name}.a"], self.tensors[f"lora.{name}.b"]

    @ieee_mode()
    def used(self) -> dict[str, np.ndarray]:
        """name → the matrices to run with: the base's arrays, the targets in new ones (a forward with them is a forward
        with the merged weights, bit for bit)."""
        found = dict(self.base)
        for name in self.release.targets:
            a, b = self._pair(name)
            product = np.empty_like(self.base[name])
            linear_forward(b, np.ascontiguousarray(a.T), None, product)
            found[name] = self.base[name] + product * self._factor
        return found

    @ieee_mode()
    def backward(self, gradients: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """name → gradients of the factors from those of the used matrices:
        dB = (alpha / rank) * dW A^T (dot16 over A's columns), dA = (alpha / rank) * B^T dW (dot16 over rows)."""
        found = {}
        for name in self.release.targets:
            (a, b), dw = self._pair(name), np.ascontiguousarray(gradients[name])
            da, db = np.empty_like(a), np.empty_like(b)
            linear_forward(dw, a, None, db)
            linear_backward(b, dw, None, None, da, None)
            found |= {f"lora.{name}.a": da * self._factor, f"lora.{name}.b": db * self._factor}
        return {n: found[n] for n in self.tensors}
