"""Bi-encoders: each side to one vector by its own template and encoder, compared by a declared metric."""
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..below import l2_normalize_forward, linear_forward, squared_distance_forward
from ..container import read_container, write_container
from .errors import ReadoutError, require
from .interaction import BiEncoderRelease, record_digest
from .scores import Scores, ScoreType

SCORE_TYPES = {"cosine": ScoreType.COSINE, "dot": ScoreType.DOT, "squared_l2": ScoreType.SQUARED_L2}
KIND = "dx-document-vectors"


@dataclass(frozen=True, eq=False)
class SideVectors:
    """Vectors of one side: ids (stable), values float32 (n, d), side "query" or "document", release (the digest of the
    bi-encoder that made them), normalized."""

    ids: tuple
    values: np.ndarray
    side: str
    release: str
    normalized: bool

    def save(self, path) -> str:
        """Writes document vectors as a container; returns its SHA-256. They stay valid for this release alone."""
        require(self.side == "document", "vectors.side", self.side, "document: queries are not kept")
        config = {"ids": list(self.ids), "release": self.release, "normalized": self.normalized}
        return write_container(path, KIND, config, {"vectors": self.values})


def load_vectors(path, release: BiEncoderRelease) -> SideVectors:
    """Document vectors from a file; ReadoutError when they were made under another release."""
    config, tensors = read_container(path, KIND)
    require(config["release"] == release.digest(), "vectors.release", config["release"],
            f"{release.digest()}: the encoder, template, pool or metric changed, so the documents are encoded anew")
    return SideVectors(tuple(config["ids"]), tensors["vectors"], "document", config["release"], config["normalized"])


@dataclass(frozen=True, eq=False)
class PairMatrix:
    """Scores of every query with every document: scores.values (queries, documents), scores.axis the document ids."""

    query_ids: tuple
    scores: Scores

    def of(self, query_id) -> Scores:
        """The scores of one query, for ranking."""
        return replace(self.scores, values=self.scores.values[self.query_ids.index(query_id)])


class BiEncoder:
    """Two sides encoded independently.

    Parameters
    ----------
    encode_query, encode_document : callables text → float32 (d,), encoder and pool of a side; one and the same object
        exactly when the release is tied
    release : BiEncoderRelease, admitted here; its templates are rendered here, so neither side can skip its own
    """

    def __init__(self, encode_query: Callable, encode_document: Callable, release: BiEncoderRelease):
        release.admit()
        require((encode_query is encode_document) == release.tied, "interaction.tied", release.tied,
                "True exactly when one encoder serves both sides")
        self._encoders = {"query": encode_query, "document": encode_document}
        self._templates = {"query": release.query_template, "document": release.document_template}
        self.release = release

    def encode(self, side: str, ids: Sequence, texts: Sequence[str]) -> SideVectors:
        """Vectors of texts of one side ("query" or "document"), each from its own text alone."""
        require(side in self._encoders, "side", side, "query or document")
        require(len(ids) == len(texts) == len(dict.fromkeys(ids)), "ids", list(ids),
                f"{len(texts)} different ids, one a text")
        rows = [np.asarray(self._encoders[side](self._templates[side].replace("{text}", text)), np.float32)
                for text in texts]
        width = self.release.query_vector_dimension
        for id_, row in zip(ids, rows):
            require(row.shape == (width,), f"vectors[{id_!r}].shape", row.shape, f"({width},), the release's")
        values = np.array(rows, np.float32).reshape(len(rows), width)
        cosine = self.release.metric_contract == "cosine"
        if cosine:
            values = normalize_rows(values)
        return SideVectors(tuple(ids), values, side, self.release.digest(), cosine)

    def score(self, queries: SideVectors, documents: SideVectors) -> PairMatrix:
        """Every query with every document under the release's metric.

        ReadoutError: sides swapped, vectors of another release, or vectors not normalized under cosine.
        """
        for vectors, side in ((queries, "query"), (documents, "document")):
            require(vectors.side == side, f"{side}.side", vectors.side, f"{side}: a side has its own space")
            require(vectors.release == self.release.digest(), f"{side}.release", vectors.release,
                    f"{self.release.digest()}, this release")
            require(vectors.normalized == (self.release.metric_contract == "cosine"), f"{side}.normalized",
                    vectors.normalized, f"what {self.release.metric_contract} is computed on")
        metric = self.release.metric_contract
        values = similarity(queries.values, documents.values, metric)
        return PairMatrix(queries.ids, Scores(values, SCORE_TYPES[metric], self.release.digest(), documents.ids,
                                              normalized=metric == "cosine"))


def normalize_rows(values: np.ndarray) -> np.ndarray:
    """Rows of unit length, float32; a zero row has no direction and is refused."""
    values = np.ascontiguousarray(values, np.float32)
    out, norms = np.empty_like(values), np.empty(len(values), np.float32)
    try:
        l2_normalize_forward(values, out, norms)
    except ValueError as error:
        raise ReadoutError("vectors", "a zero row", f"rows with a direction ({error})") from None
    return out


def similarity(queries: np.ndarray, documents: np.ndarray, metric: str) -> np.ndarray:
    """float32 (queries, documents): one dot16 each for dot and cosine (of rows already unit), squared_l2 of the
    differences."""
    scores = np.empty((len(queries), len(documents)), np.float32)
    if metric == "squared_l2":
        squared_distance_forward(queries, documents, scores)
    else:
        linear_forward(queries, documents, None, scores)
    return scores


def state_key(**parts: str) -> str:
    """The key under which reusable state is valid: a digest over everything that made it, by name. ReadoutError names a
    part that is missing."""
    wanted = ("source", "rendering", "tokenizer", "backbone", "adapter", "row_policy", "readout", "dtype_schema")
    for name in wanted:
        require(name in parts and isinstance(parts[name], str), f"state.{name}", parts.get(name), "a text")
    require(len(parts) == len(wanted), "state", sorted(parts), ", ".join(wanted))
    return record_digest(parts)
