"""What overlapping windows become: one row a token, or a mean in which every token counts once."""
from collections.abc import Sequence

import numpy as np

from ..below import pool_sum_forward
from ..readout.errors import require
from ..readout.interaction import LateInteractionRelease
from ..readout.interaction_late import TokenVectors, token_vectors
from .windows import WindowRecord, admit_windows

POLICIES = ("owned", "occurrences")


def _in_order(records, rows):
    """(records in order, their rows in the same order)."""
    require(len(records) == len(rows), "rows", len(rows), f"{len(records)} arrays, one for each window")
    given = {r.window_id: np.asarray(x) for r, x in zip(records, rows, strict=True)}
    records = admit_windows(records)
    found = []
    for r in records:
        x = given[r.window_id]
        require(x.ndim == 2 and len(x) == len(r.rows) and x.dtype == np.float32, f"rows[{r.window_id}]",
                (x.shape, x.dtype.name), f"float32 ({len(r.rows)}, width)")
        found.append(x)
    return records, found


def source_rows(records: Sequence[WindowRecord], rows: Sequence[np.ndarray]) -> np.ndarray:
    """(tokens, width): for every token of the source the row of the window that owns it.

    rows : for each window float32 (S, width): contextual rows, logits, … . A repeated token's rows differ between
    windows, whose neighbours differ: this chooses one, it does not rebuild a longer context.
    """
    records, rows = _in_order(records, rows)
    require(records[0].policy.owner != "multiplicity", "windows.owner", "multiplicity", "one owner a token")
    out = np.empty((max(r.tokens[1] for r in records), rows[0].shape[1]), np.float32)
    for r, x in zip(records, rows, strict=True):
        out[r.token[r.owned]] = x[r.owned]
    return out


def overlap_mean(records: Sequence[WindowRecord], rows: Sequence[np.ndarray]) -> np.ndarray:
    """(width,): sum over occurrences of row / c, divided by the number of tokens; c: the token's occurrences.

    dot16 of (1 / c, row) over the occurrences, windows in order and rows in order, 1 / c rounded to binary32; then one
    division. Averages occurrences: where a repeated token's rows are equal it is the mean over tokens up to rounding.
    """
    records, rows = _in_order(records, rows)
    x = np.ascontiguousarray(np.concatenate([x[r.content] for r, x in zip(records, rows, strict=True)]))
    c = np.concatenate([r.multiplicity[r.content] for r in records]).astype(np.float32)
    y = np.empty((1, x.shape[1]), np.float32)
    tokens = max(r.tokens[1] for r in records)
    pool_sum_forward(x, None, np.array([0, len(x)]), y, weights=np.float32(1) / c,
                     divisors=np.array([tokens], np.float32))
    return y[0]


def late_rows(records: Sequence[WindowRecord], rows: Sequence[np.ndarray], release: LateInteractionRelease,
              policy: str) -> TokenVectors:
    """A source's rows as a late-interaction document: places are source tokens.

    policy : "owned", each token once, from its window; "occurrences", every window's row of it. The artifact schema of
    the release must name the policy: two artifacts that differ in this are not comparable.
    """
    require(policy in POLICIES, "windows.late_rows", policy, ", ".join(POLICIES))
    schema = release.document_token_artifact_schema
    require(schema.split(":")[-1] == policy, "interaction.document_token_artifact_schema", schema,
            f"a schema that ends with :{policy}")
    if policy == "owned":
        flat = source_rows(records, rows)
        places = np.arange(len(flat))
    else:
        records, rows = _in_order(records, rows)
        flat = np.concatenate([x[r.content] for r, x in zip(records, rows, strict=True)])
        places = np.concatenate([r.token[r.content] for r in records])
    made = token_vectors(release, "document", [records[0].source_id], [flat], [np.ones(len(flat), bool)])
    return TokenVectors(made.ids, made.rows, made.starts, places, made.side, made.release)
