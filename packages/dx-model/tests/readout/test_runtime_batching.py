"""Batches: padding changes nothing, and every result comes back to the example it belongs to."""
import threading

import numpy as np
import pytest
from dx_model import degree
from dx_model.bert import Bert, BertConfig
from dx_model.readout import Pooling, ReadoutError, row_table
from dx_model.readout.heads import LabelMap, SingleLabelHead
from dx_model.runtime import Example, PaddingDifference, pad_batch, padding_differences, plan_batches, run_batches
from readout_record import refused
from runtime_source import F, examples, source

CONFIG = BertConfig(vocab_size=40, max_position_embeddings=48, hidden_size=32, num_hidden_layers=2,
                    num_attention_heads=4, intermediate_size=48)


@pytest.fixture(scope="module")
def model():
    return Bert.initial(CONFIG, 3)


def contextual(model):
    return lambda r: model.forward_padded(r.input_ids, r.attention_mask, r.token_type_ids)


def masks(rectangle):
    return np.array([t.attention for t in rectangle.tables])


@pytest.mark.parametrize("mode", ["mean", "max", "first", "last", "bert_pooler", "position_weighted_mean"])
def test_padding_moves_no_bit_from_rows_to_scores(model, rng, mode):
    """Contextual rows, pooled vectors and logits of padded batches equal those of each example alone, bit for bit."""
    batch = examples(rng, 5, 3, 11, 8)
    assert padding_differences(batch, contextual(model)) == []
    head = SingleLabelHead(LabelMap(("a", "b", "c")), rng.standard_normal((3, 32)).astype(F), np.zeros(3, F))
    pooler = {"pooler.weight": rng.standard_normal((32, 32)).astype(F), "pooler.bias": np.zeros(32, F)}
    pooling = Pooling(mode)

    def scores(r):
        pooled = pooling.forward(contextual(model)(r), masks(r), pooler if mode == "bert_pooler" else None)
        return head.forward(pooled.vectors)

    for count in (1, 2):
        with degree(count):
            assert padding_differences(batch, scores) == []


def test_left_padding_with_unshifted_positions_is_found(model, rng):
    """A forward that counts columns instead of visible rows passes every check of shapes; the comparison by row names
    it, on the left and on both sides, never on the right."""
    p = Bert.initial(CONFIG, 3).parameters

    def unshifted(r):
        rows = np.zeros((*r.input_ids.shape, 32), F)
        for b in range(len(r.ids)):
            columns = r.columns(b)
            shifted = Bert.initial(CONFIG, 3)
            shifted.parameters["embeddings.position"][:len(columns)] = p["embeddings.position"][columns]
            shifted.repack()
            rows[b, columns] = shifted.forward(r.input_ids[b, columns], [0, len(columns)])
        return rows

    found = padding_differences(examples(rng, 5, 4), unshifted, added=(2,))
    assert found and {d.side for d in found} == {"left", "both"}
    assert found[0] == PaddingDifference("e0", "left", 2, 0)


def test_the_physical_first_column_is_no_first_row(model, rng):
    """hidden[:, 0] is a padding row under left padding: found by the comparison, refused as a mask."""
    batch = examples(rng, 5, 4)
    found = padding_differences(batch, lambda r: contextual(model)(r)[:, 0])
    assert {(d.side, d.row) for d in found} == {("left", None), ("both", None)}
    left = pad_batch(batch, side="left", length=7)
    first = np.zeros((2, 7), bool)
    first[:, 0] = True
    with pytest.raises(ReadoutError, match="padding|rows that the model sees"):
        Pooling("first").forward(contextual(model)(left), first, attention=masks(left))
    right = pad_batch(batch, length=7)
    safe = [Pooling("first").forward(contextual(model)(r), masks(r)).vectors.tobytes() for r in (left, right)]
    assert safe[0] == safe[1]


def test_zero_filling_before_a_maximum_is_found(rng):
    """With negative rows only, a padding row set to 0 wins the maximum."""
    batch = examples(rng, 4, 6)

    def zero_filled(r):
        rows = np.where(r.attention_mask != 0, -F(1) - r.input_ids.astype(F), F(0))[..., None]
        return rows.max(axis=1)

    assert padding_differences(batch, zero_filled)
    safe = lambda r: Pooling("max").forward(  # noqa: E731
        np.where(r.attention_mask != 0, -F(1) - r.input_ids.astype(F), F(0))[..., None], masks(r)).vectors
    assert padding_differences(batch, safe) == []


def test_results_come_back_by_id_whatever_the_batches_were(model, rng):
    batch = examples(rng, 9, 3, 20, 4, 4, 17, 3, 6)
    want = np.concatenate([Pooling("mean").forward(contextual(model)(r), masks(r)).vectors
                           for r in (pad_batch([e]) for e in batch)])
    seen = []

    def vectors(r):
        seen.append(r.input_ids.shape)
        return Pooling("mean").forward(contextual(model)(r), masks(r)).vectors

    for side, most, bucket in (("right", 40, 1), ("left", 64, 8), ("both", 20, 16)):
        got = run_batches(batch, vectors, most_rows=most, bucket=bucket, side=side)
        assert got.tobytes() == want.tobytes()
    assert max(b * s for b, s in seen) <= 64 and len(seen) > 6
    order = rng.permutation(len(batch))
    assert run_batches([batch[i] for i in order], vectors, most_rows=40).tobytes() == want[order].tobytes()


def test_workers_may_finish_in_any_order(model, rng):
    """Independent examples encoded by several workers: results are put where their ids say, however they come in."""
    batch = examples(rng, 9, 3, 20, 4, 4, 17)
    plan, by_id = plan_batches(batch, most_rows=20), {e.id: e for e in batch}
    done, lock = [], threading.Lock()

    def work(ids):
        r = pad_batch([by_id[i] for i in ids])
        vectors = Pooling("mean").forward(contextual(model)(r), masks(r)).vectors
        with lock:
            done.append((ids, vectors))

    workers = [threading.Thread(target=work, args=(ids,)) for ids in plan.batches[::-1]]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    want = run_batches(batch, lambda r: Pooling("mean").forward(contextual(model)(r), masks(r)).vectors, most_rows=99)
    assert len(done) == len(plan.batches) > 2
    assert plan.scatter(done).tobytes() == plan.scatter(done[::-1]).tobytes() == want.tobytes()


def test_the_plan_depends_on_no_order_and_groups_like_lengths(rng):
    batch = examples(rng, 9, 3, 20, 4, 4, 17)
    plan = plan_batches(batch, most_rows=40, bucket=8)
    assert plan.batches == (("e2", "e5"), ("e0", "e1", "e3", "e4")) and plan.ids == tuple(e.id for e in batch)
    assert plan_batches(batch[::-1], most_rows=40, bucket=8).batches == plan.batches
    assert plan_batches(batch, most_rows=40, most_examples=1).batches[0] == ("e2",)
    refused(lambda: plan_batches(batch, most_rows=19), "example[e2].rows")
    refused(lambda: plan_batches([*batch, batch[0]], most_rows=40), "examples.id")
    assert plan_batches([], most_rows=4).batches == ()


def test_a_sorted_batch_without_the_way_back_is_found(rng):
    """Results in the order of evaluation have the right shape and the wrong owners; the plan takes them by id alone."""
    batch = examples(rng, 3, 9, 5)
    plan = plan_batches(batch, most_rows=100, bucket=1)
    ids, = plan.batches
    values = np.array([len(e) for e in batch for i in ids if i == e.id])
    in_sorted_order = np.array([9, 5, 3])
    assert ids == ("e1", "e2", "e0") and values.shape == in_sorted_order.shape
    assert plan.scatter([(ids, in_sorted_order)]).tolist() == [3, 9, 5]
    refused(lambda: plan.scatter([(ids[:2], in_sorted_order)]), "results.ids")
    refused(lambda: plan.scatter([(ids[:2], in_sorted_order[:2])]), "results.ids")
    refused(lambda: plan.scatter([(("e1", "e1", "e0"), in_sorted_order)]), "results.ids")
    refused(lambda: plan.scatter([(("e1", "e7", "e0"), in_sorted_order)]), "results.ids")
    refused(lambda: plan.scatter([(("e1",), np.zeros((1, 2))), (("e2", "e0"), np.zeros((2, 3)))]), "results.shape")


def test_a_rectangle_that_changed_a_row_is_found(rng):
    batch = examples(rng, 4, 6)
    for name, column in (("input_ids", 1), ("position_ids", 2)):
        with pytest.raises(ReadoutError, match=r"batch\[0\]"):
            run_batches(batch, lambda r, n=name, c=column: getattr(r, n).__setitem__((slice(None), c), 39),
                        most_rows=99)
    assert batch[0].digest != Example("e0", batch[0].rows, "r2").digest
    assert batch[0].digest == Example("other", batch[0].rows, "r1").digest


def test_examples_and_rectangles_are_checked(rng):
    table = source([5, 6])
    refused(lambda: Example("", table, "r"), "example.id")
    refused(lambda: Example("a", table, ""), "example[a].release")
    refused(lambda: Example("a", row_table([1, 1], [0, 0]), "r"), "example[a].rows.ids")
    refused(lambda: Example("a", row_table([1, 0], [0, 0], ids=[1, 2]), "r"), "example[a].rows")
    batch = examples(rng, 5, 3)
    refused(lambda: pad_batch(batch, length=4), "length")
    refused(lambda: pad_batch(batch, side="up"), "side")
    refused(lambda: pad_batch([]), "examples")
    assert pad_batch(batch, multiple=8, pad_id=1).input_ids.shape == (2, 8)
