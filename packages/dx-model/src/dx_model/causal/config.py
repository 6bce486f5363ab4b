"""Sizes and tensors of the small token encoder."""
from dataclasses import asdict, dataclass

from ..readout.errors import require

VISIBILITIES = ("causal", "bidirectional")


@dataclass(frozen=True)
class CausalConfig:
    """vocabulary, positions : rows of the embedding tables · hidden, heads, inner, blocks : of the pre-norm blocks ·
    visibility : "causal" (a row sees itself and what is before it) or "bidirectional" · eps : of the layer norms ·
    experts, top_k, mixtures : feed-forward experts behind a router, how many of them a row takes, and how many such
    layers follow the blocks (0: none)
    """

    vocabulary: int
    positions: int
    hidden: int = 32
    heads: int = 2
    inner: int = 64
    blocks: int = 2
    visibility: str = "causal"
    eps: float = 1e-5
    experts: int = 0
    top_k: int = 0
    mixtures: int = 0

    def __post_init__(self):
        require(self.visibility in VISIBILITIES, "config.visibility", self.visibility, ", ".join(VISIBILITIES))
        for name in ("vocabulary", "positions", "hidden", "heads", "inner"):
            require(getattr(self, name) > 0, f"config.{name}", getattr(self, name), "1 or more")
        require(self.hidden % self.heads == 0, "config.heads", self.heads, f"a divisor of {self.hidden}")
        require(self.mixtures == 0 or 0 < self.top_k <= self.experts, "config.top_k", self.top_k,
                f"1..{self.experts} experts")

    def to_json(self) -> dict:
        """Plain JSON of every size."""
        return asdict(self)

    def tensors(self) -> dict[str, tuple]:
        """name → (shape, start): zeros, ones or the deviation of normal numbers; in the fixed order of everything."""
        d, m = self.hidden, self.inner
        table = {"token_emb.weight": ((self.vocabulary, d), 0.02), "position_emb.weight": ((self.positions, d), 0.02)}
        for i in range(self.blocks):
            at = f"blocks.{i}."
            table |= {at + "ln1.weight": ((d,), "ones"), at + "ln1.bias": ((d,), "zeros"),
                      at + "qkv.weight": ((3 * d, d), 0.05), at + "qkv.bias": ((3 * d,), "zeros"),
                      at + "proj.weight": ((d, d), 0.05), at + "proj.bias": ((d,), "zeros"),
                      at + "ln2.weight": ((d,), "ones"), at + "ln2.bias": ((d,), "zeros"),
                      at + "fc1.weight": ((m, d), 0.05), at + "fc1.bias": ((m,), "zeros"),
                      at + "fc2.weight": ((d, m), 0.05), at + "fc2.bias": ((d,), "zeros")}
        for i in range(self.mixtures):
            at = f"mixtures.{i}."
            table |= {at + "ln.weight": ((d,), "ones"), at + "ln.bias": ((d,), "zeros"),
                      at + "router.weight": ((self.experts, d), 0.5)}
            for e in range(self.experts):
                table |= {f"{at}experts.{e}.fc1.weight": ((m, d), 0.05), f"{at}experts.{e}.fc1.bias": ((m,), "zeros"),
                          f"{at}experts.{e}.fc2.weight": ((d, m), 0.05), f"{at}experts.{e}.fc2.bias": ((d,), "zeros")}
        return table | {"ln.weight": ((d,), "ones"), "ln.bias": ((d,), "zeros")}
