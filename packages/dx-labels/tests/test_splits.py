"""The seed's split: worked by hand, counted exactly, groups on one side."""
import hashlib

import pytest
from dx_labels.splits import held_out_count, order_key, split, three_parts


def test_the_order_is_the_hash_little_endian_then_the_id():
    assert order_key(7, "a")[0] == int.from_bytes(hashlib.sha256(b"7:a").digest()[:8], "little")
    assert order_key(7, "ä")[1] == "ä".encode()
    kept, held = split(["a", "b", "c", "d"], "0.5", 7)
    assert held + kept == sorted("abcd", key=lambda n: int.from_bytes(hashlib.sha256(f"7:{n}".encode()).digest()[:8],
                                                                      "little"))


@pytest.mark.parametrize("count, fraction, expected", [
    (10, "0.25", 2), (10, "0.35", 4), (2, "0.9", 1), (5, "0.01", 1), (626, "0.1", 63), (6, "0.25", 2), (10, 0.35, 4),
    (100, "0.145", 14), (100, 0.145, 14), (100, "0.155", 16), (3, "0.5", 2), (20, 0.1, 2), (1000, "0.0005", 1)])
def test_rounding_is_half_to_even_of_the_decimal_as_typed(count, fraction, expected):
    assert held_out_count(count, fraction) == expected


@pytest.mark.parametrize("names, fraction", [(["a"], "0.5"), ([], "0.5"), (["a", "b"], "0"), (["a", "b"], "1"),
                                             (["a", "a"], "0.5")])
def test_what_cannot_be_split(names, fraction):
    with pytest.raises(ValueError):
        split(names, fraction, 0)


def test_the_order_of_the_ids_does_not_matter():
    names = [f"page {i}" for i in range(50)]
    assert split(names, "0.2", 3) == split(names[::-1], "0.2", 3) != split(names, "0.2", 4)


def test_three_parts_by_seed_and_seed_plus_one():
    names = [f"page {i}" for i in range(50)]
    training, development, held = three_parts(names, "0.2", "0.1", 3)
    rest, same = split(names, "0.2", 3)
    assert held == same and (training, development) == split(rest, "0.1", 4)
    assert sorted(training + development + held) == sorted(names) and len(held) == 10 and len(development) == 4


def test_groups_stay_on_one_side():
    names = [f"p{i}" for i in range(40)]
    groups = {n: f"supplier {int(n[1:]) % 7}" for n in names[:35]}
    kept, held = split(names, "0.25", 1, groups)
    assert sorted(kept + held) == sorted(names) and 10 <= len(held) <= 15
    for group in set(groups.values()):
        assert len({n in held for n in names if groups.get(n) == group}) == 1
    assert split(names, "0.25", 1, groups) == split(names[::-1], "0.25", 1, groups)
    with pytest.raises(ValueError, match="one group"):
        split(["a", "b"], "0.5", 0, {"a": "x", "b": "x"})
