"""Substitutions that keep every shape and change the method, shown on the small causal encoder."""
import numpy as np
import pytest
from dx_model.causal import CausalConfig, CausalEncoder, initial_tensors
from dx_model.readout import Pooling, ReadoutError, boundary_index, first_piece_mask, load_vectors, row_table
from late_case import bi

F = np.float32
CONFIG = CausalConfig(vocabulary=40, positions=32, hidden=16, heads=2, inner=24, blocks=2)
ENCODER = CausalEncoder(CONFIG, initial_tensors(CONFIG.tensors(), 6))
END, PAD = 39, 0


def padded(rows, left, right):
    """(rows with padding of other numbers around them, attention)."""
    noise = lambda n: np.full((n, rows.shape[1]), 7, F)  # noqa: E731
    attention = np.array([0] * left + [1] * len(rows) + [0] * right, bool)
    return np.concatenate([noise(left), rows, noise(right)]), attention


def test_the_last_column_is_not_the_end_row():
    """The declared row is found by its mask; sum(mask) - 1 and the last column hold its row under one padding only."""
    rows = ENCODER.forward([5, 9, 3, END])
    end = rows[3]
    found, by_count, last_column = [], [], []
    for left, right in ((0, 0), (0, 3), (4, 0), (2, 2)):
        hidden, attention = padded(rows, left, right)
        found.append(np.array_equal(hidden[boundary_index(attention, "last")], end))
        by_count.append(np.array_equal(hidden[attention.sum() - 1], end))
        last_column.append(np.array_equal(hidden[-1], end))
    assert found == [True] * 4 and by_count == [True, True, False, False] and last_column == [True, False, True, False]
    pooled = [Pooling("last").forward(*(a[None] for a in padded(rows, left, 3))).vectors[0] for left in (0, 4)]
    assert all(p.tobytes() == end.tobytes() for p in pooled)


def test_the_end_row_has_seen_everything_and_the_first_has_not():
    """Why the end row is read: changing the last content token moves it, and moves no earlier row."""
    one, other = ENCODER.forward([5, 9, 3, END]), ENCODER.forward([5, 9, 4, END])
    assert np.array_equal(one[:2], other[:2]) and not np.array_equal(one[3], other[3])


def test_pooling_both_copies_brings_incomplete_rows_back():
    """Text twice under a causal encoder: rows of the second copy have seen all of the text, rows of the first have not.
    The second copy's span is found by its sequence, and cutting it off leaves nothing to pool."""
    text, prompt, separator = [5, 9, 3], [30, 31], [32]
    tokens = [*prompt, *text, *separator, *text]
    rows = ENCODER.forward(tokens)
    sequence = [None, None, 0, 0, 0, None, 1, 1, 1]
    table = row_table([1] * 9, [1, 1, 0, 0, 0, 1, 0, 0, 0], sequence, ids=tokens)
    echo, both = table.content & table.in_sequence(1), table.content
    changed = ENCODER.forward([*prompt, 5, 9, 4, *separator, 5, 9, 4])

    def moved(mask):  # which pooled rows know that the last word of the text changed
        return [not np.array_equal(rows[s], changed[s]) for s in np.flatnonzero(mask)]
    assert all(moved(echo)) and not all(moved(both))
    pool = Pooling("mean")
    assert not np.array_equal(*(pool.forward(rows[None], mask[None]).vectors for mask in (echo, both)))
    cut = row_table([1] * 6, [1, 1, 0, 0, 0, 1], sequence[:6], ids=tokens[:6])
    with pytest.raises(ReadoutError):
        pool.forward(rows[None, :6], (cut.content & cut.in_sequence(1))[None])
    assert first_piece_mask(table).sum() == 0  # a copy has no words of its own


def test_one_route_of_a_duplex_vector_is_another_release(tmp_path):
    """Sentence row and ordinary rows are one vector: its width is that of both routes, and vectors of one route alone
    are neither admitted under its release nor loaded by it."""
    rows = ENCODER.forward([1, 5, 9, 3])
    content = np.array([[False, True, True, True]])
    sentence = np.array([[True, False, False, False]])
    routes = Pooling("first").forward(rows[None], sentence).vectors, Pooling("max").forward(rows[None], content).vectors
    duplex = np.concatenate(routes, axis=1)[0]
    both = bi(query_release="duplex", document_release="duplex", query_vector_dimension=32,
              document_vector_dimension=32)
    alone = bi(query_release="sentence", document_release="sentence", query_vector_dimension=16,
               document_vector_dimension=16)
    from dx_model.readout import BiEncoder
    encode = lambda text: duplex  # noqa: E731
    BiEncoder(encode, encode, both).encode("document", ["d"], ["text"]).save(tmp_path / "both.safetensors")
    one_route = lambda text: routes[0][0]  # noqa: E731
    with pytest.raises(ReadoutError, match=r"vectors\['d'\].shape"):
        BiEncoder(one_route, one_route, both).encode("document", ["d"], ["text"])
    BiEncoder(one_route, one_route, alone).encode("document", ["d"], ["text"]).save(tmp_path / "one.safetensors")
    for file, release in (("one", both), ("both", alone)):
        with pytest.raises(ReadoutError, match="vectors.release"):
            load_vectors(tmp_path / f"{file}.safetensors", release)
