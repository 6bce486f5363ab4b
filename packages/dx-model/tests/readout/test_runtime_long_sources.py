"""Sources that are longer than the model reads: five policies, what each keeps, and where each ends."""
import numpy as np
import pytest
from dx_model.readout import AttentionPool, LateInteractionRelease, Pooling
from dx_model.runtime import (
    HardTruncation,
    HierarchicalReadout,
    LateInteractionRows,
    LongContext,
    OverlappingWindows,
    WindowPolicy,
)
from dx_model.runtime.long_sources import POLICIES
from readout_record import refused
from runtime_source import F, source

TABLE = source(range(10, 22))
WINDOWS = WindowPolicy(6, 2, "center", "rows")


def rows_of(plan):
    """A stand-in for contextual rows: id and place in the window, so that context shows."""
    return [np.stack([r.rows.ids, np.arange(len(r.rows))], axis=1).astype(F) for r in plan.windows]


def test_hard_truncation_says_what_is_gone():
    for keep, ids, omitted in (("start", [10, 11, 12, 13], (4, 12)), ("end", [18, 19, 20, 21], (0, 8)),
                               ("ends", [10, 11, 20, 21], (2, 10))):
        plan = HardTruncation(6, keep).plan("doc", TABLE, "rel")
        record, = plan.windows
        assert record.rows.ids.tolist() == [2, *ids, 3] and plan.omitted == (omitted,) and plan.rows == 12
        refused(plan.require_complete, "source.omitted")
        assert HardTruncation.reduce(plan, ["out"]) == "out"
    whole = HardTruncation(14, "start").plan("doc", TABLE, "rel")
    assert whole.require_complete().windows[0].rows.ids.tolist() == TABLE.ids.tolist()
    refused(lambda: HardTruncation(2, "start").plan("doc", TABLE, "rel"), "long_source.rows")
    refused(lambda: HardTruncation(6, "middle"), "long_source.keep")


def test_overlapping_windows_keep_every_token_and_their_own_context():
    policy = OverlappingWindows(WINDOWS)
    plan = policy.plan("doc", TABLE, "rel").require_complete()
    rows = policy.reduce(plan, rows_of(plan))
    assert rows[:, 0].tolist() == list(range(10, 22)) and len(plan.windows) == 5
    assert rows[:, 1].tolist() != list(range(1, 13))  # the context is the window's, not the whole source's
    every = OverlappingWindows(WindowPolicy(6, 2, "multiplicity", "mean"))
    plan = every.plan("doc", TABLE, "rel")
    assert abs(float(every.reduce(plan, rows_of(plan))[0]) - 15.5) < 1e-5
    assert every.digest() != policy.digest()


def test_the_hierarchical_readout_is_a_second_model(rng):
    """Its aggregator has parameters and an identity of its own; a trained one gives another vector than a fixed one."""
    fixed = HierarchicalReadout(WINDOWS, Pooling("mean"), "fixed")
    pool = Pooling((AttentionPool(3),))
    parameters = {name: rng.standard_normal(shape).astype(F) for name, shape in pool.parameter_shapes(2).items()}
    trained = HierarchicalReadout(WINDOWS, pool, "digest-1", parameters)
    plan = fixed.plan("doc", TABLE, "rel")
    vectors = [x.mean(axis=0) for x in rows_of(plan)]
    assert np.allclose(fixed.reduce(plan, vectors), np.mean(vectors, axis=0))
    assert not np.allclose(trained.reduce(plan, vectors), fixed.reduce(plan, vectors))
    assert trained.digest() != HierarchicalReadout(WINDOWS, pool, "digest-2", parameters).digest()
    refused(lambda: HierarchicalReadout(WINDOWS, pool, "fixed", parameters), "long_source.aggregator")
    refused(lambda: HierarchicalReadout(WINDOWS, Pooling("mean"), ""), "long_source.aggregator")
    refused(lambda: fixed.reduce(plan, vectors[:2]), "windows.vectors")
    with pytest.raises(ValueError, match="parameters.attention"):
        HierarchicalReadout(WINDOWS, pool, "digest-1", {"attention.v": parameters["attention.v"]}).reduce(plan, vectors)


def test_late_interaction_keeps_many_rows():
    release = LateInteractionRelease("content", "content", "p", "lowest_row", "rows:owned", False)
    policy = LateInteractionRows(WINDOWS, release, "owned")
    plan = policy.plan("doc", TABLE, "rel")
    kept = policy.reduce(plan, rows_of(plan))
    assert kept.rows.shape == (12, 2) and kept.rows[:, 0].tolist() == list(range(10, 22))
    assert kept.rows.nbytes > 4 * 2 * 2  # the price: more than one vector
    assert policy.digest() != LateInteractionRows(WINDOWS, release, "occurrences").digest()


def test_a_long_context_is_another_model_and_ends_too():
    policy = LongContext(14, "long-backbone")
    plan = policy.plan("doc", TABLE, "rel", backbone="long-backbone").require_complete()
    assert len(plan.windows) == 1 and LongContext.reduce(plan, [5]) == 5
    assert plan.windows[0].rows.ids.tolist() == TABLE.ids.tolist()
    refused(lambda: policy.plan("doc", TABLE, "rel", backbone="short-backbone"), "long_source.backbone")
    refused(lambda: policy.plan("doc", source(range(13)), "rel", backbone="long-backbone"), "long_source.rows")
    assert policy.digest() != LongContext(14, "other").digest()


def test_there_are_five_policies_with_their_own_identity():
    assert list(POLICIES) == ["hard_truncation", "overlapping_windows", "hierarchical_readout", "late_interaction",
                              "long_context"]
    assert len({p.retains for p in POLICIES.values()}) == 5
