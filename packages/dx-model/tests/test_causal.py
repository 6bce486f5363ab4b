"""The small token encoder: what a row can see, gradients, token losses, mixture layers."""
import dx_model
import numpy as np
import pytest
from dx_model.causal import (CausalConfig, CausalEncoder, MixtureEncoder, initial_tensors, language_loss,
                             masked_next_token_loss, routing_weights)
from dx_model.readout import FusedScores, ReadoutError

F = np.float32
CONFIG = CausalConfig(vocabulary=50, positions=64, hidden=16, heads=2, inner=24, blocks=2)


def encoder(visibility="causal", seed=0, **sizes):
    config = CausalConfig(**(CONFIG.to_json() | {"visibility": visibility} | sizes))
    return CausalEncoder(config, initial_tensors(config.tensors(), seed))


def ids(n, seed=1):
    return np.random.default_rng(seed).integers(0, 50, n).astype(np.int32)


@pytest.mark.parametrize("path", dx_model.available_paths())
def test_a_later_token_changes_no_earlier_row(path):
    with dx_model.kernel_path(path):
        model, tokens = encoder(), ids(40)
        rows = model.forward(tokens)
        for keep in (1, 15, 16, 17, 33, 39):
            changed = tokens.copy()
            changed[keep:] = (changed[keep:] + 7) % 50
            again = model.forward(changed)
            assert again[:keep].tobytes() == rows[:keep].tobytes() and (again[keep:] != rows[keep:]).any()
            assert model.forward(tokens[:keep]).tobytes() == rows[:keep].tobytes()
        seen = encoder("bidirectional").forward(tokens)
        changed = tokens.copy()
        changed[39] = (changed[39] + 7) % 50
        assert (encoder("bidirectional").forward(changed)[0] != seen[0]).any()


def test_visibility_is_part_of_the_identity():
    assert encoder().digest() != encoder("bidirectional").digest() and encoder().digest() == encoder().digest()


def test_rows_are_the_same_with_and_without_what_backward_needs():
    model, tokens = encoder(), ids(20)
    assert model.forward_saved(tokens)[0].tobytes() == model.forward(tokens).tobytes()


def test_gradients_are_difference_quotients():
    model = encoder(seed=3, vocabulary=9, positions=8, hidden=8, inner=8)
    tokens, rng = ids(6) % 9, np.random.default_rng(0)
    for array in model.tensors.values():
        array += (rng.standard_normal(array.shape) / 4).astype(F)
    model.repack()
    drows = rng.standard_normal((6, 8)).astype(F)
    _, kept = model.forward_saved(tokens)
    gradients = model.backward(tokens, kept, drows)
    assert list(gradients) == list(model.tensors)
    for name, array in model.tensors.items():
        at = tuple(int(v) for v in np.unravel_index(np.abs(gradients[name]).argmax(), array.shape))
        values, before = [], array[at]
        for step in (2.0**-7, -(2.0**-7)):
            array[at] = before + F(step)
            model.repack()
            values.append(float((model.forward(tokens).astype(np.float64) * drows).sum()))
        array[at] = before
        got = gradients[name][at]
        assert abs((values[0] - values[1]) * 2.0**6 - got) < 2e-2 * max(1, abs(got)), name


def test_wrong_sizes_are_named():
    tensors = initial_tensors(CONFIG.tensors())
    for change, field in (({"ln.bias": np.zeros(15, F)}, "tensors.ln.bias"), ({"x": np.zeros(1, F)}, "tensors.x")):
        with pytest.raises(ReadoutError) as caught:
            CausalEncoder(CONFIG, tensors | change)
        assert caught.value.field == field
    with pytest.raises(ReadoutError, match="config.heads"):
        CausalConfig(vocabulary=5, positions=5, hidden=10, heads=4)
    with pytest.raises(ReadoutError, match="ids"):
        encoder().embed([])
    with pytest.raises(ReadoutError, match="ids"):
        encoder().embed(ids(65))


def test_masked_next_token_prediction_reads_the_row_before():
    rng = np.random.default_rng(8)
    rows, weight, tokens = rng.standard_normal((6, 8)).astype(F), rng.standard_normal((50, 8)).astype(F), ids(6)
    masked = [2, 5]
    (numerator, count), drows, _ = masked_next_token_loss(rows, weight, tokens, masked)
    logits = rows.astype(np.float64) @ weight.T.astype(np.float64)
    log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    assert count == 2 and abs(numerator + log_p[1, tokens[2]] + log_p[4, tokens[5]]) < 1e-5
    assert drows[[1, 4]].any(1).all() and not drows[[0, 2, 3, 5]].any()
    same_row = np.full(6, -1, np.int32)
    same_row[masked] = tokens[masked]
    (mlm, _), dmlm, _ = language_loss(rows, weight, same_row)  # the masked row itself: another objective
    assert abs(mlm - numerator) > 1e-3 and dmlm[[2, 5]].any(1).all() and not dmlm[[1, 4]].any()
    for bad in ([], [0], [6]):
        with pytest.raises(ReadoutError, match="masked"):
            masked_next_token_loss(rows, weight, tokens, bad)


def test_a_row_takes_its_top_experts_and_ties_go_to_the_lower_one():
    weights, chosen = routing_weights(np.array([[1, 2, 2, 0], [0, 0, 0, 0]], F), 2)
    assert chosen.tolist() == [[False, True, True, False], [True, True, False, False]]
    assert np.abs(weights.sum(1) - 1).max() < 1e-6 and np.array_equal(weights[1], np.full(4, 0.25, F))
    with pytest.raises(ReadoutError, match="top_k"):
        routing_weights(np.zeros((1, 2), F), 3)


def mixture(**sizes):
    config = CausalConfig(**(CONFIG.to_json() | {"experts": 4, "top_k": 2, "mixtures": 2} | sizes))
    return MixtureEncoder(config, initial_tensors(config.tensors(), 5))


def test_mixture_layers_against_float64():
    model, tokens = mixture(), ids(12)
    rows, routes = model.forward(tokens)
    t = {name: array.astype(np.float64) for name, array in model.tensors.items()}

    def norm(x, at):
        centred = x - x.mean(1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * t[at + ".weight"] + t[at + ".bias"]
    x = model.base.part(norm=False).forward(model.base.embed(tokens)).astype(np.float64)
    for i in range(2):
        a = norm(x, f"mixtures.{i}.ln")
        logits = a @ t[f"mixtures.{i}.router.weight"].T
        p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        assert np.abs(routes[i] - p).max() < 1e-5
        for r in range(len(x)):
            best = np.sort(np.argsort(-logits[r], kind="stable")[:2])
            for e in best:
                at = f"mixtures.{i}.experts.{e}."
                h = a[r] @ t[at + "fc1.weight"].T + t[at + "fc1.bias"]
                h = 0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))
                x[r] += p[r, e] / p[r, best].sum() * (h @ t[at + "fc2.weight"].T + t[at + "fc2.bias"])
    assert np.abs(rows - norm(x, "ln")).max() < 1e-4


def test_routing_weights_of_a_real_router_are_a_second_space():
    """Hidden state and routing coordinates: concatenation is one vector with one dot; fusion keeps two scores and a
    coefficient, and the concatenated dot is the fused score for a coefficient of 1 alone."""
    model = mixture()
    found = []
    for tokens in (ids(9, 1), ids(9, 2)):
        rows, routes = model.forward(tokens)
        found.append((rows[-1], np.concatenate([w[-1] for w in routes])))
    (h0, r0), (h1, r1) = found
    assert r0.shape == (8,) and abs(r0.sum() - 2) < 1e-5 and not np.array_equal(r0, r1)
    concatenated = float(np.concatenate([h0, r0]).astype(np.float64) @ np.concatenate([h1, r1]))
    hidden, routing = float(h0.astype(np.float64) @ h1), float(r0.astype(np.float64) @ r1)
    assert abs(concatenated - (hidden + routing)) < 1e-9
    assert all(abs(concatenated - (hidden + alpha * routing)) > 1e-3 for alpha in (0.0, 0.5, 2.0))
    fused = FusedScores(np.array([[hidden]], F), np.array([[routing]], F), 0.5, "dot")
    assert abs(fused.scores[0, 0] - (hidden + 0.5 * routing)) < 1e-5
    with pytest.raises(ReadoutError, match="moee.export"):
        fused.as_vector()  # an index of concatenated vectors would lose a score and the coefficient


def test_routes_are_the_same_alone_and_for_a_prefix():
    model, tokens = mixture(), ids(30)
    rows, routes = model.forward(tokens)
    short, short_routes = model.forward(tokens[:11])
    assert short.tobytes() == rows[:11].tobytes()
    assert all(a.tobytes() == b[:11].tobytes() for a, b in zip(short_routes, routes))
