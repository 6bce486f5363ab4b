"""Extractive question answering, and scorers of whole spans."""
import numpy as np
import pytest
from dx_model import readout
from dx_model.readout import heads
from slopes import check_slopes
from test_heads import normal, refused

f32 = np.float32


def answer_head(rng, width=4, length=3, **settings):
    return heads.AnswerHead(normal(rng, 2, width), normal(rng, 2), length, **settings)


CONTEXT = np.array([[0, 0, 1, 1, 1, 0], [0, 1, 1, 0, 1, 1]], bool)


def test_extractive_question_answering(rng):
    """Two score fields (B, S), masked boundary losses, the best admissible span and the rule for no answer."""
    head, hidden = answer_head(rng, no_answer=heads.NullRule(0, 0.5, "dev-7")), normal(rng, 2, 6, 4)
    valid = np.ones((2, 6), bool)
    valid[0, 5] = False
    y = np.array([[2, 4], [0, 0]])  # the second has no answer: the null row
    logits = head.forward(hidden, valid)
    assert logits.shape == (2, 6, 2) and not logits[0, 5].any()
    z, exact = logits.astype(np.float64), 0.0
    for b in range(2):
        rows = np.flatnonzero(CONTEXT[b] | (np.arange(6) == 0))
        for channel in range(2):
            exact += 0.5 * (np.log(np.exp(z[b, rows, channel]).sum()) - z[b, y[b, channel], channel])
    loss = head.loss(logits, y, CONTEXT)
    assert loss.denominator == 2 and abs(loss.numerator - exact) < 1e-6
    dhidden, gradients = head.backward(logits, y, CONTEXT, hidden, valid)
    assert not dhidden[0, [1, 5]].any()  # neither context nor null row
    shifted = np.roll(valid, 1, axis=1)  # padding on the left: column 0 is no row of the text there
    with pytest.raises(readout.ReadoutError, match="output.null.row"):
        head.backward(logits, y, CONTEXT & shifted, hidden, shifted)
    check_slopes(lambda: head.loss(head.forward(hidden, valid), y, CONTEXT).value,
                 [hidden, *head.parameters().values()], [dhidden, gradients["weight"], gradients["bias"]])
    z = np.zeros((6, 2), f32)
    z[2, 0], z[4, 1], z[0] = 3, 2, 2.5
    found = head.answer(z, CONTEXT[0])
    assert (found.rows, found.score, found.null_score) == ((2, 4), 5.0, 5.0)
    z[0] = 2.8
    assert head.answer(z, CONTEXT[0]).rows is None  # 5.6 - 5 is more than 0.5
    far = np.zeros((6, 2), f32)
    far[1, 0] = far[5, 1] = 9  # the best start and the best end are five rows apart, three are admitted
    assert head.answer(far, CONTEXT[1]).rows == (5, 5)
    table = readout.row_table([1] * 6, [1, 0, 0, 0, 0, 1], [None, 0, 1, 1, 1, None], [None, 0, 0, 1, 2, None],
                              [None, (0, 3), (0, 4), (5, 7), (8, 12), None])
    assert found.source(table) == (1, 0, 12)


def test_a_target_that_cannot_be_answered_is_refused(rng):
    """Not clamped, not ignored behind the caller's back: a row outside of the context is a wrong target."""
    head, logits = answer_head(rng), normal(rng, 2, 6, 2)
    refused("targets[0]", head.loss, logits, [[1, 3], [1, 2]], CONTEXT)
    refused("targets[0]", head.loss, logits, [[2, 6], [1, 2]], CONTEXT)
    refused("targets[1]", head.loss, logits, [[2, 3], [2, 1]], CONTEXT)
    refused("targets[1]", head.loss, logits, [[2, 3], [0, 0]], CONTEXT)  # no null row was declared
    unseen = np.ones((2, 6), bool)
    unseen[1, 4] = False
    refused("context_mask", head.backward, logits, [[2, 3], [1, 2]], CONTEXT, normal(rng, 2, 6, 4), unseen)
    ignored = head.loss(logits, [[2, 3], [-1, -1]], CONTEXT)
    assert ignored.denominator == 1 and head.loss(logits, [[-1, -1]] * 2, CONTEXT) == heads.LocalLoss(0.0, 0.0)


def test_best_valid_span_and_its_tie():
    """(score, first, last): the largest tuple wins."""
    start, end = [1.0, 5.0, 0.0, 5.0], [0.0, 1.0, 2.0, 0.0]
    assert heads.best_valid_span(start, end, [1, 1, 1, 1], 4) == (1, 2, 7.0)
    assert heads.best_valid_span([0] * 3, [0] * 3, [1, 1, 1], 2) == (2, 2, 0.0)
    assert heads.best_valid_span([0] * 3, [0] * 3, [1, 1, 0], 3) == (1, 1, 0.0)
    with pytest.raises(readout.ReadoutError, match="no admissible answer span"):
        heads.best_valid_span([0.0], [0.0], [0], 4)


def test_independent_argmaxes_return_what_is_no_span(rng):
    head = answer_head(rng, length=2)
    z = np.zeros((6, 2), f32)
    z[4, 0], z[2, 1] = 5, 5  # the ends are the wrong way round
    context = np.ones(6, bool)
    assert z[:, 0].argmax() > z[:, 1].argmax()
    first, last = head.answer(z, context).rows
    assert first <= last < first + 2
    z[:] = 0
    z[0, 0], z[5, 1] = 5, 5  # overlong
    assert head.answer(z, context).rows in ((0, 1), (4, 5), (5, 5), (0, 0))


def test_answerability_by_a_head_of_its_own(rng):
    head = answer_head(rng, no_answer=heads.AnswerabilityRule(0.7, "dev-3"))
    z = normal(rng, 6, 2)
    assert head.answer(z, CONTEXT[0], 0.71).rows is not None
    refusal = head.answer(z, CONTEXT[0], 0.69)
    assert refusal.rows is None and refusal.score is not None and refusal.null_score == 0.69
    refused("answerable", head.answer, z, CONTEXT[0])
    refused("answerable", answer_head(rng).answer, z, CONTEXT[0], 0.5)
    assert head.answer(z, np.zeros(6, bool), 0.9) == heads.Answer(None, None, 0.9)
    refused("answer", answer_head(rng).answer, z, np.zeros(6, bool))
    refused("answer.rows", refusal.source, None)
    refused("output.null.revision", heads.NullRule, 0, 1.0, "")
    refused("output.answerable.threshold", heads.AnswerabilityRule, 1.2, "r")
    refused("output.max_answer_length", answer_head, rng, length=0)
    refused("head.weight.shape", heads.AnswerHead, normal(rng, 3, 4), normal(rng, 3), 5)


def biaffine(rng, d=3, length=3):
    return heads.BiaffineHead(normal(rng, d, d), normal(rng, d), normal(rng, d), normal(rng, 1), length)


def test_biaffine_spans(rng):
    head, x, y = biaffine(rng), normal(rng, 5, 3), normal(rng, 5, 3)
    context = np.array([0, 1, 1, 1, 1], bool)
    scores, saved = head.forward(x, y)
    u, a, b, c = (p.astype(np.float64) for p in head.parameters().values())
    exact = x @ u @ y.T + (x @ a)[:, None] + y @ b + c
    assert np.abs(scores - exact).max() < 1e-5
    spans = [(s, e) for s in range(1, 5) for e in range(s, min(5, s + 3))]
    log_z = np.log(sum(np.exp(exact[p]) for p in spans))
    loss = head.loss(scores, (2, 4), context)
    assert abs(loss.numerator - (log_z - exact[2, 4])) < 1e-5 and loss.denominator == 1
    dx, dy, gradients = head.backward(scores, (2, 4), context, saved)
    check_slopes(lambda: head.loss(head.forward(x, y)[0], (2, 4), context).value,
                 [x, y, *head.parameters().values()], [dx, dy, *(gradients[n] for n in head.parameters())])
    assert head.best(scores, context)[0][1:] == max(spans, key=lambda p: scores[p])
    refused("target", head.loss, scores, (0, 2), context)
    refused("target", head.loss, scores, (1, 4), context)
    refused("output.max_length", biaffine, rng, length=0)
    assert head.loss(scores, None, context) == heads.LocalLoss(0.0, 0.0)


def test_a_joint_scorer_says_what_boundaries_cannot(rng):
    """Two answers that cross: sums of boundaries give the wrong pairs as much as the right ones; U does not."""
    x = np.eye(4, dtype=f32)
    u = np.zeros((4, 4), f32)
    u[0, 1] = u[2, 3] = 5
    head = heads.BiaffineHead(u, np.zeros(4, f32), np.zeros(4, f32), np.zeros(1, f32), 4)
    scores, _ = head.forward(x, x)
    assert {p[1:] for p in head.best(scores, np.ones(4, bool), 2)} == {(0, 1), (2, 3)}
    start, end = np.array([5, 0, 5, 0], f32), np.array([0, 5, 0, 5], f32)
    wrong = start[0] + end[3]
    assert wrong == start[0] + end[1] == start[2] + end[3]


SPANS = heads.LabelMap(("none", "PER", "ORG"))


def test_span_enumeration(rng):
    head = heads.SpanEnumerationHead(SPANS, normal(rng, 3, 4), normal(rng, 3, 4), normal(rng, 2, 3), normal(rng, 3))
    hidden, context = normal(rng, 5, 4), np.array([1, 1, 1, 0, 1], bool)
    spans = head.spans(context)
    assert spans.tolist() == [[0, 0], [0, 1], [1, 1], [1, 2], [2, 2], [4, 4]]
    logits = head.forward(hidden, spans)
    h = hidden.astype(np.float64)
    for (s, e), z in zip(spans, logits):
        exact = h[s] @ head.start.weight.T + h[e] @ head.end.weight.T + head.widths[e - s] + head.start.bias
        assert np.abs(z - exact).max() < 1e-5
    y = np.array([0, 1, -1, 2, 0, 0])
    dhidden, gradients = head.backward(logits, y, hidden, spans)
    assert head.loss(logits, y).denominator == 5
    check_slopes(lambda: head.loss(head.forward(hidden, spans), y).value, [hidden, *head.parameters().values()],
                 [dhidden, *(gradients[n] for n in head.parameters())])
    refused("spans", head.forward, hidden, np.array([[0, 2]]))
    refused("output.labels[0]", heads.SpanEnumerationHead, heads.LabelMap(("PER", "none", "ORG")),
            *(head.parameters()[n] for n in ("start", "end", "widths", "bias")))


def test_enumerated_entities_do_not_overlap():
    head = heads.SpanEnumerationHead(SPANS, *(np.zeros((3, 2), f32) for _ in range(2)), np.zeros((3, 3), f32),
                                     np.zeros(3, f32))
    spans = np.array([[0, 1], [1, 2], [2, 2], [4, 4], [5, 5]], np.int32)
    logits = np.array([[0, 3, 0], [0, 0, 5], [0, 1, 0], [0, 2, 2], [9, 0, 0]], f32)
    assert head.entities(logits, spans) == [("ORG", 1, 2, 5.0), ("PER", 4, 4, 2.0)]
    assert head.entities(np.array([[0, 3, 0], [0, 0, 3]], f32), spans[:2]) == [("PER", 0, 1, 3.0)]


def test_transformers_heads_give_the_same_losses(rng):
    """Sequence, token and question-answering heads of a peer on the same arrays, float64 losses."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    config = transformers.BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8,
                                     vocab_size=11, num_labels=3, hidden_dropout_prob=0.0,
                                     attention_probs_dropout_prob=0.0)
    ids, attention = torch.tensor(rng.integers(0, 11, (2, 6))), torch.ones(2, 6, dtype=torch.long)
    torch.manual_seed(3)

    def arrays(layer):
        return layer.weight.detach().numpy().copy(), layer.bias.detach().numpy().copy()

    model = transformers.BertForTokenClassification(config).eval()
    hidden = model.bert(ids, attention).last_hidden_state.detach().numpy()
    labels = heads.LabelMap(("a", "b", "c"))
    y = np.where(rng.random((2, 6)) < 0.5, rng.integers(0, 3, (2, 6)), -1)
    with torch.no_grad():
        peer = model(ids, attention, labels=torch.tensor(np.where(y < 0, -100, y)))
    head = heads.TokenHead(labels, *arrays(model.classifier))
    logits = head.forward(hidden, np.ones((2, 6), bool))
    assert np.abs(logits - peer.logits.numpy()).max() < 1e-6
    assert abs(head.loss(logits, y, y >= 0).value - peer.loss.item()) < 1e-6

    model = transformers.BertForQuestionAnswering(config).eval() if config.num_labels == 2 else \
        transformers.BertForQuestionAnswering(transformers.BertConfig(**{**config.to_dict(), "num_labels": 2})).eval()
    hidden = model.bert(ids, attention).last_hidden_state.detach().numpy()
    start, end = torch.tensor([1, 3]), torch.tensor([2, 9])  # the peer ignores a row beyond the last without a word
    with torch.no_grad():
        peer = model(ids, attention, start_positions=start, end_positions=end)
    head = heads.AnswerHead(*arrays(model.qa_outputs), 6)
    logits, every = head.forward(hidden, np.ones((2, 6), bool)), np.ones((2, 6), bool)
    assert np.abs(logits[..., 0] - peer.start_logits.numpy()).max() < 1e-6
    refused("targets[1]", head.loss, logits, [[1, 2], [3, 9]], every)
    with torch.no_grad():
        peer = model(ids, attention, start_positions=start, end_positions=torch.tensor([2, 4]))
    assert abs(head.loss(logits, [[1, 2], [3, 4]], every).value - peer.loss.item()) < 1e-6

    model = transformers.BertForSequenceClassification(config).eval()
    pooled = model.bert(ids, attention).pooler_output.detach().numpy()
    with torch.no_grad():
        peer = model(ids, attention, labels=torch.tensor([2, 0]))
    head = heads.SingleLabelHead(labels, *arrays(model.classifier))
    assert abs(head.loss(head.forward(pooled), [2, 0]).value - peer.loss.item()) < 1e-6

    model = transformers.BertForMultipleChoice(config).eval()
    pooled = model.bert(ids, attention).pooler_output.detach().numpy()
    with torch.no_grad():
        peer = model(ids[None], attention[None], labels=torch.tensor([1]))
    head = heads.MultipleChoiceHead(*arrays(model.classifier))
    logits = head.forward(pooled, ["q", "q"])
    assert np.abs(logits - peer.logits.numpy()).max() < 1e-6
    assert abs(head.loss(logits, [1]).value - peer.loss.item()) < 1e-6
