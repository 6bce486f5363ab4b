"""Late interaction: several vectors a side, kept as rows that count, compared row by row (MaxSim)."""
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..below import maxsim_forward, maxsim_lse_forward
from ..container import read_container, write_container
from .errors import require
from .interaction import LateInteractionRelease
from .interaction_vectors import PairMatrix, normalize_rows
from .scores import Scores, ScoreType

KIND = "dx-token-vectors"


@dataclass(frozen=True, eq=False)
class TokenVectors:
    """Selected rows of several texts, one text after the other, no padding among them.

    ids : stable id a text · rows : float32 (all rows, d) · starts : int64 (texts + 1,), text t has rows
    starts[t]..starts[t + 1] · places : int64 (all rows,), the model row that each came from · side : "query" or
    "document" · release : digest of the late-interaction release
    """

    ids: tuple
    rows: np.ndarray
    starts: np.ndarray
    places: np.ndarray
    side: str
    release: str

    def save(self, path) -> str:
        """Writes a document artifact under the release's schema, rows and the map that says whose they are together."""
        require(self.side == "document", "vectors.side", self.side, "document: queries are not kept")
        config = {"ids": list(self.ids), "starts": self.starts.tolist(), "places": self.places.tolist(),
                  "release": self.release}
        return write_container(path, KIND, config, {"rows": self.rows})


def load_token_vectors(path, release: LateInteractionRelease) -> TokenVectors:
    """A document artifact from its file; ReadoutError when it belongs to another release or its map does not fit."""
    config, tensors = read_container(path, KIND)
    require(config["release"] == release.digest(), "vectors.release", config["release"],
            f"{release.digest()}: projection, row policy or schema changed, so the documents are encoded anew")
    starts, places = np.array(config["starts"], np.int64), np.array(config["places"], np.int64)
    require(len(starts) == len(config["ids"]) + 1 and starts[-1] == len(tensors["rows"]) == len(places),
            "vectors.starts", config["starts"], "the rows of every text")
    return TokenVectors(tuple(config["ids"]), tensors["rows"], starts, places, "document", config["release"])


def token_vectors(release: LateInteractionRelease, side: str, ids: Sequence, rows: Sequence[np.ndarray],
                  masks: Sequence[np.ndarray]) -> TokenVectors:
    """The rows that the side's policy selects, gathered in order.

    Parameters
    ----------
    rows : for each text float32 (S, d), projected rows with padding and special rows still in them
    masks : for each text (S,) bool: the row counts (content, or whatever the release's row policy names); a stored
        array without its mask cannot be told apart from one with padding, so there is no default

    Raises
    ------
    ReadoutError
        No row of a text counts; a mask that is not bool or of another length; rows that are not unit length are made so
        when the release says normalized_rows, and a zero row is refused then.
    """
    release.admit()
    require(side in ("query", "document"), "side", side, "query or document")
    require(len(ids) == len(rows) == len(masks) == len(dict.fromkeys(ids)), "ids", list(ids),
            f"{len(rows)} different ids, with one array of rows and one mask each")
    kept, places = [], []
    for id_, array, mask in zip(ids, rows, masks):
        array, mask = np.asarray(array), np.asarray(mask)
        require(array.ndim == 2 and array.dtype == np.float32, f"rows[{id_!r}]", (array.shape, array.dtype.name),
                "float32 (rows, d)")
        require(mask.dtype == np.bool_ and mask.shape == (len(array),), f"masks[{id_!r}]",
                (mask.shape, mask.dtype.name), f"bool ({len(array)},)")
        places.append(np.flatnonzero(mask))
        require(len(places[-1]), f"masks[{id_!r}]", "no row", "at least one row that counts")
        kept.append(array[places[-1]])
    widths = sorted({array.shape[1] for array in kept})
    require(len(widths) == 1, "rows.width", widths, "one width")
    starts = np.zeros(len(kept) + 1, np.int64)
    for t, array in enumerate(kept):
        starts[t + 1] = starts[t] + len(array)
    flat = np.ascontiguousarray(np.concatenate(kept))
    flat = normalize_rows(flat) if release.normalized_rows else flat
    return TokenVectors(tuple(ids), flat, starts, np.concatenate(places), side, release.digest())


def expand_query(ids: Sequence[int], release: LateInteractionRelease, filler: int) -> list[int]:
    """The query's token ids as the release wants them: filled with `filler` (a mask token that the encoder sees) up to
    N under "expanded:N", cut to N when longer; as they are otherwise. One rule on every path, never a default."""
    kind, _, count = release.query_row_policy.partition(":")
    if kind != "expanded":
        return list(ids)
    return [*ids[:int(count)], *[filler] * (int(count) - len(ids))]


@dataclass(frozen=True, eq=False)
class LateScores(PairMatrix):
    """Scores of every query with every document.

    winners : int64 (query rows, documents), the model row of the document that won, or None for log_sum_exp, where
    every row takes part
    """

    winners: np.ndarray | None = None


def late_scores(release: LateInteractionRelease, queries: TokenVectors, documents: TokenVectors) -> LateScores:
    """Every query with every document.

    maxsim adds the query rows' maxima; mean_maxsim divides that by the number of the query's rows that count, so unit
    rows stay within [-1, 1]; log_sum_exp is the smooth form at the release's temperature. Equal similarities: the first
    row wins. ReadoutError: sides swapped, artifacts of another release.
    """
    release.admit()
    for vectors, side in ((queries, "query"), (documents, "document")):
        require(vectors.side == side, f"{side}.side", vectors.side, side)
        require(vectors.release == release.digest(), f"{side}.release", vectors.release,
                f"{release.digest()}, this release")
    require(queries.rows.shape[1] == documents.rows.shape[1], "document.width", documents.rows.shape[1],
            f"{queries.rows.shape[1]}, the query's")
    values = np.empty((len(queries.ids), len(documents.ids)), np.float32)
    args = queries.rows, queries.starts, documents.rows, documents.starts, values
    winners = None
    if release.score == "log_sum_exp":
        maxsim_lse_forward(*args, temperature=release.temperature)
    else:
        local = np.empty((len(queries.rows), len(documents.ids)), np.int32)
        maxsim_forward(*args, local)
        winners = documents.places[documents.starts[:-1][None, :] + local]
    if release.score == "mean_maxsim":
        values /= np.diff(queries.starts).astype(np.float32)[:, None]
    scores = Scores(values, ScoreType(f"{release.score}_similarity"), release.digest(), documents.ids,
                    normalized=release.normalized_rows)
    return LateScores(queries.ids, scores, winners)
