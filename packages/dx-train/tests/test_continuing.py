"""Continuing from a model with other fields: rows by name, and what is not annotated."""
import dataclasses

import dx_train
import numpy as np
import pytest
import tiny
from dx_train import DocExtract, FineTune, TrainSettings, continue_parameters, only_annotated

OLD = tiny.CONFIG
NEW = dataclasses.replace(OLD, fields=("total", "iban", "date"), roles=("value",), doc_types=("order", "receipt"))


def test_rows_go_by_name():
    old = dx_train.initial_parameters(OLD, 3)
    old["tag_head.bias"][...] = np.arange(5)
    new = continue_parameters(old, NEW, seed=9)
    fresh = dx_train.initial_parameters(NEW, 9)
    # O, B-total, I-total, B-iban, I-iban, B-date, I-date from O, B-date, I-date, B-total, I-total
    for row, before in enumerate([0, 3, 4, None, None, 1, 2]):
        for name in ("tag_head.weight", "tag_head.bias"):
            want = fresh[name][row] if before is None else old[name][before]
            assert new[name][row].tobytes() == want.tobytes()
    assert new["role_head.weight"][1].tobytes() == old["role_head.weight"][3].tobytes()
    assert new["doc_head.weight"][1].tobytes() == old["doc_head.weight"][0].tobytes()
    assert new["doc_head.weight"][0].tobytes() == fresh["doc_head.weight"][0].tobytes()
    for name, array in new.items():
        if not name.startswith(("tag_head", "role_head", "doc_head")):
            assert array.tobytes() == old[name].tobytes(), name
    assert continue_parameters(old, OLD, 9).flat.tobytes() == old.flat.tobytes()


def test_another_size_is_refused():
    with pytest.raises(ValueError, match="hidden_size = 64: expected 32"):
        continue_parameters(dx_train.initial_parameters(OLD, 3), dataclasses.replace(OLD, hidden_size=64))


def test_only_annotated():
    """tra-13: an O on a page with one labelled field is not known to be an O; other fields' terms go."""
    targets = tiny.example(3).targets
    got = only_annotated(targets, OLD, ["total"])
    assert got.run_fields.tolist() == [1] and got.run_places[:, 0].tolist() == [0]
    assert got.run_places[0, 1:].tolist() == targets.run_places[1, 1:].tolist()
    assert np.array_equal(got.tag, np.where(targets.tag >= 3, targets.tag, -1)) and got.tag.dtype == np.int32
    assert only_annotated(targets, OLD, OLD.fields) is targets
    nothing = only_annotated(targets, OLD, [])
    assert (nothing.tag == -1).all() and len(nothing.run_fields) == len(nothing.run_places) == 0
    with pytest.raises(ValueError, match="iban"):
        only_annotated(targets, OLD, ["iban"])


def right(model, name, keys):
    """Share of receipts on which the field's decoded run is the labelled one."""
    field, found = model.config.fields.index(name), 0
    for k in keys:
        example = tiny.example(k, model.config)
        logits = np.ascontiguousarray(model.forward(example.page, ("tag",)).tag)
        tags = np.empty(len(logits), np.int32)
        dx_train.decode_tags(logits, np.zeros(len(model.config.fields), np.uint8), tags)
        runs = [run[1:] for run in dx_train.runs_of_tags(tags).tolist() if run[0] == field]
        place = example.targets.run_places[example.targets.run_fields.tolist().index(field), 1:].tolist()
        found += runs == [place]
    return found / len(keys)


def test_tra_13_a_new_field_does_not_make_the_model_forget():
    """Case tra-13: a model that knows date and total goes on with pages on which only a third field is labelled. The
    scores of the old fields before and after; with everything else labelled as O instead, it forgets them."""
    settings = TrainSettings(steps=60, batch=6, learning_rate=5e-3, warmup=5, weight_decay=0.01)
    base = dataclasses.replace(OLD, roles=(), doc_types=())
    held = range(60, 72)
    first = FineTune(settings).run(DocExtract.initial(base, 1), [tiny.example(k, base) for k in range(24)])
    before = {name: right(DocExtract(first.parameters), name, held) for name in base.fields}
    assert min(before.values()) >= 0.9
    more = dataclasses.replace(base, fields=("date", "total", "shop"))
    start = DocExtract(continue_parameters(first.parameters, more, 2))
    assert all(right(start, name, held) >= before[name] - 0.2 for name in base.fields)
    pages = [tiny.example(k, more) for k in range(30, 50)]
    asked = [dataclasses.replace(e, targets=only_annotated(e.targets, more, ["shop"])) for e in pages]
    by_run = dataclasses.replace(settings, loss_weights={"run": 1.0})
    after = DocExtract(FineTune(by_run).run(start, asked).parameters)
    assert right(after, "shop", held) >= 0.9
    assert all(right(after, name, held) >= before[name] - 0.1 for name in base.fields)
    wrong = [dataclasses.replace(e, targets=dataclasses.replace(
        tiny.only(e.targets, 2), tag=np.where(e.targets.tag >= 5, e.targets.tag, 0).astype(np.int32))) for e in pages]
    forgot = DocExtract(FineTune(settings).run(start, wrong).parameters)
    assert max(right(forgot, name, held) for name in base.fields) <= 0.5
