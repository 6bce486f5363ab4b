import dx_kernels as k
import numpy as np
import pytest
from conftest import same_bits
from dx_kernels.ref import run_loss as ref
from page_cases import distribution, page, runs_of, schema


def run_loss(z, repeated, terms, weights=None, scale=1.0):
    """terms [(field, [(first, last), …]), …] → (losses, dlogits, (numerator, denominator))."""
    places = [(x, first, last) for x, (_, where) in enumerate(terms) for first, last in where]
    losses, dz = np.full(len(terms), -1.0), np.full_like(z, 7)
    both = k.run_loss(z, repeated, np.array([f for f, _ in terms], np.int32),
                      np.array(places, np.int32).reshape(-1, 3), losses, dz,
                      weights=None if weights is None else np.array(weights, np.float64), scale=scale)
    return losses, dz, both


def by_enumeration(z, exclusive, field, places):
    """(loss, gradient) in float64 from every legal tagging: expected tags minus expected tags given the places."""
    taggings, _, p = distribution(z, exclusive)
    indicator = np.zeros((len(taggings),) + z.shape)
    for x, y in enumerate(taggings):
        indicator[x, np.arange(len(z)), y] = 1
    right = np.zeros(len(p))
    if places:
        for x, y in enumerate(taggings):
            right[x] = sum((field, first, last) in runs_of(y) for first, last in places)
    else:
        right = np.array([1.0 if 1 + 2 * field not in y else 0.0 for y in taggings])
    mass = (p * right).sum()
    return -np.log(mass), np.tensordot(p - p * right / mass, indicator, 1)


TERMS = [(4, 2, (), [(0, [(0, 1), (2, 2)]), (1, [(3, 3)])]),
         (4, 2, (), [(0, []), (1, [(0, 3)])]),
         (5, 2, (1,), [(1, [(1, 2)]), (1, [(4, 4)]), (0, [(0, 0), (1, 3), (1, 4)])]),
         (4, 3, (), [(2, [(0, 0), (0, 1), (0, 2), (0, 3)]), (0, [(1, 1)])]),
         (1, 1, (), [(0, [(0, 0)])]), (7, 1, (), [(0, [(0, 2), (3, 4), (6, 6)])]),
         (3, 10, (4,), [(0, [(0, 1)]), (9, []), (4, [(1, 2)]), (3, [(0, 0), (1, 1)])])]


@pytest.mark.parametrize("scale", [0.5, 4.0])
@pytest.mark.parametrize("n, fields, repeated, terms", TERMS)
def test_loss_and_gradient_by_enumeration(path, rng, n, fields, repeated, terms, scale):
    z, flags = page(rng, n, fields, scale), schema(fields, repeated)
    weights = rng.uniform(0.5, 2, len(terms))
    losses, dz, both = run_loss(z, flags, terms, weights, 0.125)
    single = [f for f in range(fields) if not flags[f]]
    gradient = 0
    for x, (field, places) in enumerate(terms):
        exclusive = single if k.page_model(flags) == "joint" else [f for f in single if f == field]
        loss, one = by_enumeration(z, exclusive, field, places)
        gradient = gradient + weights[x] * one
        assert losses[x] == pytest.approx(loss, rel=1e-11, abs=1e-13)
    np.testing.assert_allclose(dz, 0.125 * gradient, rtol=1e-6, atol=1e-12)
    assert both == pytest.approx((float(weights @ losses), weights.sum()))


def test_gradient_against_central_differences(path, rng):
    """The kernel's own loss, moved by steps that binary32 holds exactly."""
    n, fields = 20, 4
    z = np.round(page(rng, n, fields, 2.0, 2.0) * 256) / np.float32(256)
    flags = schema(fields, [3])
    terms = [(0, [(2, 4), (8, 8)]), (1, []), (2, [(0, 9)]), (3, [(11, 12)])]
    _, dz, _ = run_loss(z, flags, terms)
    h = np.float32(2.0**-10)
    for t, tag in [(0, 0), (2, 1), (3, 2), (8, 1), (5, 6), (11, 7), (12, 8), (19, 3), (10, 0), (9, 4)]:
        up, down = z.copy(), z.copy()
        up[t, tag] += h
        down[t, tag] -= h
        difference = run_loss(up, flags, terms)[2][0] - run_loss(down, flags, terms)[2][0]
        assert dz[t, tag] == pytest.approx(difference / (2 * float(h)), rel=2e-5, abs=1e-7)


def test_gradient_against_torch(path, rng):
    """An implementation in log space with torch's autograd: the page's mass, and its mass with the run forced."""
    torch = pytest.importorskip("torch")
    n, fields = 14, 3
    z = page(rng, n, fields, 2.0, 1.0)

    def log_mass(x, allowed):
        never = torch.tensor(-1e30, dtype=torch.float64)
        x = torch.where(torch.tensor(allowed), x, never)
        masks = 1 << fields
        closed = [x.new_zeros(())] + [never] * (masks - 1)
        inside = {}
        for t in range(n):
            after, ending = {}, [[c + x[t, 0]] for c in closed]
            for m in range(masks):
                for f in range(fields):
                    if m >> f & 1:
                        terms = [closed[m ^ 1 << f] + x[t, 1 + 2 * f]]
                        if (m, f) in inside:
                            terms.append(inside[m, f] + x[t, 2 + 2 * f])
                        after[m, f] = torch.logsumexp(torch.stack(terms), 0)
                        ending[m].append(after[m, f])
            closed, inside = [torch.logsumexp(torch.stack(e), 0) for e in ending], after
        return torch.logsumexp(torch.stack(closed), 0)

    terms = [(0, [(2, 4), (8, 8)]), (1, []), (2, [(0, 1), (13, 13)])]
    x = torch.tensor(z.astype(np.float64), requires_grad=True)
    free = np.ones(z.shape, bool)
    want, total = log_mass(x, free), 0
    expected = []
    for field, places in terms:
        forced = []
        for first, last in places or [(0, -1)]:
            allowed = free.copy()
            allowed[:, [1 + 2 * field, 2 + 2 * field]] = False
            for t in range(first, last + 1):
                allowed[t] = False
                allowed[t, 1 + 2 * field + (t > first)] = True
            if last + 1 < n:
                allowed[last + 1, 2 + 2 * field] = False
            forced.append(log_mass(x, allowed))
        expected.append(want - torch.logsumexp(torch.stack(forced), 0))
        total = total + expected[-1]
    total.backward()
    losses, dz, _ = run_loss(z, schema(fields), terms)
    np.testing.assert_allclose(losses, [float(e.detach()) for e in expected], rtol=1e-11)
    np.testing.assert_allclose(dz, x.grad.numpy(), rtol=1e-6, atol=1e-10)


CASES = [(0, 2, (), [(0, [])]), (6, 1, (), [(0, [(1, 1), (2, 5)])]), (9, 3, (), [(0, []), (1, [(0, 8)]), (2, [])]),
         (12, 4, (2,), [(2, [(3, 5)]), (0, [(1, 1), (2, 2), (3, 3)]), (3, [(6, 7)])]), (5, 3, (), []),
         (6, 8, (), [(7, [(0, 1), (4, 5)]), (0, [(5, 5)])]), (8, 12, (5,), [(f, [(f % 7, 7)]) for f in range(12)]),
         (4, 3, (0, 1, 2), [(0, [(0, 0)]), (0, [(2, 3)])]), (6, 11, (), [])]


@pytest.mark.parametrize("n, fields, repeated, terms", CASES)
@pytest.mark.parametrize("size", [1.0, 40.0])
def test_bits_equal_reference(path, rng, n, fields, repeated, terms, size):
    z, flags = page(rng, n, fields, size), schema(fields, repeated)
    weights = rng.uniform(0, 2, len(terms)).tolist()
    want = ref.run_loss(z, flags, terms, weights, 0.3)
    for degree in (1, 2, 3):
        with k.degree(degree):
            losses, dz, _ = run_loss(z, flags, terms, weights, 0.3)
            assert losses.tolist() == want[0]
            assert same_bits(dz, want[1])


def test_without_gradient_the_same_loss(path, rng):
    z, losses = page(rng, 30, 4), np.zeros(1)
    args = (z, schema(4), np.array([2], np.int32), np.array([[0, 3, 5]], np.int32))
    alone = k.run_loss(*args, losses)
    assert alone == k.run_loss(*args, losses, np.empty_like(z)) and alone == (losses[0], 1.0)


def test_sure_and_wrong(path):
    """A run of 100 words, 15 nats a word, where the value is elsewhere: a finite loss of their size and the gradient
    that takes the run away; the same page with the right place: no loss, no gradient."""
    z = np.zeros((150, 3), np.float32)
    z[:, 0] = 15
    z[20:120, 0] = 0
    z[20, 1] = 15
    z[21:120, 2] = 15
    losses, dz, _ = run_loss(z, schema(1), [(0, [(130, 131)])])
    assert losses[0] == pytest.approx(1500 + 30, rel=1e-3)
    np.testing.assert_allclose(dz[20, [0, 1]], [-1, 1], atol=1e-4)
    np.testing.assert_allclose(dz[130, [0, 1]], [1, -1], atol=1e-4)
    losses, dz, _ = run_loss(z, schema(1), [(0, [(20, 119)])])
    assert 0 <= losses[0] < 1e-4 and np.abs(dz).max() < 1e-4
    losses, dz, _ = run_loss(z, schema(1), [(0, [])])
    assert losses[0] == pytest.approx(1500, rel=1e-3) and dz[60, 0] == pytest.approx(-1, abs=1e-4)


@pytest.mark.parametrize("seed", [0, 17, 47])
def test_logits_hundreds_apart_have_a_finite_gradient(path, seed):
    """Seeds 17 and 47 reach divisors so small that a share of them would overflow."""
    z = np.random.default_rng(seed).normal(0, 400, (40, 3)).astype(np.float32)
    losses, dz, _ = run_loss(z, schema(1), [(0, [])])
    want = ref.run_loss(z, schema(1), [(0, [])])
    assert np.isfinite(losses).all() and np.isfinite(dz).all()
    assert losses.tolist() == want[0] and same_bits(dz, want[1])


def test_not_finite(path):
    z = np.zeros((3, 3), np.float32)
    z[1, 1] = np.nan
    losses, dz, both = run_loss(z, schema(1), [(0, [(0, 0)])])
    assert np.isnan(losses).all() and np.isnan(dz).all() and np.isnan(both[0]) and both[1] == 1


def test_read_only_and_bad_arguments(rng):
    z = page(rng, 4, 2)
    z.flags.writeable = False
    run_loss(z, schema(2), [(0, [(0, 1)])])
    for terms, flags, message in [
            ([(2, [])], schema(2), r"fields\[0\] = 2: expected 0\.\.1"),
            ([(0, [(1, 4)])], schema(2), r"places\[0\] has words 1\.\.4: expected 0 <= first <= last < 4"),
            ([(0, [(2, 2), (1, 1)])], schema(2), r"places\[1\] = \(0, 1, 1\): expected ascending"),
            ([(0, [(1, 1), (1, 1)])], schema(2), r"places\[1\] = \(0, 1, 1\): expected ascending"),
            ([(1, [])], schema(2, [1]), "term 0 has 0 places: expected one, field 1 is repeated"),
            ([(1, [(0, 0), (1, 1)])], schema(2, [1]), "term 0 has 2 places")]:
        with pytest.raises(ValueError, match=message):
            run_loss(z, flags, terms)
    with pytest.raises(ValueError, match=r"weights\[0\] = -1"):
        run_loss(z, schema(2), [(0, [])], [-1.0])
    with pytest.raises(ValueError, match="scale = nan"):
        run_loss(z, schema(2), [(0, [])], None, float("nan"))
    with pytest.raises(ValueError, match=r"dlogits has shape \(1, 5\)"):
        k.run_loss(z, schema(2), np.zeros(0, np.int32), np.zeros((0, 3), np.int32), np.zeros(0), z[:1].copy())
