"""The modules Pooling and Normalize of sentence embeddings, in their order."""
import numpy as np

from ..errors import ReadoutError, require
from ..geometry import Normalization
from ..pooling import Pooling

POOLING_MODES = {"cls": "first", "max": "max", "mean": "mean", "mean_sqrt_len_tokens": "mean_sqrt_length",
                 "weightedmean": "weighted_mean", "lasttoken": "last"}  # theirs → ours
LEAST_LENGTH = 1e-12
ORDERS = (("Pooling",), ("Pooling", "Normalize"))


def sentence_pooling(hidden, attention, modes=("mean",), *, physical_weights: bool = False) -> np.ndarray:
    """The modes' vectors, concatenated in order: (B, modes * D) float32.

    Parameters
    ----------
    hidden : (B, S, D) float32 · attention : (B, S) bool, the rows that are pooled
    modes : one or several of "cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"
    physical_weights : take "weightedmean" also of examples with padding on the left, whose content then gets larger
        weights than it has without the padding

    Raises
    ------
    ReadoutError
        An example without rows; a mode that is not known; "weightedmean" of padding on the left unless asked for.
    """
    attention = np.asarray(attention)
    require(attention.ndim == 2 and attention.dtype == np.bool_, "attention", f"{attention.dtype} {attention.shape}",
            "bool (B, S)")
    for mode in modes:
        require(mode in POOLING_MODES, "pooling_mode", mode, ", ".join(POOLING_MODES))
    if "weightedmean" in modes and not physical_weights:
        for b in np.flatnonzero(~attention[:, 0] & attention.any(1)):
            raise ReadoutError(f"attention[{b}, 0]", False, "True: weights by physical column count padding on the "
                               "left (physical_weights=True asks for that)")
    weights = np.broadcast_to(np.arange(1, attention.shape[1] + 1, dtype=np.float32), attention.shape)
    return Pooling(tuple(POOLING_MODES[mode] for mode in modes)).forward(hidden, attention, weights=weights).vectors


def sentence_normalize(vectors) -> np.ndarray:
    """Each vector over max(its length, 1e-12), (B, D) float32; a zero vector stays zero."""
    return Normalization(LEAST_LENGTH).forward(vectors)[0]


def sentence_embedding(hidden, attention, modes=("mean",), modules=("Pooling", "Normalize")) -> np.ndarray:
    """Pooled vectors, normalised where the modules end with Normalize. ReadoutError for any other order of modules."""
    require(tuple(modules) in ORDERS, "modules", tuple(modules), "Pooling, and Normalize perhaps behind it: of another "
            "order the geometry is another")
    vectors = sentence_pooling(hidden, attention, modes)
    return sentence_normalize(vectors) if "Normalize" in modules else vectors
