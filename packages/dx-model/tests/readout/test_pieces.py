"""Words that own several rows: the three policies, and back to words."""
import numpy as np
import pytest
from dx_model import readout
from dx_model.readout import heads

F32 = np.float32
# [CLS] play ##ing in rome [SEP]
PIECES = dict(attention=[1] * 6, special=[1, 0, 0, 0, 0, 1], sequence=[None, 0, 0, 0, 0, None],
              word_ids=[None, 0, 0, 1, 2, None], offsets=[None, (0, 4), (4, 7), (8, 10), (11, 15), None])


def of_labels(labels):
    """Probabilities 1 of these labels of three."""
    return readout.Scores(np.eye(3)[labels], readout.ScoreType.SOFTMAX_PROBABILITY, "r", ("a", "b", "c"))


def test_words_of_rows():
    words = readout.words_of_rows(readout.row_table(**PIECES))
    assert words.pieces.tolist() == [1, 2, 3, 4] and words.starts.tolist() == [0, 2, 3, 4]
    assert words.counts.tolist() == [2, 1, 1] and words.word_ids.tolist() == [0, 1, 2]


def test_first_piece_policy():
    """One loss term a word; -1 is how supervision is left out, the mapping stays."""
    targets, weights = readout.expand_labels(readout.row_table(**PIECES), [5, 0, 7], "first")
    assert targets.tolist() == [-1, 5, -1, 0, 7, -1] and weights.tolist() == [0, 1, 0, 1, 1, 0]
    words, p = heads.word_probabilities(readout.row_table(**PIECES), of_labels([0, 1, 2, 0, 2, 0]), "first")
    assert p.argmax(1).tolist() == [1, 0, 2]  # inference reads the first piece too


def test_all_pieces_policy():
    """Copied or scheme-adjusted labels; reweighted, a long word counts once."""
    table = readout.row_table(**PIECES)
    targets, weights = readout.expand_labels(table, [5, 0, 7], "all")
    assert targets.tolist() == [-1, 5, 5, 0, 7, -1] and weights.tolist() == [0, 0.5, 0.5, 1, 1, 0]
    adjusted, _ = readout.expand_labels(table, [5, 0, 7], "all", inside={5: 6, 7: 8})
    assert adjusted.tolist() == [-1, 5, 6, 0, 7, -1]
    assert readout.expand_labels(table, [5, -1, 7], "all")[0].tolist() == [-1, 5, 5, -1, 7, -1]
    _, voted = heads.word_probabilities(table, of_labels([0, 2, 1, 0, 2, 0]), "vote")
    assert voted.tolist() == [[0, 0.5, 0.5], [1, 0, 0], [0, 0, 1]]  # shares; the lowest label wins a draw


def test_aggregate_pieces_policy():
    """Rows of a word are pooled before the word head; there are no row targets."""
    table = readout.row_table(**PIECES)
    hidden = np.arange(12, dtype=F32).reshape(6, 2)
    words = readout.words_of_rows(table)
    vectors = readout.pool_words(hidden, words, "mean")
    assert vectors.tolist() == [[3, 4], [6, 7], [8, 9]]
    assert readout.pool_words(hidden, words, "max").tolist() == [[4, 5], [6, 7], [8, 9]]
    with pytest.raises(readout.ReadoutError, match="pieces.policy = 'aggregate'"):
        readout.expand_labels(table, [5, 0, 7], "aggregate")


def test_restarting_word_ids_of_a_pair_stay_two_words():
    table = readout.row_table([1] * 4, [0] * 4, [0, 0, 1, 1], [0, 0, 0, 1])
    assert readout.words_of_rows(table).counts.tolist() == [2, 1, 1]


def test_a_word_begins_anew_behind_a_row_that_is_left_out():
    """Three pieces of a word, the middle one left out by the policy: grouping and label mask say the same."""
    table = readout.row_table([1] * 3, [0] * 3, [0] * 3, [0] * 3, [(0, 1), (1, 2), (2, 3)], policy=[1, 0, 1])
    words, p = heads.word_probabilities(table, of_labels([1, 0, 2]), "first")
    assert words.counts.tolist() == [1, 1] and p.argmax(1).tolist() == [1, 2]
    assert readout.expand_labels(table, [5, 6])[0].tolist() == [5, -1, 6]


def test_wrong_arguments_are_named():
    table = readout.row_table(**PIECES)
    for call, field in ((lambda: readout.expand_labels(table, [1, 2]), "labels"),
                        (lambda: readout.expand_labels(table, [1., 2., 3.]), "labels"),
                        (lambda: readout.pool_words(np.ones((4, 2), F32), readout.words_of_rows(table), "mean"),
                         "hidden.shape")):
        with pytest.raises(readout.ReadoutError) as caught:
            call()
        assert caught.value.field == field
