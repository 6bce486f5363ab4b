"""A readout end to end: row tables and contextual rows in, the typed result of an admitted manifest out.

Nothing is chosen here: layers, rows, pools, projection, normalisation, labels and type of the score are the manifest's,
and what a batch, a head or its tensors say otherwise is refused with the field's name.
"""
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..below import ieee_mode, linear_forward, tanh_forward
from .calibrators import Calibrator
from .errors import ReadoutError, require
from .families import sequence_row_mask
from .geometry import PairScore
from .heads.admission import HeadBatch, HeadOutput, validate_task_head
from .heads.answers import Answer
from .heads.grouping import source_entities
from .heads.records import head_digest
from .manifest import Manifest
from .manifest_fields import OUTPUT_KINDS, SCORE_TYPES
from .pieces import pool_words, words_of_rows
from .pooling import check_parameters
from .rows import RowTable, first_piece_mask
from .scores import Scores, ScoreType, sigmoid, softmax
from .selection import widen

# output kind → kinds of heads that give it; kinds without an entry have no head
HEADS = {kind: (kind,) for kind in ("classification", "multilabel", "regression", "multiple_choice",
                                    "token_classification", "extractive_qa")}
HEADS["pair_score"] = ("multiple_choice", "classification", "regression")  # the first gives one scalar a pair
PAIR_KINDS = {"dot": "dot", "cosine": "cosine", "l2": "squared_l2"}


@dataclass(frozen=True, eq=False)
class Vectors:
    """Vectors (B, D_e) float32 of a release. They are no scores: `Readout.score` compares two of one release."""

    values: np.ndarray
    release: str
    normalized: bool


@dataclass(frozen=True, eq=False)
class RowVectors:
    """One vector for each selected row: values (N, D_e) float32, example by example; starts (B + 1,) int64; places (N,)
    the model rows; as TokenVectors store them."""

    values: np.ndarray
    starts: np.ndarray
    places: np.ndarray
    release: str
    normalized: bool


@dataclass(frozen=True, eq=False)
class RowScores:
    """Scores (B, S, C) of rows, and `rows` (B, S) bool: those whose scores mean something, a word's first piece, or
    every piece, as the manifest's piece policy says. tables : the rows' own."""

    scores: Scores
    rows: np.ndarray
    tables: tuple[RowTable, ...]

    def entities(self, example: int, scheme, word_rule: str = "first") -> list:
        """SourceEntity of one example by a tagging scheme (heads.source_entities)."""
        return source_entities(self.tables[example], replace(self.scores, values=self.scores.values[example]), scheme,
                               word_rule=word_rule)


@dataclass(frozen=True, eq=False)
class Answers:
    """logits (B, S, 2) of start and end; answers : one Answer an example; sources : its (sequence, start, end), or None
    for no answer."""

    logits: Scores
    answers: tuple[Answer, ...]
    sources: tuple


class Readout:
    """An admitted manifest with the tensors it names.

    Parameters
    ----------
    manifest : Manifest
    head : the task head (dx_model.readout.heads), exactly for kinds that have one; its digest must be
        artifact.head_sha256, its labels and width the manifest's
    parameters : name → float32 array of `parameter_shapes()`: of the layer mixture, the pools and the projection
    calibrator : of this manifest's content id, exactly when score.type is calibrated_probability

    Examples
    --------
    See docs/readout.md.
    """

    def __init__(self, manifest: Manifest, head=None, parameters=None, calibrator: Calibrator | None = None):
        self.manifest, self.head, self.calibrator = manifest, head, calibrator
        self.kind, self.release = manifest["output.kind"], manifest.content_id
        self.pooled = OUTPUT_KINDS[self.kind][0] != "kept"
        self._layers, self._normalization = manifest.layer_choice(), manifest.normalization()
        self._pooling = manifest.pooling() if self.pooled else None
        self._admit_head()
        calibrated = manifest["score.type"] == "calibrated_probability"
        require(calibrated == (calibrator is not None), "score.type", manifest["score.type"],
                "a calibrator exactly for calibrated_probability")
        if calibrated:
            require(calibrator.identity.parent_release == self.release, "calibrator.parent_release",
                    calibrator.identity.parent_release, repr(self.release))
        self._parameters = check_parameters(parameters, self.parameter_shapes())

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """name → shape of every tensor that the readout has beside its head."""
        width = self.manifest["contextual_state.width"]
        shapes = self._layers.parameter_shapes()
        if self.pooled:
            shapes |= self._pooling.parameter_shapes(width)
            width = self._pooling.width(width)
        projection = self.manifest["readout.projection"]
        if projection is not None:
            shapes["projection.weight"] = (projection["out_features"], width)
            if projection["bias"]:
                shapes["projection.bias"] = (projection["out_features"],)
        return shapes

    def _admit_head(self):
        manifest, wanted = self.manifest, HEADS.get(self.kind, ())
        require(bool(wanted) == (self.head is not None), "artifact.head", getattr(self.head, "kind", None),
                f"a head of kind {' or '.join(wanted)}" if wanted else f"none: {self.kind} has no head")
        if not wanted:
            return
        require(self.head.kind in wanted, "artifact.head", self.head.kind, " or ".join(wanted))
        manifest.check("artifact", head_sha256=head_digest(self.head))
        projection = manifest["readout.projection"]
        width = (projection["out_features"] if projection else manifest["readout.pooled_width"] if self.pooled
                 else manifest["contextual_state.width"])
        require(self.head.linear.inputs == width, "head.in_features", self.head.linear.inputs, f"{width}, as derived")
        require(self.head.dropout.rate == manifest["readout.dropout"], "readout.dropout", self.head.dropout.rate,
                f"{manifest['readout.dropout']}, as declared")
        labels = getattr(self.head, "labels", getattr(self.head, "targets", None))
        names = None if labels is None else list(labels.names)
        require(names == manifest["output.labels"], "output.labels", names, f"{manifest['output.labels']}, in order")

    def _declared(self, tables, states):
        """(H (B, S, D), row mask, attention), float32 and bool; what the manifest does not admit is refused."""
        manifest, tables = self.manifest, tuple(tables)
        dtype = manifest["contextual_state.compute_dtype"]
        many = isinstance(states, list | tuple)
        require(many or self._layers.kind == "one", "states", "one array", "the list of all hidden states: the layers "
                f"are a {self._layers.kind}")
        given = [np.asarray(s) for s in (states if many else [states])]
        for i, s in enumerate(given):
            require(s.dtype == (np.uint16 if dtype == "bfloat16" else np.dtype(dtype)),
                    "contextual_state.compute_dtype", s.dtype.name, f"{dtype}, as declared (states[{i}])")
            require(s.ndim == 3 and s.shape[2] == manifest["contextual_state.width"], "contextual_state.width",
                    s.shape, f"(B, S, {manifest['contextual_state.width']})")
        given = [widen(s, "states", dtype if dtype == "bfloat16" else None) for s in given]
        h = self._layers.forward(given, {n: self._parameters[n] for n in self._layers.parameter_shapes()})[0] \
            if many else given[0]
        require(len(tables) == len(h), "rows", len(tables), f"{len(h)} row tables, one an example")
        for b, table in enumerate(tables):
            require(len(table) == h.shape[1], f"rows[{b}]", len(table), f"{h.shape[1]} rows, as the states")
            self._admit_table(b, table)
        size = h.shape[:2]
        rows = np.array([manifest.row_mask(t) for t in tables], np.bool_).reshape(size)
        return h, rows, np.array([t.attention for t in tables], np.bool_).reshape(size)

    def _admit_table(self, b, table):
        manifest, visible = self.manifest, np.flatnonzero(table.attention)
        require(len(visible) <= manifest["input.max_length"], "input.max_length", len(visible),
                f"at most {manifest['input.max_length']} visible rows (rows[{b}])")
        side = manifest["input.padding_side"]
        padded = not table.attention[-1 if side == "left" else 0] if len(table) else False
        require(not padded, "input.padding_side", f"padding of rows[{b}] on the other side", side)
        if table.ids is not None:
            declared = manifest["input.special_token_ids"]
            wrong = [s for s in np.flatnonzero(table.special) if int(table.ids[s]) not in declared.values()]
            require(not wrong, "input.special_token_ids", [int(table.ids[s]) for s in wrong[:3]],
                    f"{declared} for the inserted rows (rows[{b}])")

    def _projected(self, x):
        """Rows (N, D) through projection and normalisation."""
        projection = self.manifest["readout.projection"]
        if projection is not None:
            y = np.empty((len(x), projection["out_features"]), np.float32)
            kind = projection["activation"]
            linear_forward(np.ascontiguousarray(x), self._parameters["projection.weight"],
                           self._parameters.get("projection.bias"), y,
                           activation="gelu_erf" if kind == "gelu_erf" else None)
            if kind == "tanh":
                tanh_forward(y.reshape(-1), y.reshape(-1))
            x = y
        return x if self._normalization is None else self._normalization.forward(x)[0]

    def _vectors(self, h, rows, attention, tables, weights):
        shapes = self._pooling.parameter_shapes(h.shape[2])
        special = sequence_row_mask(tables) if self._pooling.empty.policy == "special_row" else None
        pooled = self._pooling.forward(h, rows, {n: self._parameters[n] for n in shapes}, attention=attention,
                                       special=special, weights=weights)
        return self._projected(pooled.vectors)

    @ieee_mode()
    def run(self, tables: Sequence[RowTable], states, *, weights=None, examples: Sequence | None = None,
            context: int | None = None, answerable: Sequence[float] | None = None):
        """The typed result of a batch.

        Parameters
        ----------
        tables : one RowTable an example, S rows each
        states : (B, S, D) rows of the one declared layer, or the list of all hidden states; in the declared compute
            dtype (bfloat16 as uint16 bits)
        weights : (B, S) of weighted_mean · examples : of multiple_choice, id of the example of every candidate ·
        context : of extractive_qa, the source sequence that answers are from · answerable : (B,) for its
            AnswerabilityRule

        Returns
        -------
        Vectors (embedding), RowVectors (token_vectors), RowScores (token_classification), Answers (extractive_qa), or
        Scores of score.type: (B, C), (examples, candidates), pair_score (B,) for one output

        Raises
        ------
        ReadoutError
            Anything that the manifest does not admit.
        """
        tables = tuple(tables)
        for name, value, kind in (("examples", examples, "multiple_choice"), ("context", context, "extractive_qa")):
            require((value is not None) == (self.kind == kind), name, value, f"given exactly for {kind}")
        h, rows, attention = self._declared(tables, states)
        if not self.pooled:
            return self._kept(h, rows, attention, tables, context, answerable)
        vectors = self._vectors(h, rows, attention, tables, weights)
        if self.kind == "embedding":
            return Vectors(vectors, self.release, self._normalization is not None)
        if self.head.kind == "regression":
            self._admit(vectors.shape[:1], tables, prediction := self.head.forward(vectors), None)
            return self.head.values(prediction, self.release)
        if self.head.kind == "multiple_choice" and self.kind != "pair_score":
            logits = self.head.forward(vectors, examples)
            self._admit(logits.shape, tables, logits, None)
            return self._typed(logits, tuple(str(k) for k in range(logits.shape[1])))
        if self.head.kind == "multiple_choice":
            return self._typed(self.head.forward(vectors, range(len(vectors)))[:, 0], None)
        logits = self.head.forward(vectors)
        self._admit(logits.shape, tables, logits, None)
        return self._typed(logits, self.head.labels.names)

    def _admit(self, lead, tables, values, rows):
        """The head's own admission of what went in and came out."""
        if self.kind == "pair_score":
            return
        dimension = values.shape[-1] if self.kind != "regression" else len(self.head.targets.names)
        labels = getattr(self.head, "labels", getattr(self.head, "targets", None))
        output = HeadOutput(self.kind, dimension, None if labels is None else labels.names,
                            getattr(self.head, "thresholds", None), getattr(self.head, "max_answer_length", 0))
        length = len(tables[0]) if tables else 0
        ids = np.zeros((*lead, length) if self.kind == "multiple_choice" else (len(tables), length), np.int64)
        offsets = None if rows is None else np.array([t.offsets for t in tables]).reshape(*ids.shape, 2)
        shown = values[:, :dimension] if self.kind == "regression" else values
        validate_task_head(output, self.head.linear.outputs,
                           HeadBatch(ids, label_mask=rows, context_mask=rows, offsets=offsets, emitted=rows), shown)

    def _kept(self, h, rows, attention, tables, context, answerable):
        if self.kind == "token_vectors":
            require(rows.any(1).all(), "rows.selected", {"examples": np.flatnonzero(~rows.any(1)).tolist()},
                    "at least one row an example")
            starts = np.zeros(len(rows) + 1, np.int64)
            for b in range(len(rows)):
                starts[b + 1] = starts[b] + np.count_nonzero(rows[b])
            return RowVectors(self._projected(h[rows]), starts, np.nonzero(rows)[1], self.release,
                              self._normalization is not None)
        width = self.head.linear.inputs
        x = np.zeros((*rows.shape, width), np.float32)
        x[attention] = self._projected(h[attention])
        if self.kind == "extractive_qa":
            return self._answers(x, rows, attention, tables, context, answerable)
        pieces, emitted = self.manifest["rows.pieces"], np.zeros(rows.shape, np.bool_)
        for b, table in enumerate(tables):
            first = first_piece_mask(table) & rows[b]
            emitted[b] = first if pieces != "all" else rows[b] & table.content & (table.word_ids >= 0)
            if pieces == "aggregate":  # a word's row of scores stands at its first piece
                x[b, np.flatnonzero(first)] = pool_words(x[b], words_of_rows(table), "mean")
        logits = self.head.forward(x, emitted)
        self._admit(logits.shape[:1], tables, logits, emitted)
        return RowScores(self._typed(logits, self.head.labels.names), emitted, tables)

    def _answers(self, x, rows, attention, tables, context, answerable):
        inside = np.array([t.in_sequence(context) for t in tables], np.bool_).reshape(rows.shape) & rows
        logits = self.head.forward(x, attention)
        self._admit(logits.shape[:1], tables, logits, inside)
        null = getattr(self.head.no_answer, "row", None)
        for b in range(len(tables) if null is not None else 0):
            require(0 <= null < attention.shape[1] and attention[b, null], f"output.null.row of rows[{b}]", null,
                    "a row that the model sees")
        given = [None] * len(tables) if answerable is None else list(answerable)
        require(len(given) == len(tables), "answerable", len(given), f"{len(tables)} probabilities")
        answers = tuple(self.head.answer(z, m, p) for z, m, p in zip(logits, inside, given, strict=True))
        sources = tuple(None if a.rows is None else a.source(t) for a, t in zip(answers, tables, strict=True))
        return Answers(self._typed(logits, ("start", "end")), answers, sources)

    def _typed(self, logits, axis) -> Scores:
        """Logits as the declared type of score; a temperature divides them first, in binary64."""
        wanted = SCORE_TYPES[self.manifest["score.type"]]
        scores = Scores(logits, ScoreType.LOGIT, self.release, axis)
        temperature = self.manifest["score.temperature"]
        if temperature is not None:
            scores = scores.with_values(np.asarray(logits, np.float64) / float(temperature), ScoreType.LOGIT,
                                        f"/ {temperature!r}")
        if wanted is ScoreType.CALIBRATED_PROBABILITY:
            return self.calibrator(scores)
        made = {ScoreType.LOGIT: lambda s: s, ScoreType.SOFTMAX_PROBABILITY: softmax,
                ScoreType.SIGMOID_PROBABILITY: sigmoid}.get(wanted)
        if made is None:
            raise ReadoutError("score.type", self.manifest["score.type"], f"a type that {self.kind} gives")
        return made(scores)

    def score(self, queries: Vectors, documents: Vectors, document_ids: Sequence | None = None) -> Scores:
        """Scores (Q, N) of score.type between vectors of this release; vectors of another one are refused."""
        declared = self.manifest["score.type"]
        require(self.kind == "embedding", "output.kind", self.kind, "embedding: others give no vectors")
        for name, side in (("queries", queries), ("documents", documents)):
            require(isinstance(side, Vectors), name, type(side).__name__, "Vectors of a readout")
            require(side.release == self.release, f"{name}.release", side.release, self.release)
        if declared == "cosine" and queries.normalized:  # unit rows already: their dot is the cosine
            values, _ = PairScore("dot").forward(queries.values, documents.values)
            return Scores(values, ScoreType.COSINE, self.release, document_ids, normalized=True)
        values, _ = PairScore(PAIR_KINDS[declared]).forward(queries.values, documents.values)
        return Scores(values, SCORE_TYPES[declared], self.release, document_ids,
                      normalized=declared == "cosine" or queries.normalized)
