"""Initial weights: SplitMix64 streams named after the tensors, the same bytes everywhere."""
import numpy as np

from ..below import normal32, substream
from .config import DocExtractConfig
from .parameters import Parameters


def initial_parameters(config: DocExtractConfig, seed: int = 0) -> Parameters:
    """Parameters as docs/docextract-v0.md says: each tensor's values, in container order, are the normal numbers of the
    stream `substream(seed, name)` times the tensor's deviation; row 0 of char_emb (padding) is zeros.

    A tensor depends on seed, name and shape alone, so adding a field leaves every other tensor's values as they were.
    seed: 0 to 2**64 - 1.
    """
    parameters = Parameters(config)
    tensors = {}
    for spec in parameters.specs:
        array = np.zeros(spec.shape, np.float32)
        if spec.init == "ones":
            array[...] = 1.0
        elif spec.init != "zeros":
            normal32(substream(seed, spec.name), array, deviation=spec.init)
        tensors[spec.name] = array
    tensors["char_emb.weight"][0] = 0.0
    parameters.load_container(tensors)
    return parameters
