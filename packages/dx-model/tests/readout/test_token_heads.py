"""Heads that keep the row axis: token labels, CRF, tag schemes, words and entities of the source."""
from itertools import product

import numpy as np
import pytest
from dx_model import readout
from dx_model.readout import heads
from slopes import check_slopes
from test_heads import normal, refused

f32 = np.float32
BIO = heads.TagScheme("BIO", heads.LabelMap(("O", "B-PER", "I-PER", "B-TOTAL", "I-TOTAL")))
BILOU = heads.TagScheme("BILOU", heads.LabelMap(("O", "B-X", "I-X", "L-X", "U-X")))
TOKENS = heads.LabelMap(("O", "B-PER", "I-PER"))


def token_head(rng, width=4, **settings):
    return heads.TokenHead(TOKENS, normal(rng, 3, width), normal(rng, 3), **settings)


def test_token_labels(rng):
    """Logits (B, S, C), loss over label-bearing rows alone, merge by offsets with constrained decoding."""
    head, hidden = token_head(rng), normal(rng, 2, 5, 4)
    valid = np.array([[1, 1, 1, 1, 0], [0, 1, 1, 1, 1]], bool)
    bears = np.array([[0, 1, 0, 1, 0], [0, 0, 1, 1, 0]], bool)  # first pieces of words
    y = np.where(bears, rng.integers(0, 3, (2, 5)), -1)
    logits = head.forward(hidden, valid)
    assert logits.shape == (2, 5, 3) and not logits[~valid].any()
    loss = head.loss(logits, y, bears)
    z = logits[bears].astype(np.float64)
    log_p = z - np.log(np.exp(z).sum(1, keepdims=True))
    assert loss.denominator == 4 and abs(loss.numerator + log_p[np.arange(4), y[bears]].sum()) < 1e-6
    dhidden, gradients = head.backward(logits, y, bears, hidden)
    assert not dhidden[~bears].any()  # padding, inserted rows, ignored pieces: exactly zero
    check_slopes(lambda: head.loss(head.forward(hidden, valid), y, bears).value,
                 [hidden, *head.parameters().values()], [dhidden, gradients["weight"], gradients["bias"]])
    scheme = heads.TagScheme("BIO", TOKENS)
    table = readout.row_table([1] * 4 + [0], [1, 0, 0, 0, 1], [None, 0, 0, 0, None], [None, 0, 0, 1, None],
                              [None, (0, 3), (3, 5), (6, 9), None])
    scores = readout.softmax(heads.TokenHead(TOKENS, np.eye(3, dtype=f32), np.zeros(3, f32)).scores(
        np.array([[9, 0, 0], [0, 9, 0], [9, 0, 0], [0, 0, 9], [0, 0, 0]], f32), "r"))
    (found,) = heads.source_entities(table, scores, scheme)
    assert (found.kind, found.start, found.end, found.words) == ("PER", 0, 9, (0, 1))
    assert found.text("Mario Rex") == "Mario Rex"


def test_padding_changes_no_bit(rng):
    """Left, right, any padding, and whatever stands in it: same loss, same gradients, same bytes."""
    head, rows, y = token_head(rng, width=20), normal(rng, 7, 20), np.array([0, 1, 2, 2, 0, 1, 2])
    found = []
    for before, after in ((0, 0), (5, 0), (0, 3), (2, 9)):
        hidden = np.full((1, before + 7 + after, 20), np.nan, f32)
        hidden[0, before:before + 7] = rows
        valid = np.isfinite(hidden[..., 0])
        targets = np.where(valid, -1, -1)
        targets[0, before:before + 7] = y
        logits = head.forward(hidden, valid)
        dhidden, gradients = head.backward(logits, targets, valid, hidden)
        found.append((logits[valid].tobytes(), head.loss(logits, targets, valid), dhidden[valid].tobytes(),
                      gradients["weight"].tobytes(), gradients["bias"].tobytes()))
    assert all(x == found[0] for x in found)


def test_a_mask_that_disagrees_with_the_targets_is_refused(rng):
    head, logits = token_head(rng), normal(rng, 1, 3, 3)
    bears = np.array([[True, False, True]])
    refused("targets[0, 2]", head.loss, logits, [[0, -1, -1]], bears)
    refused("targets[0, 1]", head.loss, logits, [[0, 1, 2]], bears)
    refused("label_mask.shape", head.loss, logits, [[0, -1, 1]], bears[:, :2])
    refused("label_mask.dtype", head.loss, logits, [[0, -1, 1]], bears.astype(int))
    refused("targets.dtype", head.loss, logits, [[0.0, -1.0, 1.0]], bears)
    nothing = head.loss(logits, [[-1, -1, -1]], np.zeros((1, 3), bool))
    assert nothing == heads.LocalLoss(0.0, 0.0)


def crf_head(rng, scheme=None, labels=TOKENS, width=3):
    n = len(labels)
    return heads.CrfHead(labels, normal(rng, n, width), normal(rng, n), normal(rng, n, n), normal(rng, n),
                         normal(rng, n), scheme)


@pytest.mark.parametrize("constrained", [False, True])
def test_crf_against_every_tagging(rng, constrained):
    scheme = heads.TagScheme("BIO", TOKENS) if constrained else None
    head, hidden = crf_head(rng, scheme), normal(rng, 2, 5, 3)
    chain = np.array([[1, 0, 1, 1, 0], [0, 1, 0, 0, 1]], bool)
    emissions, begin = head.forward(hidden, chain)
    assert begin.tolist() == [0, 3, 5]
    y = np.array([1, 2, 0, 0, 1], np.int32)
    best, scores = head.decode(emissions, begin)
    p, total = head.marginals(emissions, begin, "r"), 0.0
    for s, (b, e) in enumerate(zip(begin[:-1], begin[1:])):
        every = {}
        for tags in product(range(3), repeat=int(e - b)):
            if scheme and any(not scheme.follows(a and TOKENS.names[a[0]], TOKENS.names[t])
                              for a, t in zip([None, *[(t,) for t in tags]], tags)):
                continue
            score = head.first[tags[0]] + head.last[tags[-1]] + sum(emissions[b + i, t] for i, t in enumerate(tags))
            every[tags] = float(score + sum(head.transitions[i, j] for i, j in zip(tags, tags[1:])))
        log_z = np.log(sum(np.exp(v) for v in every.values()))
        total += log_z - every[tuple(y[b:e])]
        top = max(every, key=every.get)
        assert tuple(best[b:e]) == top and abs(scores[s] - every[top]) < 1e-5
        for t in range(3):
            exact = sum(np.exp(v - log_z) for tags, v in every.items() if tags[0] == t)
            assert abs(p.values[b, t] - exact) < 1e-5
    loss = head.loss(emissions, begin, y)
    assert abs(loss.numerator - total) < 1e-5 and loss.denominator == 2
    dhidden, gradients = head.backward(emissions, begin, y, hidden, chain)
    check_slopes(lambda: head.loss(*head.forward(hidden, chain), y).value, [hidden, *head.parameters().values()],
                 [dhidden, *(gradients[name] for name in head.parameters())])


def test_crf_is_not_a_softmax_per_row_nor_a_rule_at_inference(rng):
    """Three designs with three losses: independent rows, learned transitions, legality imposed when decoding."""
    head, hidden, chain = crf_head(rng), normal(rng, 1, 4, 3), np.ones((1, 4), bool)
    emissions, begin = head.forward(hidden, chain)
    y = np.array([1, 2, 0, 0], np.int32)
    rows = heads.TokenHead(TOKENS, *list(head.parameters().values())[:2])
    independent = rows.loss(rows.forward(hidden, chain), y[None], chain).numerator
    constrained = heads.CrfHead(TOKENS, *head.parameters().values(), heads.TagScheme("BIO", TOKENS))
    losses = [independent, head.loss(emissions, begin, y).numerator, constrained.loss(emissions, begin, y).numerator]
    assert len(set(losses)) == 3 and losses[2] < losses[1]  # fewer taggings compete
    refused("tags[1]", constrained.loss, emissions, begin, np.array([0, 2, 0, 0], np.int32))
    assert head.loss(emissions, begin, np.array([0, 2, 0, 0], np.int32)).numerator > 0


def test_crf_labels_move_with_their_transitions(rng):
    head, hidden, chain = crf_head(rng, heads.TagScheme("BIO", TOKENS)), normal(rng, 1, 6, 3), np.ones((1, 6), bool)
    order = heads.LabelMap(("I-PER", "O", "B-PER"))
    moved = head.with_labels(order)
    best, score = head.decode(*head.forward(hidden, chain))
    again, score_again = moved.decode(*moved.forward(hidden, chain))
    assert [TOKENS.names[t] for t in best] == [order.names[t] for t in again] and abs(score - score_again) < 1e-5
    refused("output.labels[0]", heads.CrfHead, order, *head.parameters().values(), heads.TagScheme("BIO", TOKENS))


def legal(scheme, tags):
    """The schemes' definitions in words, apart from TagScheme.follows."""
    names = [scheme.labels.names[t] for t in tags]
    for i, name in enumerate(names):
        before, after = names[i - 1] if i else "O", names[i + 1] if i + 1 < len(names) else "O"
        if scheme.scheme == "BIO":
            if name[0] == "I" and (before == "O" or before[2:] != name[2:]):
                return False
        else:
            if name[0] in "IL" and before not in ("B" + name[1:], "I" + name[1:]):
                return False
            if name[0] in "BI" and name != "O" and after not in ("I" + name[1:], "L" + name[1:]):
                return False
    return True


@pytest.mark.parametrize("scheme", [BIO, BILOU], ids=["BIO", "BILOU"])
def test_constrained_decoding_is_the_best_legal_tagging(rng, scheme):
    for n in (1, 2, 4):
        emissions = normal(rng, n, 5)
        best, score = scheme.decode(emissions)
        every = {tags: sum(float(emissions[t, j]) for t, j in enumerate(tags))
                 for tags in product(range(5), repeat=n) if legal(scheme, tags)}
        top = max(every, key=every.get)
        assert tuple(best) == top and abs(score - every[top]) < 1e-6
        scheme.check(best.tolist())
    illegal = [t for t in product(range(5), repeat=3) if not legal(scheme, t)]
    for tags in illegal:
        with pytest.raises(readout.ReadoutError, match="a tag that may follow"):
            scheme.check(tags)
    assert len(illegal) > 40


def test_entities_and_tags_are_inverse():
    for scheme, kinds in ((BIO, ("PER", "TOTAL")), (BILOU, ("X", "X"))):
        entities = [(kinds[0], 0, 2), (kinds[1], 3, 3), (kinds[0], 5, 6)]
        tags = scheme.tags(entities, 8)
        assert scheme.entities(tags.tolist()) == entities
    tags = BILOU.tags([("X", 0, 2), ("X", 3, 3)], 5)
    assert [BILOU.labels.names[t] for t in tags] == ["B-X", "I-X", "L-X", "U-X", "O"]
    refused("entities", BIO.tags, [("PER", 0, 2), ("PER", 2, 3)], 4)
    refused("tags[0]", BIO.entities, ["I-PER"])
    refused("tags[2]", BILOU.entities, ["B-X", "I-X"])
    refused("output.labels", heads.TagScheme, "BIO", heads.LabelMap(("O", "B-X")))
    refused("output.labels[1]", heads.TagScheme, "BIO", heads.LabelMap(("O", "S-X")))
    refused("output.tag_scheme", heads.TagScheme, "IOB1", TOKENS)


def test_entities_agree_with_seqeval(rng):
    metrics = pytest.importorskip("seqeval.metrics.sequence_labeling", reason="seqeval is not installed")
    scheme_module = pytest.importorskip("seqeval.scheme")
    for scheme, peer in ((BIO, scheme_module.IOB2), (BILOU, scheme_module.BILOU)):
        for _ in range(30):
            best, _ = scheme.decode(normal(rng, 9, 5, size=3.0))
            names = [scheme.labels.names[t] for t in best]
            entities = scheme_module.Entities([names], scheme=peer)
            found = [(e.tag, e.start, e.end - 1) for e in entities.entities[0]]
            assert sorted(found) == sorted(scheme.entities(names))
    # a stated difference: its default repairs what is illegal, here it is refused
    assert metrics.get_entities(["I-PER"]) == [("PER", 0, 0)]
    refused("tags[0]", BIO.entities, ["I-PER"])


def pieces(words, offsets, probabilities, labels=BIO.labels):
    """(table, scores) of one source of pieces."""
    n = len(words)
    table = readout.row_table([1] * n, [0] * n, [0] * n, words, offsets)
    return table, readout.Scores(np.array(probabilities), readout.ScoreType.SOFTMAX_PROBABILITY, "r", labels.names)


def row(label, p, labels=BIO.labels):
    rest = (1 - p) / (len(labels) - 1)
    return [p if name == label else rest for name in labels.names]


def test_rea_20_an_amount_in_pieces_is_one_value():
    """Case rea-20: four pieces, all predicted B-TOTAL, of one word."""
    text = "7.318,26"
    table, scores = pieces([0, 0, 0, 0], [(0, 2), (2, 4), (4, 7), (7, 8)],
                           [row("B-TOTAL", p) for p in (0.99, 0.98, 0.97, 0.96)])
    for rule, score in (("first", 0.99), ("mean", 0.975), ("vote", 1.0)):
        (found,) = heads.source_entities(table, scores, BIO, word_rule=rule)
        assert (found.kind, found.text(text), found.words) == ("TOTAL", text, (0, 0))
        assert found.score == pytest.approx(score) and found.method == f"lowest word probability ({rule})"


def test_rea_23_words_come_from_offsets_not_from_marks():
    """Case rea-23: pieces with the mark of another tokenizer than expected; labels B I I I I."""
    text = "Rue de l'Église"
    labels = heads.LabelMap(("O", "B-ADDRESS", "I-ADDRESS"))
    scheme = heads.TagScheme("BIO", labels)
    tags = ["B-ADDRESS"] + ["I-ADDRESS"] * 4
    table, scores = pieces([0, 1, 2, 2, 2], [(0, 3), (4, 6), (7, 8), (8, 9), (9, 15)],
                           [row(t, 0.9, labels) for t in tags], labels)
    for rule in ("first", "mean", "vote"):
        (found,) = heads.source_entities(table, scores, scheme, word_rule=rule)
        assert (found.kind, found.text(text)) == ("ADDRESS", text)


def test_rea_25_every_entity_has_its_own_score_and_method():
    """Case rea-25: a clear and a doubtful span."""
    table, scores = pieces([0, 1, 2, 3], [(0, 3), (4, 7), (8, 11), (12, 15)],
                           [row("B-PER", 0.97), row("I-PER", 0.95), row("O", 0.9), row("B-PER", 0.55)])
    clear, doubtful = heads.source_entities(table, scores, BIO)
    assert (clear.score, doubtful.score) == (0.95, 0.55)
    assert clear.method == doubtful.method == "lowest word probability (first)"


def test_words_of_two_sources_do_not_join():
    table = readout.row_table([1] * 4, [0, 0, 1, 0], [0, 0, None, 1], [0, 1, None, 0], [(0, 2), (3, 5), None, (0, 4)])
    scores = readout.Scores(np.array([row("B-PER", 0.9), row("I-PER", 0.9), row("O", 0.9), row("B-PER", 0.8)]),
                            readout.ScoreType.SOFTMAX_PROBABILITY, "r", BIO.labels.names)
    found = heads.source_entities(table, scores, BIO)
    assert [(e.sequence, e.start, e.end) for e in found] == [(0, 0, 5), (1, 0, 4)]


def test_grouping_without_offsets_or_probabilities_is_refused():
    table, scores = pieces([0], [(0, 2)], [row("O", 0.9)])
    bare = readout.row_table([1], [0], [0], [0])
    refused("rows.offsets", heads.source_entities, bare, scores, BIO)
    refused("scores.axis", heads.source_entities, table, scores, BILOU)
    logits = readout.Scores(scores.values, readout.ScoreType.LOGIT, "r", BIO.labels.names)
    refused("scores.type", heads.source_entities, table, logits, BIO)
    refused("word_rule", heads.source_entities, table, scores, BIO, word_rule="last")
