"""What a change of a release invalidates: the compatibility graph, as data.

    source and tokenizer → contextual state → readout, vector → head, raw score → calibration → decision

A change invalidates everything below it. Three entries of the table carry a condition, and a change of the runtime
proves nothing either way until a parity test has run.
"""
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LAYERS = ("source", "contextual", "vector", "raw_score", "calibration", "decision")
# What can be kept from one release to the next, each the state of one layer.
STATES = ("contextual_cache", "vector_cache", "raw_scores", "calibrated_scores", "decisions")
STATE_LAYER = dict(zip(STATES, LAYERS[1:]))

REUSABLE, UNPROVEN, INVALID = "reusable", "unproven", "invalid"
IF_IDENTITY, IF_VECTORS = "reusable if the contextual identity matches", "reusable if the head reads vectors"
_BADNESS = (REUSABLE, UNPROVEN, INVALID)

# change → the layer it is made at (None: beside the graph)
CHANGES = {"input": "source", "backbone": "contextual", "readout": "vector", "head": "raw_score",
           "calibrator": "calibration", "decision": "decision", "runtime": None}

# change → verdict for each of STATES
TABLE = {
    "input": (INVALID, INVALID, INVALID, INVALID, INVALID),
    "backbone": (INVALID, INVALID, INVALID, INVALID, INVALID),
    "readout": (IF_IDENTITY, INVALID, INVALID, INVALID, INVALID),
    "head": (REUSABLE, IF_VECTORS, INVALID, INVALID, INVALID),
    "calibrator": (REUSABLE, REUSABLE, REUSABLE, INVALID, INVALID),
    "decision": (REUSABLE, REUSABLE, REUSABLE, REUSABLE, INVALID),
    "runtime": (UNPROVEN, UNPROVEN, UNPROVEN, UNPROVEN, UNPROVEN),
}


class ReleaseError(ValueError):
    """A release, its record or a step of its life is refused; the message names what, its value and the rule."""


@dataclass(frozen=True)
class Parity:
    """Evidence that two runtimes give the same: old, new : digests of the two runtime records · cases : how many were
    compared · largest : largest difference found · allowance : largest difference that the numerical contract allows"""

    old: str
    new: str
    cases: int
    largest: float
    allowance: float

    def proves(self, old: str, new: str) -> bool:
        """Is it about these two, and within the allowance? bool."""
        return (self.old, self.new) == (old, new) and self.cases > 0 and 0 <= self.largest <= self.allowance

    def to_json(self) -> dict:
        return dict(vars(self))


def effect(changes: Sequence[str], *, same_contextual: bool = False, head_reads: str = "vectors",
           same_runtime: bool = False) -> Mapping[str, str]:
    """state → reusable, unproven or invalid, the worst that any of the changes does; no change: all reusable.

    Parameters
    ----------
    changes : keys of CHANGES
    same_contextual : the rows that are kept are those the new release reads (identity of input, backbone and layers)
    head_reads : "vectors" when the head's input is the cached vector, "rows" when it reads contextual rows itself
    same_runtime : a parity test between the two runtimes has passed

    Reusable means eligible under exactly these identities, not that keeping it is worth the space.
    """
    if head_reads not in ("vectors", "rows"):
        raise ReleaseError(f"head_reads = {head_reads!r}: expected 'vectors' or 'rows'")
    resolved = {IF_IDENTITY: REUSABLE if same_contextual else INVALID,
                IF_VECTORS: REUSABLE if head_reads == "vectors" else INVALID,
                UNPROVEN: REUSABLE if same_runtime else UNPROVEN}
    found = dict.fromkeys(STATES, REUSABLE)
    for change in changes:
        if change not in TABLE:
            raise ReleaseError(f"change {change!r}: expected one of {', '.join(TABLE)}")
        for state, entry in zip(STATES, TABLE[change]):
            verdict = resolved.get(entry, entry)
            found[state] = max(found[state], verdict, key=_BADNESS.index)
    return found


def below(layer: str) -> tuple[str, ...]:
    """The states of a layer and of all layers that follow from it: what the bare graph invalidates."""
    at = LAYERS.index(layer)
    return tuple(state for state in STATES if LAYERS.index(STATE_LAYER[state]) >= at)
