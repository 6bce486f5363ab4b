"""The fields of a readout's record: what each must be, in one table. manifest.py reads it."""
from .layers import KINDS as LAYER_KINDS
from .scores import ScoreType
from .selection import EMPTY

MANIFEST_SCHEMA = "dx.readout.v1"

DTYPES = ("float32", "float16", "bfloat16")
# kind of output → (what its rows are, the axes of its result); C: labels, D: derived width
OUTPUT_KINDS = {
    "classification": ("pooled", ("B", "C")),
    "multilabel": ("pooled", ("B", "C")),
    "regression": ("pooled", ("B", "C")),
    "multiple_choice": ("pooled", ("B", "K")),
    "token_classification": ("kept", ("B", "S", "C")),
    "extractive_qa": ("kept", ("B", "S", 2)),
    "embedding": ("pooled", ("B", "D")),
    "pair_score": ("joint pair", ("B", "C")),
    "token_vectors": ("kept", ("B", "S", "D")),
}
LABELLED = ("classification", "multilabel", "regression", "token_classification")
# name in a manifest → type of the scores
SCORE_TYPES = {"logit": ScoreType.LOGIT, "softmax_probability": ScoreType.SOFTMAX_PROBABILITY,
               "sigmoid_probability": ScoreType.SIGMOID_PROBABILITY,
               "calibrated_probability": ScoreType.CALIBRATED_PROBABILITY, "value": ScoreType.VALUE,
               "dot": ScoreType.DOT, "cosine": ScoreType.COSINE, "l2": ScoreType.SQUARED_L2,
               "maxsim": ScoreType.MAXSIM}
SCORES = tuple(SCORE_TYPES)
_EXCLUSIVE = ("logit", "softmax_probability", "calibrated_probability")
_INDEPENDENT = ("logit", "sigmoid_probability", "calibrated_probability")
# kind of output → types of scores that can come of it: a cosine of classes or a softmax of vectors has no meaning
SCORES_OF = {
    "classification": (*_EXCLUSIVE, "sigmoid_probability"),
    "multilabel": _INDEPENDENT,
    "regression": ("value",),
    "multiple_choice": _EXCLUSIVE,
    "token_classification": _EXCLUSIVE,
    "extractive_qa": ("logit",),
    "embedding": ("dot", "cosine", "l2"),
    "pair_score": (*_EXCLUSIVE, "sigmoid_probability", "value"),
    "token_vectors": ("maxsim", "dot", "cosine"),
}
MODES_BY_NAME = ("first", "last", "bert_pooler", "mean", "mean_sqrt_length", "max", "weighted_mean",
                 "position_weighted_mean", "attention", "multi_hop_attention", "latent_attention")


class Rule:
    """What a field must be: a test of its value, and the words for what it accepts."""

    def __init__(self, test, expected: str):
        self.test, self.expected = test, expected


def whole(least):
    return Rule(lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= least, f"a whole number >= {least}")


def one_of(*names):
    return Rule(lambda v: isinstance(v, str | int) and v in names, " or ".join(str(n) for n in names))


def optional(rule):
    return Rule(lambda v: v is None or rule.test(v), f"{rule.expected}, or null")


def list_of(rule, least=0):
    return Rule(lambda v: isinstance(v, list) and len(v) >= least and all(rule.test(x) for x in v),
                f"a list of {rule.expected}")


def object_of(expected, /, **rules):
    """An object of exactly these keys."""
    return Rule(lambda v: isinstance(v, dict) and set(v) == set(rules) and all(r.test(v[k]) for k, r in rules.items()),
                expected)


def _hex(v):
    return isinstance(v, str) and len(v) == 64 and all(c in "0123456789abcdef" for c in v)


def _finite(v):
    return isinstance(v, int | float) and not isinstance(v, bool) and v - v == 0


def _distinct(v):
    return isinstance(v, list) and all(isinstance(x, str) and x for x in v) and len(set(v)) == len(v) > 0


def _projection(v):
    given = {k: x for k, x in v.items() if k != "in_features"} if isinstance(v, dict) else v
    activation = one_of("identity", "tanh", "gelu_erf")
    return object_of("", out_features=whole(1), bias=FLAG, activation=activation).test(given)


HASH = Rule(_hex, "64 lower-case hexadecimal digits")
TEXT = Rule(lambda v: isinstance(v, str) and v != "", "a string that is not empty")
FLAG = Rule(lambda v: isinstance(v, bool), "true or false")
NUMBER = Rule(_finite, "a finite number")
POSITIVE = Rule(lambda v: _finite(v) and v > 0, "a number > 0")
LABELS = Rule(_distinct, "distinct labels in order")
ADAPTER = Rule(lambda v: v == "none" or _hex(v), '"none" or the adapter\'s 64 hexadecimal digits')
FILES = Rule(lambda v: isinstance(v, dict) and all(isinstance(k, str) and _hex(h) for k, h in v.items()),
             "file names with their 64 hexadecimal digits")
IDS = Rule(lambda v: isinstance(v, dict) and all(isinstance(k, str) and whole(0).test(i) for k, i in v.items()),
           "names with their token ids")
NORMALIZE = Rule(lambda v: v == {"kind": "none"} or object_of("", kind=one_of("l2"), epsilon=POSITIVE).test(v),
                 'kind "l2" with an epsilon > 0, or kind "none"')
PROJECTION = Rule(_projection, "out_features, bias and activation")
ATTENTION = object_of("size and hops >= 1", size=whole(1), hops=whole(1))
LAYER = Rule(lambda v: isinstance(v, int) and not isinstance(v, bool), "a layer number")
AXES = Rule(lambda v: v == ["batch", "row", "channel"], "batch, row, channel")
DROPOUT = Rule(lambda v: _finite(v) and 0 <= v < 1, "a number in [0, 1)")
FLAGS = Rule(lambda v: isinstance(v, dict) and all(FLAG.test(x) for x in v.values()),
             "the five states with true or false")

# record → field → Rule
FIELDS = {
    "artifact": {"architecture": one_of("encoder", "decoder"), "backbone_sha256": HASH, "head_sha256": optional(HASH),
                 "adapter": ADAPTER, "task_revision": TEXT, "objective": TEXT},
    "input": {"tokenizer_sha256": HASH, "max_length": whole(1), "truncation": TEXT,
              "truncation_side": one_of("left", "right"), "padding_side": one_of("left", "right"),
              "special_token_ids": IDS, "template": optional(TEXT)},
    "rows": {"mask_source": one_of("attention_mask", "content_mask"), "mask_polarity": one_of("one_keeps"),
             "include_special": FLAG, "include_prompt": FLAG, "offsets_required": FLAG, "word_ids_required": FLAG,
             "pieces": optional(one_of("first", "all", "aggregate"))},
    "contextual_state": {"layers": list_of(LAYER, 1), "layers_kind": one_of(*LAYER_KINDS), "axes": AXES,
                         "width": whole(1), "final_norm_applied": FLAG, "parameter_dtype": one_of(*DTYPES),
                         "compute_dtype": one_of(*DTYPES), "accumulation_dtype": one_of("float32", "float64")},
    "readout": {"family": TEXT, "pooling": list_of(one_of(*MODES_BY_NAME)), "weights": optional(TEXT),
                "attention": optional(ATTENTION), "empty": one_of(*EMPTY), "projection": optional(PROJECTION),
                "dropout": DROPOUT, "normalize": NORMALIZE},
    "output": {"kind": one_of(*OUTPUT_KINDS), "labels": optional(LABELS), "null_label": optional(TEXT)},
    "score": {"type": one_of(*SCORES), "normalizes_operands": FLAG, "temperature": optional(POSITIVE),
              "threshold": optional(NUMBER), "tie_rule": one_of("lowest_index", "first_span")},
    "runtime": {"framework_revision": TEXT, "numerics_version": whole(1), "backend": TEXT, "device": TEXT,
                "export_format": TEXT},
    "release": {"schema": one_of(MANIFEST_SCHEMA), "files": FILES, "tests": list_of(TEXT, 1), "parent": optional(HASH),
                "migration": optional(FLAGS), "rollback_to": list_of(HASH)},
}
# Fields that follow from others: they may be left out, and are compared when they are not.
DERIVED_NAMES = {"readout.pooled_width", "readout.projection.in_features", "output.dimension", "output.label2id",
                 "output.id2label", "release.content_id"}
MIGRATION_STATES = ("stored_embeddings", "document_vectors", "thresholds", "calibration", "evaluation_baselines")
