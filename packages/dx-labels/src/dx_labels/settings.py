"""What a project's settings.json may say."""
import dataclasses
import re
from dataclasses import dataclass, field
from fractions import Fraction

from .below import DocExtractConfig, TrainSettings
from .labels import MISSING
from .schema import nearest
from .targets import PLACES

DEFAULT_TRAIN = {"augment": 1.0}
EPOCHS, LEAST_STEPS = 20, 400  # where settings name neither epochs nor steps
DECIMAL = re.compile(r"(?=\.?[0-9])[0-9]{0,40}(\.[0-9]{0,40})?([eE][+-]?[0-9]{1,3})?")
# not longer: an exact 1e400000000 takes hours
SIZES = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "max_chars", "char_dim",
         "char_channels", "position_buckets", "pair_hidden", "relation_size", "max_words", "cut", "keep_file_order",
         "columns")


class SettingsError(ValueError):
    """A setting that breaks a rule; the message names it, its value and the rule."""


@dataclass(frozen=True)
class JobSettings:
    """Settings of the whole job.

    seed : of splits, initial weights, variants and training
    held_out, development : shares of the documents, decimals as text; development is a share of what is not held out
    share, least : what a threshold asks for: share of right values, and how many values must stand behind it
    variants : give training pages their variants
    missing : what a field means that a document's values do not name: "none" or "not annotated"
    places : "all" or "unsure": what a value's several places mean to the tag loss
    train : dict, changes to TrainSettings · model : dict, sizes of a new model
    """
    seed: int = 0
    held_out: str = "0.2"
    development: str = "0.1"
    share: str = "0.99"
    least: int = 5
    variants: bool = True
    missing: str = "none"
    places: str = "all"
    train: dict = field(default_factory=dict)
    model: dict = field(default_factory=dict)

    def training(self, examples=1):
        """The TrainSettings for so many examples: 20 epochs, at least 400 steps, unless `train` names either."""
        chosen = TrainSettings(**{**DEFAULT_TRAIN, **self.train, "seed": self.seed})
        if "epochs" in self.train or "steps" in self.train:
            return chosen
        return dataclasses.replace(chosen, steps=max(LEAST_STEPS, -(-EPOCHS * examples // chosen.batch)))

    def config(self, schema, start=None):
        """The DocExtractConfig for a schema; with a model to start from, its sizes."""
        fields = {"fields": schema.names, "repeated": tuple(f.name for f in schema.fields if f.repeated)}
        if start is not None:
            return dataclasses.replace(start, **fields)
        return DocExtractConfig(**fields, **self.model)

    def to_json(self):
        return dataclasses.asdict(self)


def settings_from_json(value):
    """JobSettings from an object; SettingsError for an unknown key (with the nearest one) or a value out of range."""
    if value is None:
        return JobSettings()
    if not isinstance(value, dict):
        raise SettingsError("expected an object")
    known = {spec.name: spec for spec in dataclasses.fields(JobSettings)}
    _known(value, known, "")
    kinds = {"seed": int, "least": int, "variants": bool, "places": str, "missing": str, "train": dict, "model": dict}
    for name, one in value.items():
        if name in kinds and (not isinstance(one, kinds[name]) or kinds[name] is int and isinstance(one, bool)):
            raise SettingsError(f"{name} is {one!r}: expected {kinds[name].__name__}")
    made = {**value, **{k: str(value[k]) for k in ("held_out", "development", "share") if k in value}}
    train = [spec.name for spec in dataclasses.fields(TrainSettings) if spec.name != "seed"]
    _known(made.get("train", {}), train, "train.")
    _known(made.get("model", {}), SIZES, "model.")
    settings = JobSettings(**made)
    for name in ("held_out", "development", "share"):
        text = getattr(settings, name)
        share = Fraction(text) if DECIMAL.fullmatch(text) else None
        if share is None or not 0 < share < 1 and not (name == "share" and share == 1):
            raise SettingsError(f"{name} is {value[name]!r}: expected a decimal above 0 and below 1")
    if settings.places not in PLACES:
        raise SettingsError(f"places is {settings.places!r}: expected one of {', '.join(PLACES)}")
    if settings.missing not in MISSING:
        raise SettingsError(f"missing is {settings.missing!r}: expected one of {', '.join(MISSING)}")
    if not 0 <= settings.seed < 2 ** 32 or settings.least < 1:
        raise SettingsError(f"seed is {settings.seed}, least is {settings.least}: expected 0 to 2**32 - 1, 1 or more")
    try:
        settings.training()
        DocExtractConfig(**settings.model)
    except (TypeError, ValueError, OverflowError) as error:
        raise SettingsError(str(error)) from None
    return settings


def _known(value, keys, where):
    for name in value:
        if name not in keys:
            raise SettingsError(f"unknown setting {where}{name}{nearest(name, keys)}: expected {', '.join(keys)}")
