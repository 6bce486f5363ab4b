"""Counter-based dropout for readout heads and encoders; docextract itself has none."""
import numpy as np

from .below import substream, uniform64


def dropout_mask(shape, rate: float, *, seed: int, example: str, step: int, site: str, view: int = 0) -> np.ndarray:
    """float32 factors of `shape`: 0 with probability `rate`, otherwise round32(1 / (1 - rate)).

    Element i (in C order) is dropped where number i of the stream named (seed, example, step, site, view) is below
    `rate`, so a mask depends on nothing else: not on batch, padding, threads or what was drawn before. `view` tells
    apart the passes of one example in one step (contrastive views). ValueError: rate outside [0, 1).
    """
    if not 0 <= rate < 1:
        raise ValueError(f"rate = {rate}: expected 0 <= rate < 1")
    if rate == 0:
        return np.ones(shape, np.float32)
    draws = np.empty(shape)
    uniform64(substream(substream(substream(seed, example), site), f"dropout {step} {view}"), draws)
    return np.where(draws < rate, np.float32(0.0), np.float32(1.0 / (1.0 - rate)))
