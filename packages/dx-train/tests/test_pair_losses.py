"""Classification, regression and triplet losses of sentence pairs, and the two-view objectives."""
import numpy as np
import pytest
from dx_train import (ContrastiveContract, Dropout, ModuleModes, TripletContract, contrastive_loss, pair_classification,
                      pair_regression, relations, triplet_loss)

F = np.float32


@pytest.fixture
def rng():
    return np.random.default_rng(31)


def tensors(*arrays):
    torch = pytest.importorskip("torch")
    return torch, [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in arrays]


def close(got, want, bound=2e-6):
    return np.abs(got - want.grad.numpy()).max() < bound * max(1, np.abs(got).max())


def test_classification_reads_both_vectors_and_their_distance(rng):
    u, v = rng.standard_normal((2, 6, 5)).astype(F)
    weight, bias, labels = rng.standard_normal((3, 15)).astype(F), rng.standard_normal(3).astype(F), [0, 2, 1, 1, 0, 2]
    torch, (tu, tv, tw, tb) = tensors(u, v, weight, bias)
    logits = torch.cat([tu, tv, (tu - tv).abs()], 1) @ tw.T + tb
    loss = torch.nn.functional.cross_entropy(logits, torch.tensor(labels), reduction="sum")
    (loss / 6).backward()
    got = pair_classification(u, v, np.array(labels, np.int32), weight, bias)
    assert abs(got.numerator - loss.item()) < 1e-5 and got.denominator == 6
    assert all(close(got.gradients[n], t) for n, t in zip(("u", "v", "weight", "bias"), (tu, tv, tw, tb)))
    with pytest.raises(ValueError, match=r"expected \(3, 15\), three times the vector"):
        pair_classification(u, v, np.array(labels, np.int32), weight[:, :10].copy(), bias)
    same = pair_classification(u, u, np.array(labels, np.int32), weight, bias)
    assert np.isfinite(same.gradients["u"]).all()


def test_regression_on_the_cosine(rng):
    u, v, targets = *rng.standard_normal((2, 6, 5)).astype(F), rng.uniform(-1, 1, 6)
    torch, (tu, tv) = tensors(u, v)
    loss = ((torch.nn.functional.cosine_similarity(tu, tv) - torch.tensor(targets))**2).mean()
    loss.backward()
    got = pair_regression(u, v, targets)
    assert abs(got.numerator / got.denominator - loss.item()) < 1e-6
    assert close(got.gradients["u"], tu) and close(got.gradients["v"], tv)
    with pytest.raises(ValueError, match="the target is a cosine"):
        pair_regression(u, v, targets * 5)  # a 0..5 similarity scale that nobody divided by 5


@pytest.mark.parametrize("metric, margin", [("euclidean", 1.0), ("cosine", 0.5)])
def test_triplets_in_their_own_metric(rng, metric, margin):
    a, p, n = rng.standard_normal((3, 8, 5)).astype(F)
    n[0] *= 50  # far away: no loss and no gradient under the euclidean metric
    torch, (ta, tp, tn) = tensors(a, p, n)
    if metric == "euclidean":
        distance = lambda x, y: torch.linalg.norm(x - y, dim=1)  # noqa: E731
    else:
        distance = lambda x, y: 1 - torch.nn.functional.cosine_similarity(x, y)  # noqa: E731
    loss = torch.relu(distance(ta, tp) - distance(ta, tn) + margin).mean()
    loss.backward()
    got = triplet_loss(a, p, n, TripletContract(metric, margin))
    assert abs(got.numerator / 8 - loss.item()) < 1e-6
    assert all(close(got.gradients[name], t) for name, t in (("anchor", ta), ("positive", tp), ("negative", tn)))
    if metric == "euclidean":
        assert not any(g[0].any() for g in got.gradients.values())


def test_a_margin_belongs_to_its_metric(rng):
    """The same triplets under the same number in another metric: another loss. A margin that no cosine distance can
    reach is refused."""
    a, p, n = rng.standard_normal((3, 8, 5)).astype(F)
    values = [triplet_loss(a, p, n, TripletContract(metric, 1.0)).numerator for metric in ("euclidean", "cosine")]
    assert abs(values[0] - values[1]) > 1.0
    with pytest.raises(ValueError, match="is it another metric's"):
        TripletContract("cosine", 5.0)
    for wrong in (("manhattan", 1.0), ("euclidean", 0.0)):
        with pytest.raises(ValueError):
            TripletContract(*wrong)


def test_equal_points_have_a_finite_gradient():
    x = np.ones((1, 3), F)
    got = triplet_loss(x, x, x, TripletContract("euclidean", 1.0))
    assert got.numerator == 1.0 and all(not g.any() for g in got.gradients.values())


def test_parity_with_sentence_transformers(rng):
    losses = pytest.importorskip("sentence_transformers.losses", reason="sentence-transformers is not installed")
    torch, (ta, tp, tn) = tensors(*rng.standard_normal((3, 4, 5)).astype(F))
    module = losses.TripletLoss(model=None, triplet_margin=1.0)
    loss = module.compute_loss_from_embeddings([ta, tp, tn], None)
    arrays = [t.detach().numpy().astype(F) for t in (ta, tp, tn)]
    got = triplet_loss(*arrays, TripletContract("euclidean", 1.0))
    assert abs(got.numerator / 4 - loss.item()) < 1e-5  # its distance adds 1e-6 to every coordinate's difference
    targets = rng.uniform(-1, 1, 4)
    loss = losses.CosineSimilarityLoss(model=None).compute_loss_from_embeddings([ta, tp], torch.tensor(targets))
    got = pair_regression(*arrays[:2], targets)
    assert abs(got.numerator / 4 - loss.item()) < 1e-6


def test_two_dropout_views_of_a_text_are_each_others_positives():
    """Unsupervised SimCSE: the views are named, so their masks are independent and come again."""
    text, modes = np.linspace(-1, 1, 4 * 32, dtype=F).reshape(4, 32), ModuleModes({"readout": "train"})
    drop = Dropout("readout", 0.1)
    ids = [f"t{i}" for i in range(4)]
    views = [np.stack([drop.apply(x, modes, seed=1, example=id_, step=0, view=view) for id_, x in zip(ids, text)])
             for view in (0, 1)]
    assert (views[0] != views[1]).any()
    again = np.stack([drop.apply(x, modes, seed=1, example=id_, step=0, view=1)
                      for id_, x in zip(ids[::-1], text[::-1])])
    assert again[::-1].tobytes() == views[1].tobytes()  # independent of the order of a batch
    contract = ContrastiveContract(0.05)
    found = relations(ids, [f"{i}#1" for i in ids], [(i, f"{i}#1") for i in ids], contract)
    losses = contrastive_loss(*views, found, contract).losses
    still = ModuleModes({"readout": "eval"})
    assert drop.apply(text, still, seed=1, example="t0", step=0) is text  # no mask: both views would be one
    assert np.isfinite(losses).all() and (losses > 0).all()


def test_entailment_and_contradiction_are_positive_and_hard_negative():
    """Supervised SimCSE: relation labels decide who stands in numerator and denominator."""
    contract = ContrastiveContract(0.05, hard_weight=2.0, miner="nli-1")
    found = relations(["p0", "p1"], ["e0", "c0", "e1", "c1"], [("p0", "e0"), ("p1", "e1")], contract,
                      hard=[("p0", "c0"), ("p1", "c1")])
    assert found.positive.tolist() == [[1, 0, 0, 0], [0, 0, 1, 0]] and found.admitted.all()
    assert found.weight.tolist() == [[1, 2, 1, 1], [1, 1, 1, 2]]
