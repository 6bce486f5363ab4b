"""Readouts of published representation families: which rows they select, and the record that names the family.

A family is more than its pool: visibility, rendering, rows, stages of training and exported state go together. The rows
are selected here; `admit_family` refuses records in which a part was exchanged for another of the same shape.
"""
import numpy as np

from .errors import ReadoutError, require
from .rows import NONE, RowTable, boundary_index
from .spans import rows_overlapping_span


def end_row(table: RowTable, end_id: int) -> int:
    """Physical row of the declared end token (E5): the last visible row, which must hold it.

    Not the last column and not sum(mask) - 1. A last row of another id means that the end token was never appended or
    was truncated away: refused.
    """
    require(table.ids is not None, "rows.ids", None, "token ids: the end row is found by its id")
    row = boundary_index(table.attention, "last")
    require(table.ids[row] == end_id, f"rows.ids[{row}]", int(table.ids[row]), f"{end_id}, the end token")
    return row


def prompt_end_row(table: RowTable, prompt_ids) -> int:
    """Physical row of the last prompt token (PromptEOL): the last visible row, when the visible rows end in the prompt.

    prompt_ids : the prompt's token ids, part of the representation's state: its bytes and their tokens select the row
    """
    require(table.ids is not None, "rows.ids", None, "token ids: the prompt's row is found by its tokens")
    prompt = np.asarray(prompt_ids)
    require(prompt.ndim == 1 and len(prompt) > 0, "prompt_ids", prompt_ids, "at least one token")
    visible = np.flatnonzero(table.attention)
    tail = table.ids[visible[-len(prompt):]]
    require(np.array_equal(tail, prompt), "rows.ids", tail.tolist(), f"the prompt's tokens {prompt.tolist()} last")
    return int(visible[-1])


def rows_mask(rows, length: int) -> np.ndarray:
    """(B, S) bool with one selected row an example, for Pooling: rows[b] of length."""
    mask = np.zeros((len(rows), length), np.bool_)
    mask[np.arange(len(rows)), rows] = True
    return mask


def render_echo(text: str, prefix: str = "", separator: str = " "):
    """(prefix + text + separator + text, (begin, end) of the first copy, of the second), in characters."""
    require(text != "", "text", text, "at least one character")
    first = len(prefix), len(prefix) + len(text)
    second = first[1] + len(separator), first[1] + len(separator) + len(text)
    return prefix + text + separator + text, first, second


def echo_mask(table: RowTable, first, second, sequence: int = 0) -> np.ndarray:
    """(S,) bool: the content rows of the second copy (Echo), the only ones that saw the whole source.

    Parameters
    ----------
    first, second : spans of render_echo, equally long

    Raises
    ------
    ReadoutError
        No offsets; a row of the second copy reaches into the first, or beyond the end; the copy is truncated: its rows
        do not reach its end, or it has no rows. Then the rows the pool may read are gone, and pooling the first copy is
        another method.
    """
    require(first[1] - first[0] == second[1] - second[0] and first[1] <= second[0], "echo.spans", (first, second),
            "two copies of one length, one after the other")
    rows = rows_overlapping_span(table, sequence, *second)
    mask = np.zeros(len(table), np.bool_)
    mask[rows] = True
    mask &= table.content
    selected = np.flatnonzero(mask)
    require(len(selected) > 0, "echo.second", second, "rows of the second copy: they were truncated or left out")
    require(len(selected) == len(rows), "echo.second", np.setdiff1d(rows, selected).tolist(),
            "visible content rows only")
    begin, end = int(table.offsets[selected, 0].min()), int(table.offsets[selected, 1].max())
    require(end >= second[1], "echo.second", (begin, end), f"rows up to character {second[1]}: the copy is truncated")
    require(begin >= first[1] and end == second[1], "echo.second", (begin, end), f"rows within {tuple(second)}")
    return mask


def echo_span_map(table: RowTable, first, second, sequence: int = 0) -> list[tuple[int, int]]:
    """(row of the first copy, row of the second) for rows of equal characters of the source."""
    def rows(span):
        found = rows_overlapping_span(table, sequence, *span)
        return {tuple((table.offsets[r] - span[0]).tolist()): int(r) for r in found}
    early, late = rows(first), rows(second)
    return [(early[characters], row) for characters, row in late.items() if characters in early]


class SideTemplates:
    """Templates of the two sides of an asymmetric family; "{text}" stands for the source.

    A rendered text carries its side, and vectors stored for one side are refused for the other: they would have left
    the space the other side was trained for.
    """

    def __init__(self, query: str, document: str, end: str = ""):
        for name, template in (("query", query), ("document", document)):
            require(template.count("{text}") == 1, f"input.template.{name}", template, "{text} once")
        self.query, self.document, self.end = query, document, end

    def render(self, side: str, text: str) -> str:
        """The rendered text of a side, the end token's text appended to both."""
        require(side in ("query", "document"), "side", side, "query or document")
        return getattr(self, side).replace("{text}", text) + self.end

    def admit(self, side: str, template: str) -> None:
        """Refuses stored vectors whose template is not that of their side."""
        require(side in ("query", "document"), "side", side, "query or document")
        require(template == getattr(self, side), f"input.template.{side}", template,
                f"{getattr(self, side)!r}: vectors of another template are encoded again")


def router_vector(weights, layers) -> np.ndarray:
    """(layers * experts,) float32: router weights of the selected row, layer by layer ascending, experts in order.

    Parameters
    ----------
    weights : one float32 array (experts,) a layer, as the router gave them; layers : their numbers, ascending
    """
    require(len(weights) == len(layers) > 0, "moee.layers", list(layers), f"{len(weights)} layer numbers")
    require(list(layers) == sorted(set(layers)), "moee.layers", list(layers), "ascending numbers: order is identity")
    for k, w in zip(layers, weights, strict=True):
        require(w.dtype == np.float32 and w.ndim == 1, f"moee.weights[{k}]", f"{w.dtype.name} {w.shape}",
                "float32 (experts,)")
    return np.concatenate(weights)


def moee_concatenation(hidden, router) -> np.ndarray:
    """(B, D + R) float32: [e_HS ; e_RW], one wider vector in one space."""
    for name, array in (("hidden", hidden), ("router", router)):
        require(array.dtype == np.float32 and array.ndim == 2 and len(array) == len(hidden), name,
                f"{array.dtype.name} {array.shape}", f"float32 ({len(hidden)}, width)")
    return np.concatenate([hidden, router], axis=1)


class FusedScores:
    """s = s_HS + alpha * s_RW: two typed scores of two spaces and their coefficient, kept apart.

    Attributes
    ----------
    scores : float32, one product and one sum an element
    hidden, router, alpha : the parts; kind : score type of both ("cosine", "dot")
    """

    def __init__(self, hidden, router, alpha: float, kind: str):
        require(kind in ("cosine", "dot"), "score.type", kind, "cosine or dot")
        require(isinstance(alpha, float | int) and alpha - alpha == 0, "moee.alpha", alpha, "a finite number")
        for name, array in (("hidden", hidden), ("router", router)):
            require(array.dtype == np.float32 and array.shape == hidden.shape, f"moee.{name}",
                    f"{array.dtype.name} {array.shape}", f"float32 {hidden.shape}")
        self.hidden, self.router, self.alpha, self.kind = hidden, router, alpha, kind
        self.scores = hidden + np.float32(alpha) * router

    def as_vector(self):
        """Refused: an index of concatenated vectors loses one score, the other and the coefficient."""
        raise ReadoutError("moee.export", "one vector", "two vectors and alpha: scores are fused, vectors are not")


def content_mask(tables) -> np.ndarray:
    """(B, S) bool content rows of a batch of tables of one length."""
    return np.stack([t.content for t in tables])


def sequence_row_mask(tables) -> np.ndarray:
    """(B, S) bool: the first visible row of each table, which must be an inserted one without a source."""
    rows = [boundary_index(t.attention, "first") for t in tables]
    for b, (table, row) in enumerate(zip(tables, rows, strict=True)):
        require(table.special[row] and table.sequence[row] == NONE, f"rows[{b}].special[{row}]", False,
                "an inserted sequence row")
    return rows_mask(rows, len(tables[0]))
