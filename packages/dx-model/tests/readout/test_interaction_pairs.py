"""Cross-encoders: the pair grammar, who gives way, score types, and results in their own places."""
import numpy as np
import pytest
from dx_model.readout import CrossEncoder, PairTemplate, ReadoutError, Scores, ScoreType, activate
from late_case import TEMPLATE, cross

F = np.float32


def test_the_pair_grammar():
    table = TEMPLATE.render([7, 8], [9]).table
    assert table.ids.tolist() == [1, 7, 8, 2, 9, 2] and table.special.tolist() == [1, 0, 0, 1, 0, 1]
    assert table.sequence.tolist() == [-1, 0, 0, -1, 1, -1] and table.type_ids.tolist() == [0, 0, 0, 0, 1, 1]


@pytest.mark.parametrize("truncation, query, document, kept", [
    ("only_second", 4, 9, (4, 5)), ("only_first", 8, 4, (5, 4)), ("longest_first", 3, 20, (3, 6)),
    ("longest_first", 20, 3, (6, 3)), ("longest_first", 8, 8, (5, 4)), ("longest_first", 6, 5, (5, 4)),
    ("only_second", 2, 3, (2, 3))])
def test_who_gives_way(truncation, query, document, kept):
    pair = PairTemplate(1, 2, 12, truncation).render(list(range(10, 10 + query)), list(range(40, 40 + document)))
    rows = pair.table.in_sequence(0).sum(), pair.table.in_sequence(1).sum()
    assert rows == kept and (pair.query_left_out, pair.document_left_out) == (query - kept[0], document - kept[1])
    assert pair.table.ids[pair.table.in_sequence(1)].tolist() == list(range(40, 40 + kept[1]))


def test_what_does_not_fit_is_refused():
    for template, query, document, field in ((PairTemplate(1, 2, 12, "refuse"), 5, 5, "pair.length"),
                                             (TEMPLATE, 9, 3, "pair.document"), (TEMPLATE, 0, 3, "pair.query"),
                                             (TEMPLATE, 3, 0, "pair.document"),
                                             (PairTemplate(1, 2, 12, "only_first"), 3, 9, "pair.query")):
        with pytest.raises(ReadoutError) as caught:
            template.render([5] * query, [6] * document)
        assert caught.value.field == field


def test_windows_cover_a_long_document():
    template = PairTemplate(1, 2, 12, long_documents="windows", overlap=2)
    pairs = template.windows([7, 8, 9], list(range(20, 35)))
    seen = [pair.table.ids[pair.table.in_sequence(1)].tolist() for pair in pairs]
    assert seen == [[20, 21, 22, 23, 24, 25], [24, 25, 26, 27, 28, 29], [28, 29, 30, 31, 32, 33], [32, 33, 34]]
    with pytest.raises(ReadoutError, match="template.overlap"):
        PairTemplate(1, 2, 12, long_documents="windows", overlap=6).windows([7, 8, 9], list(range(15)))


def largest_id(table):
    """A stand-in for encoder and head: its output depends on both sides together."""
    return [float(table.ids[table.in_sequence(1)].max() - table.ids[table.in_sequence(0)].max())]


def test_scores_come_back_in_their_own_places():
    """Pairs run longest first; a result stands where its id does, whatever the order of work was."""
    order = []

    def score(table):
        order.append(len(table))
        return largest_id(table)
    documents = {"a": [11], "b": [12, 11, 12], "c": [10, 13], "d": [14, 10, 10, 10]}
    encoder = CrossEncoder(score, TEMPLATE, cross(activation="identity", score_type="logits"))
    got = encoder.score_pairs([10], list(documents.values()), list(documents))
    assert order == [8, 7, 6, 5]  # sorted by length: without the inverse permutation "a" would get the score of "d"
    assert dict(zip(got.ids, got.scores.values.tolist())) == {"a": 1, "b": 2, "c": 3, "d": 4}
    again = encoder.score_pairs([10], list(documents.values())[::-1], list(documents)[::-1])
    assert again.scores.values.tolist() == got.scores.values.tolist()[::-1]
    with pytest.raises(ReadoutError, match="ids"):
        encoder.score_pairs([10], [[1], [2]], ["a", "a"])


def test_the_score_of_a_long_document_is_its_best_window():
    template = PairTemplate(1, 2, 7, long_documents="windows", overlap=1)
    release = cross(template, activation="identity", score_type="logits")
    document = [20, 50, 21, 22, 90, 23, 24]
    assert CrossEncoder(largest_id, template, release).score_pairs([10], [document], ["a"]).scores.values == [80]
    cut = PairTemplate(1, 2, 7)
    release = cross(cut, activation="identity", score_type="logits")
    assert CrossEncoder(largest_id, cut, release).score_pairs([10], [document], ["a"]).scores.values == [40]


def test_rea_05_the_kind_of_score_is_part_of_the_release_and_of_every_result():
    raw = np.array([-4.8, 0.0, 8.15], F)
    results = {}
    for activation, kind in (("identity", "logits"), ("sigmoid", "sigmoid_probabilities")):
        release = cross(activation=activation, score_type=kind)
        encoder = CrossEncoder(lambda table: [raw[table.ids[3]]], TEMPLATE, release)
        results[activation] = encoder.score_pairs([5], [[0], [1], [2]], "abc").scores
        assert results[activation].type.value == kind
    assert np.array_equal(results["identity"].values, raw)
    assert np.abs(results["sigmoid"].values - [0.00816, 0.5, 0.99971]).max() < 5e-6
    order = np.argsort(results["identity"].values)
    assert np.array_equal(order, np.argsort(results["sigmoid"].values))  # the activation keeps the ranking
    with pytest.raises(ReadoutError, match="interaction.activation"):
        cross(activation="default").admit()


def test_rea_07_no_activation_hides_between_logits_and_softmax():
    """A softmax takes logits alone: sigmoid before it (at scale 10 another distribution) is refused by the types."""
    logits = Scores(np.array([[6, 1, -3]], F), ScoreType.LOGIT, "r", ("a", "b", "c"))
    plain = activate(logits, "softmax").values
    assert np.abs(plain - [[0.9931854, 0.0066920, 0.0001226]]).max() < 1e-6
    squashed = np.exp(10 * activate(logits, "sigmoid").values)
    assert np.abs(squashed / squashed.sum() - [[0.934845, 0.065085, 0.0000699]]).max() < 2e-6
    with pytest.raises(ReadoutError, match="scores.type"):
        activate(activate(logits, "sigmoid"), "softmax")
    with pytest.raises(ReadoutError, match="head.activation"):
        activate(logits, None)


def test_a_sigmoid_probability_is_not_taken_for_a_logit():
    with pytest.raises(ReadoutError, match="interaction.score_type"):
        CrossEncoder(largest_id, TEMPLATE, cross(score_type="logits"))


def test_template_and_release_belong_together():
    other = PairTemplate(1, 2, 13)
    with pytest.raises(ReadoutError, match="interaction.pair_template_hash"):
        CrossEncoder(largest_id, other, cross())


def test_several_outputs_a_pair():
    release = cross(activation="softmax", score_type="softmax_probabilities")
    got = CrossEncoder(lambda table: [1.0, 1.0], TEMPLATE, release, ["no", "yes"]).score_pairs([5], [[6], [7]], "ab")
    assert np.array_equal(got.scores.values, np.full((2, 2), 0.5)) and got.scores.axis == ("no", "yes")
    with pytest.raises(ReadoutError, match="scores.axis"):  # a softmax of one output is always 1
        CrossEncoder(largest_id, TEMPLATE, release).score_pairs([5], [[6]], ["a"])
    with pytest.raises(ReadoutError, match="head.outputs"):
        CrossEncoder(largest_id, TEMPLATE, release, ["no", "yes"]).score_pairs([5], [[6]], ["a"])
