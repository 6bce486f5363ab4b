"""Contrastive relations and losses: ids instead of places, groups, gathering, parity with PyTorch."""
import dataclasses

import dx_train
import numpy as np
import pytest
from dx_train import (ContrastiveContract, TrainingError, WorkerSide, alignment, contrastive_loss, gathered_contrastive,
                      relations, uniformity)

F = np.float32
CONTRACT = ContrastiveContract(temperature=0.1)


def vectors(rng, *shape):
    return rng.standard_normal(shape).astype(F)


def batch(rng, count=5, d=8, extra=2):
    """(query, document, anchor ids, candidate ids, positives): one match each, and some documents of nobody."""
    anchors, candidates = [f"q{i}" for i in range(count)], [f"d{i}" for i in range(count + extra)]
    return (vectors(rng, count, d), vectors(rng, count + extra, d), anchors, candidates,
            [(f"q{i}", f"d{i}") for i in range(count)])


def torch_loss(query, document, found, contract):
    """(loss, dquery, ddocument) in float64 by torch."""
    torch = pytest.importorskip("torch")
    q, d = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (query, document))
    normalize = torch.nn.functional.normalize if contract.similarity == "cosine" else (lambda x: x)
    z = normalize(q) @ normalize(d).T / contract.temperature
    if found.weight is not None:
        z = z + torch.log(torch.tensor(found.weight))
    positive, admitted = torch.tensor(found.positive) > 0, torch.tensor(found.admitted) > 0

    def term(z, positive, admitted):
        lse = lambda mask: torch.logsumexp(z.masked_fill(~mask, -float("inf")), 1)  # noqa: E731
        return (lse(admitted) - lse(positive)).mean()
    loss = term(z, positive, admitted)
    if contract.symmetric:
        keep = positive.any(0)
        loss = (loss + term(z.T[keep], positive.T[keep], admitted.T[keep])) / 2
    loss.backward()
    return loss.item(), q.grad.numpy(), d.grad.numpy()


@pytest.mark.parametrize("change", [{}, {"similarity": "dot"}, {"symmetric": True}, {"hard_weight": 3.0, "miner": "m"},
                                    {"in_batch_negatives": False}, {"temperature": 0.02, "symmetric": True}])
def test_loss_and_gradients_agree_with_torch_in_float64(change):
    contract = dataclasses.replace(CONTRACT, **change)
    query, document, anchors, candidates, positives = batch(np.random.default_rng(1))
    found = relations(anchors, candidates, [*positives, ("q0", "d3")], contract, hard=[("q0", "d5"), ("q2", "d6")])
    result = contrastive_loss(query, document, found, contract)
    loss, dq, dd = torch_loss(query, document, found, contract)
    assert abs(result.loss - loss) < 1e-5 * max(1, loss)
    assert np.abs(result.dquery - dq).max() < 1e-5 * max(1, np.abs(dq).max())
    assert np.abs(result.ddocument - dd).max() < 1e-5 * max(1, np.abs(dd).max())


def test_gradients_are_difference_quotients():
    query, document, anchors, candidates, positives = batch(np.random.default_rng(2), 3, 4, 1)
    for contract in (CONTRACT, dataclasses.replace(CONTRACT, symmetric=True, similarity="dot")):
        contract = dataclasses.replace(contract, temperature=1.0)
        found = relations(anchors, candidates, positives, contract)
        result = contrastive_loss(query, document, found, contract)
        for side, gradient in ((query, result.dquery), (document, result.ddocument)):
            for at in np.ndindex(gradient.shape):
                before, values = side[at], []
                for step in (2.0**-8, -(2.0**-8)):
                    side[at] = before + F(step)
                    values.append(contrastive_loss(query, document, found, contract).loss)
                side[at] = before
                assert abs((values[0] - values[1]) * 2.0**7 - gradient[at]) < 1e-3


def test_one_positive_gradient_of_a_score():
    """With one positive the gradient of a score is (softmax - [positive]) / temperature: unit vectors along the axes
    make scores and vectors the same."""
    query, document = np.array([[1, 0]], F), np.array([[2, 0], [1, 0]], F)
    for temperature in (1.0, 0.5):
        contract = ContrastiveContract(temperature, similarity="dot")
        found = relations(["q"], ["a", "b"], [("q", "a")], contract)
        p = np.exp(2 / temperature) / (np.exp(2 / temperature) + np.exp(1 / temperature))
        got = contrastive_loss(query, document, found, contract).ddocument[:, 0]
        assert np.abs(got - np.array([p - 1, 1 - p]) / temperature).max() < 1e-6


def test_positives_are_found_by_id_wherever_they_lie():
    """After a gather that sorts, filters or interleaves, the diagonal holds other examples' documents."""
    rng = np.random.default_rng(3)
    query, document, anchors, candidates, positives = batch(rng, extra=0)
    straight = contrastive_loss(query, document, relations(anchors, candidates, positives, CONTRACT), CONTRACT)
    order = [3, 0, 4, 1, 2]
    moved = relations(anchors, [candidates[i] for i in order], positives, CONTRACT)
    assert not moved.positive.diagonal().all()
    assert moved.positive.argmax(1).tolist() == [order.index(i) for i in range(5)]
    again = contrastive_loss(query, np.ascontiguousarray(document[order]), moved, CONTRACT)
    assert np.abs(again.losses - straight.losses).max() < 1e-12
    assert np.abs(again.ddocument - straight.ddocument[order]).max() < 1e-6
    diagonal = dataclasses.replace(moved, positive=np.eye(5, dtype=np.uint8))  # what assuming the diagonal would do
    wrong = contrastive_loss(query, np.ascontiguousarray(document[order]), diagonal, CONTRACT)
    assert np.abs(wrong.losses - straight.losses).max() > 0.1


def test_a_duplicate_of_the_positive_is_a_positive_too():
    rng = np.random.default_rng(4)
    query, document, anchors, candidates, positives = batch(rng, extra=0)
    twice, ids = np.concatenate([document, document[:1]]), [*candidates, candidates[0]]
    found = relations(anchors, ids, positives, CONTRACT)
    assert found.positive[0].tolist() == [1, 0, 0, 0, 0, 1]
    good = contrastive_loss(query, twice, found, CONTRACT)
    wrong = dataclasses.replace(found, positive=np.concatenate([found.positive[:, :5], np.zeros((5, 1), np.uint8)], 1))
    bad = contrastive_loss(query, twice, wrong, CONTRACT)
    push = lambda result: float(result.ddocument[5].astype(np.float64) @ query[0])  # noqa: E731
    assert push(bad) > 0  # the known match is pushed away from its query
    assert push(bad) > push(good)


def test_a_likely_match_of_the_same_group_is_left_out():
    rng = np.random.default_rng(5)
    query, document, anchors, candidates, positives = batch(rng, extra=1)
    groups = {"q0": "cats", "q1": "cats", "d0": "cats", "d1": "cats"}
    found = relations(anchors, candidates, positives, CONTRACT, groups=groups)
    assert found.admitted[0].tolist() == [1, 0, 1, 1, 1, 1] and found.admitted[1].tolist() == [0, 1, 1, 1, 1, 1]
    assert found.admitted[2].all()
    result = contrastive_loss(query, document, found, CONTRACT)
    other = document.copy()
    other[1] *= -7
    assert contrastive_loss(query, other, found, CONTRACT).losses[0] == result.losses[0]


def test_a_mixed_stage_admits_only_an_anchors_own_candidates():
    contract = dataclasses.replace(CONTRACT, in_batch_negatives=False)
    _, _, anchors, candidates, positives = batch(np.random.default_rng(6))
    found = relations(anchors, candidates, positives, contract, hard=[("q0", "d6")])
    assert found.admitted[0].tolist() == [1, 0, 0, 0, 0, 0, 1] and found.admitted[1].tolist() == [0, 1, 0, 0, 0, 0, 0]


def test_the_weight_of_a_hard_negative_and_its_miner_are_in_the_contract():
    query, document, anchors, candidates, positives = batch(np.random.default_rng(7))
    losses = {}
    for weight in (1.0, 5.0):
        contract = dataclasses.replace(CONTRACT, hard_weight=weight, miner="bm25-1")
        found = relations(anchors, candidates, positives, contract, hard=[("q0", "d5")])
        losses[contract.digest()] = contrastive_loss(query, document, found, contract).losses
    first, second = losses.values()
    assert len(losses) == 2 and second[0] > first[0] and np.array_equal(first[1:], second[1:])
    assert len({dataclasses.replace(CONTRACT, miner=miner).digest() for miner in ("bm25-1", "bm25-2")}) == 2


def workers(rng, contract, sizes=(3, 2)):
    sides, at = [], 0
    for size in sizes:
        ids = range(at, at + size)
        sides.append(WorkerSide(tuple(f"q{i}" for i in ids), vectors(rng, size, 8), tuple(f"d{i}" for i in ids),
                                vectors(rng, size, 8)))
        at += size
    positives = [(f"q{i}", f"d{i}") for i in range(at)]
    return sides, lambda anchors, candidates: relations(anchors, candidates, positives, contract)


def test_detached_and_attached_gathers_have_equal_losses_and_other_gradients():
    detached = dataclasses.replace(CONTRACT, gather="detached")
    sides, relate = workers(np.random.default_rng(8), CONTRACT)
    whole_query = np.concatenate([s.query for s in sides])
    whole_document = np.concatenate([s.document for s in sides])
    found = relate([i for s in sides for i in s.query_ids], [i for s in sides for i in s.document_ids])
    whole = contrastive_loss(whole_query, whole_document, found, CONTRACT)
    attached_parts, detached_parts = (gathered_contrastive(sides, relate, c) for c in (CONTRACT, detached))
    for parts in (attached_parts, detached_parts):
        assert np.array_equal(np.concatenate([p.result.losses for p in parts]), whole.losses)
        assert np.concatenate([p.dquery for p in parts]).tobytes() == whole.dquery.tobytes()
    back = np.concatenate([p.ddocument for p in attached_parts])
    assert np.abs(back - whole.ddocument).max() < 1e-6  # the reciprocal gradient came back
    lost = np.concatenate([p.ddocument for p in detached_parts])
    assert np.abs(lost - whole.ddocument).max() > 1e-3
    assert CONTRACT.digest() != detached.digest()  # so the two are two contracts


def test_an_all_padding_readout_is_refused_and_not_normalized():
    query, document, anchors, candidates, positives = batch(np.random.default_rng(9))
    query[2] = 0  # what a sum over no rows gives
    with pytest.raises(TrainingError, match=r"query: x\[2\] has norm 0"):
        contrastive_loss(query, document, relations(anchors, candidates, positives, CONTRACT), CONTRACT)


def test_what_relations_refuse():
    for arguments, message in (((["q", "q"], ["d"], [("q", "d")]), "stands twice"),
                               ((["q"], ["d"], []), "anchor 'q' has no positive"),
                               ((["q"], ["d"], [("q", "e")]), "anchor 'q' has no positive")):
        with pytest.raises(TrainingError, match=message):
            relations(*arguments, CONTRACT)
    with pytest.raises(TrainingError, match="is a positive and a hard negative"):
        relations(["q"], ["d"], [("q", "d")], CONTRACT, hard=[("q", "d")])
    for change, message in (({"temperature": 0.0}, "temperature"), ({"gather": "maybe"}, "gather"),
                            ({"similarity": "l1"}, "similarity"), ({"hard_weight": -1.0}, "hard_weight")):
        with pytest.raises(ValueError, match=message):
            dataclasses.replace(CONTRACT, **change)


def test_parity_with_sentence_transformers():
    """MultipleNegativesRankingLoss on the same arrays: cosine, scale 1 / temperature, in-batch negatives; and its
    reverse direction beside it."""
    losses = pytest.importorskip("sentence_transformers.losses", reason="sentence-transformers is not installed")
    torch = pytest.importorskip("torch")
    query, document, anchors, candidates, positives = batch(np.random.default_rng(10), extra=0)
    q, d = (torch.tensor(x, requires_grad=True) for x in (query, document))
    found = relations(anchors, candidates, positives, CONTRACT)
    both = {"directions": ("query_to_doc", "doc_to_query"), "partition_mode": "per_direction"}
    for contract, settings in ((CONTRACT, {}), (dataclasses.replace(CONTRACT, symmetric=True), both)):
        q.grad = d.grad = None
        module = losses.MultipleNegativesRankingLoss(model=None, scale=10.0, **settings)
        loss = module.compute_loss_from_embeddings([q, d], None)
        loss.backward()
        result = contrastive_loss(query, document, found, contract)
        assert abs(result.loss - loss.item()) < 1e-5
        assert np.abs(result.dquery - q.grad.numpy()).max() < 1e-5
        assert np.abs(result.ddocument - d.grad.numpy()).max() < 1e-5


def test_alignment_and_uniformity():
    rng = np.random.default_rng(11)
    x, y = vectors(rng, 30, 6), vectors(rng, 30, 6)
    unit = lambda a: (a / np.linalg.norm(a, axis=1, keepdims=True)).astype(np.float64)  # noqa: E731
    assert abs(alignment(x, y) - (np.linalg.norm(unit(x) - unit(y), axis=1)**2).mean()) < 1e-5
    distances = ((unit(x)[:, None] - unit(x)[None])**2).sum(-1)[~np.eye(30, dtype=bool)]
    assert abs(uniformity(x) - np.log(np.exp(-2 * distances).mean())) < 1e-5
    collapsed = np.ones((5, 6), F)
    assert alignment(collapsed, collapsed) == 0 and uniformity(collapsed) == 0  # aligned, and of no use
    circle = np.eye(2, dtype=F)[[0, 1, 0, 1]] * np.array([[1], [1], [-1], [-1]], F)
    assert uniformity(circle) < uniformity(np.abs(circle))
    for wrong in (lambda: alignment(x, y[:3]), lambda: uniformity(x[:1])):
        with pytest.raises(ValueError):
            wrong()


def test_bits_do_not_depend_on_path_or_degree():
    query, document, anchors, candidates, positives = batch(np.random.default_rng(12), 40, 50, 30)
    contract = dataclasses.replace(CONTRACT, symmetric=True)
    found, seen = relations(anchors, candidates, positives, contract), set()
    for path in dx_train.available_paths():
        for degree in (1, 2, 3):
            with dx_train.kernel_path(path), dx_train.degree(degree):
                result = contrastive_loss(query, document, found, contract)
                seen.add((result.loss, result.dquery.tobytes(), result.ddocument.tobytes()))
    assert len(seen) == 1
