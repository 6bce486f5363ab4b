"""Everything a fine-tuning run depends on besides the model, the schema and the labels."""
import dataclasses
import math
from dataclasses import dataclass

OPTIMIZERS = ("adamw", "sgd")
LOSS_TERMS = ("tag", "run", "role", "doc", "item", "key_value")

NOT_BITS = ("checkpoint_every", "digest_every")  # may change between a run and its continuation


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """Settings of a run. `bits()` is the part that decides weights and belongs to the resume fingerprint; the rest
    (checkpoint and log intervals) may change between a run and its continuation.

    Attributes
    ----------
    seed : 0 to 2**32 - 1; order of examples and augmentation
    steps : optimizer steps in all; 0: `epochs` times the examples, divided by batch and rounded up
    epochs : passes over the examples (used when steps is 0)
    batch : examples a step
    learning_rate : peak rate, reached at step warmup - 1 (steps count from 0)
    warmup : steps of linear warm-up
    final_rate : share of the peak that the linear decay ends with
    optimizer : "adamw", or "sgd": w - rate * gradient, without decay
    weight_decay : AdamW's decoupled decay, on matrices and tables only
    beta1, beta2, eps : AdamW's constants
    clip_norm : global gradient norm above which gradients are scaled down; 0: no clipping
    backbone_scale : learning-rate scale of everything but the heads; 0: a head-only run (tag head and its bias)
    loss_weights : weight of each loss term by name (tag, run, role, doc, item, key_value); 0 or absent: off
    field_weight : cross-entropy weight of every B- and I- tag (O weighs 1)
    ema_decay : decay of the moving average of the weights that is kept beside them; 0: none
    augment : strength of augmentation, 0 (off) to 1 (docs/training.md "Augmentation")
    variant_share : how often one of an example's page-level variants stands in for it, where it has some
    evaluate_every : steps between evaluations on the development part; 0: the examples divided by batch, rounded up
    patience : evaluations without a better score after which the run stops; 0: it never stops early
    checkpoint_every, digest_every : steps between checkpoints and between weight digests in the log; 0: never (a
        checkpoint is still written at the end and when the run is interrupted)
    """

    seed: int = 0
    steps: int = 0
    epochs: int = 20
    batch: int = 8
    learning_rate: float = 1e-3
    warmup: int = 100
    final_rate: float = 0.1
    optimizer: str = "adamw"
    weight_decay: float = 0.05
    beta1: float = 0.9
    beta2: float = 0.98
    eps: float = 1e-8
    clip_norm: float = 1.0
    backbone_scale: float = 1.0
    loss_weights: tuple[tuple[str, float], ...] = (("tag", 1.0), ("run", 1.0))
    field_weight: float = 3.0
    ema_decay: float = 0.0
    augment: float = 0.0
    variant_share: float = 0.6
    evaluate_every: int = 0
    patience: int = 0
    checkpoint_every: int = 200
    digest_every: int = 0

    def __post_init__(self):
        weights = self.loss_weights
        pairs = weights.items() if isinstance(weights, dict) else weights
        object.__setattr__(self, "loss_weights", tuple((str(name), float(value)) for name, value in pairs))
        for spec in dataclasses.fields(self):
            value = getattr(self, spec.name)
            if spec.type is int and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise ValueError(f"{spec.name} = {value!r}: expected a whole number of at least 0")
            if spec.type is float:
                number = isinstance(value, (int, float)) and not isinstance(value, bool)
                if not number or not 0 <= value < math.inf:
                    raise ValueError(f"{spec.name} = {value!r}: expected a finite number of at least 0")
                try:
                    object.__setattr__(self, spec.name, float(value))
                except OverflowError:  # a whole number beyond binary64
                    raise ValueError(f"{spec.name} = {str(value)[:20]}…: expected a finite number") from None
        self._check()

    def _check(self):
        if self.seed >= 2 ** 32:
            raise ValueError(f"seed = {self.seed}: expected less than 2**32")
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(f"optimizer = {self.optimizer!r}: expected one of {', '.join(map(repr, OPTIMIZERS))}")
        if not 1 <= self.batch <= 65536:
            raise ValueError(f"batch = {self.batch}: expected 1 to 65536")
        if self.steps == 0 and self.epochs == 0:
            raise ValueError("steps = 0 and epochs = 0: expected one of them to be at least 1")
        for name in ("beta1", "beta2", "ema_decay"):
            if getattr(self, name) >= 1:
                raise ValueError(f"{name} = {getattr(self, name)}: expected less than 1")
        for name in ("final_rate", "augment", "variant_share"):
            if getattr(self, name) > 1:
                raise ValueError(f"{name} = {getattr(self, name)}: expected at most 1")
        if self.eps == 0:
            raise ValueError("eps = 0.0: expected more than 0")
        names = [name for name, _ in self.loss_weights]
        for name, value in self.loss_weights:
            if name not in LOSS_TERMS:
                raise ValueError(f"loss_weights has the term {name!r}: expected some of {', '.join(LOSS_TERMS)}")
            if not math.isfinite(value) or value < 0:
                raise ValueError(f"loss_weights[{name!r}] = {value}: expected a finite number of at least 0")
        if len(set(names)) != len(names):
            raise ValueError("loss_weights names a term twice")
        if not any(value > 0 for _, value in self.loss_weights):
            raise ValueError("loss_weights: expected at least one term above 0")

    def active_losses(self) -> dict[str, float]:
        """Terms that are on, with their weights; a head-only run trains on the tag term alone."""
        active = {name: value for name, value in self.loss_weights if value > 0}
        if self.backbone_scale == 0:
            active = {name: value for name, value in active.items() if name == "tag"}
            if not active:
                raise ValueError("backbone_scale = 0 trains the tag head alone: expected a tag term above 0")
        return active

    def total_steps(self, examples: int) -> int:
        """Optimizer steps of a run over that many examples."""
        if examples < 1:
            raise ValueError("there are no examples to train on")
        return self.steps or -(-self.epochs * examples // self.batch)

    def evaluation_interval(self, examples: int) -> int:
        """Steps between evaluations of a run over that many examples."""
        return self.evaluate_every or -(-examples // self.batch)

    def bits(self) -> dict:
        """The settings that decide a bit of the result, as plain JSON values."""
        data = dataclasses.asdict(self)
        for name in NOT_BITS:
            del data[name]
        data["loss_weights"] = {name: value for name, value in self.loss_weights}
        return data
