"""Speed parts of bench readout: each is (name, shapes, sides), sides(shape) giving the callables to interleave."""
from . import interleave, progress


def measure(part, shape, sides, quick):
    """One row: dx beside torch on this shape; vs_torch is None where torch is missing."""
    progress(f"{part} {shape}")
    calls = sides(shape)
    times = interleave(calls, quick)
    return {"part": part, "shape": "x".join(map(str, shape)), "dx_us": 1e6 * times.seconds["dx"],
            "vs_torch": times.ratio("torch") if "torch" in calls else None}


def parts(torch):
    """The parts there are."""
    return []
