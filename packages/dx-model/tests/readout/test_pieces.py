"""Words that own several rows: the three policies, reductions, and values that stay one value."""
import numpy as np
import pytest
from dx_model import readout

F32 = np.float32
# [CLS] play ##ing in rome [SEP]
PIECES = dict(attention=[1] * 6, special=[1, 0, 0, 0, 0, 1], sequence=[None, 0, 0, 0, 0, None],
              word_ids=[None, 0, 0, 1, 2, None], offsets=[None, (0, 4), (4, 7), (8, 10), (11, 15), None])


def test_words_of_rows():
    words = readout.words_of_rows(readout.row_table(**PIECES))
    assert words.pieces.tolist() == [1, 2, 3, 4] and words.starts.tolist() == [0, 2, 3, 4]
    assert words.counts.tolist() == [2, 1, 1] and words.word_ids.tolist() == [0, 1, 2]


def test_first_piece_policy():
    """One loss term a word; -1 is how supervision is left out, the mapping stays."""
    targets, weights = readout.expand_labels(readout.row_table(**PIECES), [5, 0, 7], "first")
    assert targets.tolist() == [-1, 5, -1, 0, 7, -1] and weights.tolist() == [0, 1, 0, 1, 1, 0]
    labels = readout.reduce_pieces(readout.row_table(**PIECES), [0, 5, 9, 0, 7, 0], np.ones(6) * 0.5)
    assert [w.label for w in labels] == [5, 0, 7]  # inference reads the first piece too


def test_all_pieces_policy():
    """Copied or scheme-adjusted labels; reweighted, a long word counts once."""
    table = readout.row_table(**PIECES)
    targets, weights = readout.expand_labels(table, [5, 0, 7], "all")
    assert targets.tolist() == [-1, 5, 5, 0, 7, -1] and weights.tolist() == [0, 0.5, 0.5, 1, 1, 0]
    adjusted, _ = readout.expand_labels(table, [5, 0, 7], "all", inside={5: 6, 7: 8})
    assert adjusted.tolist() == [-1, 5, 6, 0, 7, -1]
    assert readout.expand_labels(table, [5, -1, 7], "all")[0].tolist() == [-1, 5, 5, -1, 7, -1]
    voted = readout.reduce_pieces(table, [0, 5, 7, 0, 7, 0], [1, .4, .9, .8, .7, 1], "vote")
    assert [(w.label, w.score) for w in voted] == [(5, 0.4), (0, 0.8), (7, 0.7)]  # a draw: the label that stands first


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


def test_rea_20_an_amount_in_four_pieces_is_one_value():
    """Case rea-20: '7.318,26' as '7.' '31' '8,2' '6', all predicted B-TOTAL: one value; the score rule is stated."""
    text = "TOTAL 7.318,26"
    table = readout.row_table([1] * 5, [0] * 5, [0] * 5, [0, 1, 1, 1, 1],
                              [(0, 5), (6, 8), (8, 10), (10, 13), (13, 14)])
    labels, scores = [0, 1, 1, 1, 1], [.9, .99, .98, .97, .96]
    for how, want in (("first", .99), ("vote", .96)):
        words = readout.reduce_pieces(table, labels, scores, how)
        spans = readout.word_spans(words, begin={1: "TOTAL"}, inside={2: "TOTAL"})
        assert [(kind, text[a:b], score) for kind, _, a, b, score in spans] == [("TOTAL", "7.318,26", want)]


def test_rea_23_a_value_is_characters_of_the_source():
    """Case rea-23: pieces of a tokenizer that marks words, not word parts: grouping reads word ids, not markers."""
    text = "Rue de l'Église"
    table = readout.row_table([1] * 5, [0] * 5, [0] * 5, [0, 1, 2, 2, 2], [(0, 3), (4, 6), (7, 8), (8, 9), (9, 15)])
    words = readout.reduce_pieces(table, [1, 2, 2, 2, 2], [1.0] * 5)
    spans = readout.word_spans(words, begin={1: "ADDRESS"}, inside={2: "ADDRESS"})
    assert [(kind, text[a:b]) for kind, _, a, b, _ in spans] == [("ADDRESS", text)]


def test_runs_end_at_other_classes_sequences_and_words_without_label():
    def word(label, sequence, at, score=1.0):
        return readout.WordLabel(sequence, at, label, score, 10 * at, 10 * at + 5)
    begin, inside = {1: "a", 3: "b"}, {2: "a", 4: "b"}
    words = [word(1, 0, 0, .5), word(2, 0, 1, .25), word(1, 0, 2), word(4, 0, 3), word(4, 0, 4), word(0, 0, 5),
             word(4, 0, 6), word(4, 1, 7)]
    assert readout.word_spans(words, begin, inside) == [
        ("a", 0, 0, 15, .25), ("a", 0, 20, 25, 1), ("b", 0, 30, 45, 1), ("b", 0, 60, 65, 1), ("b", 1, 70, 75, 1)]


def test_wrong_arguments_are_named():
    table = readout.row_table(**PIECES)
    for call, field in ((lambda: readout.expand_labels(table, [1, 2]), "labels"),
                        (lambda: readout.expand_labels(table, [1., 2., 3.]), "labels"),
                        (lambda: readout.reduce_pieces(table, [0] * 5, [0] * 6), "labels"),
                        (lambda: readout.reduce_pieces(table, [0] * 6, [0] * 6, "mean"), "pieces.reduction"),
                        (lambda: readout.pool_words(np.ones((4, 2), F32), readout.words_of_rows(table), "mean"),
                         "hidden.shape")):
        with pytest.raises(readout.ReadoutError) as caught:
            call()
        assert caught.value.field == field
    no_offsets = readout.row_table(**{**PIECES, "offsets": None})
    words = readout.reduce_pieces(no_offsets, [1] * 6, [1.0] * 6)
    with pytest.raises(readout.ReadoutError, match="offsets"):
        readout.word_spans(words, {1: "a"}, {})
