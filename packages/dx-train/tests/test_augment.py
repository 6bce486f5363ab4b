"""Augmentation and dropout: functions of (seed, epoch, example id), with the shares they state."""
import numpy as np
import pytest
import tiny
from dx_train import augment, dropout_mask
from dx_train.augment import Draws, choose_variant

BUCKETS = tiny.CONFIG.position_buckets


def look(example):
    """Bytes of what the model sees."""
    page = example.page
    return page.characters[page.inverse].tobytes(), page.table_ids[1:].tobytes()


def test_it_depends_on_seed_epoch_and_id_alone():
    a, b = tiny.example(1), tiny.example(2)
    first = look(augment(a, 3, 0, 1.0, BUCKETS))
    augment(b, 3, 0, 1.0, BUCKETS)
    assert look(augment(a, 3, 0, 1.0, BUCKETS)) == first
    others = [augment(a, 4, 0, 1.0, BUCKETS), augment(a, 3, 1, 1.0, BUCKETS),
              augment(tiny.R(a, id="other#0"), 3, 0, 1.0, BUCKETS)]
    assert all(look(other) != first for other in others)


def test_features_geometry_and_the_example_itself_stay():
    example = tiny.example(4)
    before, got = look(example), augment(example, 1, 0, 1.0, BUCKETS)
    for name in ("features", "relative", "real", "whole"):
        assert getattr(got.page, name) is getattr(example.page, name)
    assert look(example) == before and got.targets is example.targets and got.id == example.id
    assert augment(example, 1, 0, 0.0, BUCKETS) is example


def test_positions_follow_the_formula():
    """Scale, shift and jitter in binary64, then the buckets of positions."""
    example = tiny.example(4)
    for epoch in range(5):
        got = augment(example, 9, epoch, 0.7, BUCKETS).page.table_ids[1:]
        draws, rel = Draws(9, epoch, example.id), example.page.relative
        u, z = 2 * draws.uniform("page", 4) - 1, draws.normal("jitter", rel.shape).astype(float)
        for k in range(4):
            axis = k % 2
            moved = rel[:, k] * (1 + 0.1 * 0.7 * u[axis]) + 0.05 * 0.7 * u[2 + axis] + 0.005 * 0.7 * z[:, k]
            assert np.array_equal(got[k], np.clip(np.floor(moved * BUCKETS), 0, BUCKETS - 1).astype(np.int32))


def test_characters_change_as_often_as_stated():
    """2 % of characters replaced, 2 % of rows masked, digits permuted on 30 % of the pages; padding stays padding."""
    example = tiny.example(3)
    before = example.page.characters[example.page.inverse]
    there, digits = before != 0, (before >= 17) & (before < 27)
    changed = masked = permuted = rows = count = 0
    epochs = 2000
    for epoch in range(epochs):
        after = augment(example, 5, epoch, 1.0, BUCKETS).page
        after = after.characters[after.inverse]
        assert np.array_equal(after == 0, ~there) and after.max() <= 255
        mask = (np.where(there, after, 95) == 95).all(1)
        masked, rows = masked + int(mask.sum()), rows + len(mask)
        keep = there & ~digits & ~mask[:, None]
        changed, count = changed + int((after != before)[keep].sum()), count + int(keep.sum())
        moved = digits & ~mask[:, None]
        permuted += (after != before)[moved].mean() > 0.5
    assert abs(changed / count - 0.02) < 0.003 and abs(masked / rows - 0.02) < 0.004
    assert abs(permuted / epochs - 0.3) < 0.04


def test_digit_permutation_is_one_over_the_page():
    example = tiny.example(3)
    before = example.page.characters[example.page.inverse]
    for epoch in range(200):
        draws = Draws(5, epoch, example.id).uniform("digits", 11)
        after = augment(example, 5, epoch, 1.0, BUCKETS).page
        after = after.characters[after.inverse]
        if draws[0] < 0.3:
            order = sorted(range(10), key=lambda i: draws[1 + i])
            pairs = {(int(a), int(b)) for a, b in zip(before.ravel(), after.ravel()) if 17 <= a < 27 and 17 <= b < 27}
            hits = sum(b - 17 == order[a - 17] for a, b in pairs)
            assert hits >= 0.6 * len(pairs)
            return
    raise AssertionError("no page had its digits permuted")


def test_variants_stand_in_as_often_as_asked():
    example, other = tiny.examples(2, True)[1], tiny.example(100)
    drawn = [choose_variant(example, 2, epoch, 0.6) for epoch in range(1000)]
    taken = [e for e in drawn if e.page is not example.page]
    assert abs(len(taken) / 1000 - 0.6) < 0.05 and {e.id for e in drawn} == {example.id}
    assert all(len(e.page) == len(other.page) and len(e.targets.tag) == len(e.page) for e in taken)
    assert choose_variant(example, 2, 0, 0.0) is example
    plain = tiny.example(0)
    assert choose_variant(plain, 2, 0, 1.0) is plain


def test_an_empty_page_passes():
    example = tiny.example(0)
    empty = tiny.R(example, page=example.page.window(0, 0))
    assert augment(empty, 1, 0, 1.0, BUCKETS) is empty


def test_dropout_mask():
    key = dict(seed=7, example="a#0", step=3, site="head")
    mask = dropout_mask((200, 50), 0.1, **key)
    assert mask.dtype == np.float32 and sorted(set(mask.ravel().tolist())) == [0.0, float(np.float32(1 / 0.9))]
    assert abs((mask == 0).mean() - 0.1) < 0.02
    assert mask.tobytes() == dropout_mask((200, 50), 0.1, **key).tobytes()
    assert mask[:3].tobytes() == dropout_mask((3, 50), 0.1, **key).tobytes()
    for change in ({"seed": 8}, {"example": "b#0"}, {"step": 4}, {"site": "body"}, {"view": 1}):
        assert dropout_mask((200, 50), 0.1, **{**key, **change}).tobytes() != mask.tobytes()
    assert (dropout_mask((4,), 0.0, **key) == 1).all()
    with pytest.raises(ValueError, match="rate = 1.0"):
        dropout_mask((4,), 1.0, **key)
