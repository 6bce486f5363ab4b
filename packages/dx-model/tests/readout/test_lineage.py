"""Lineage: ordered stages, each with its data, its procedure and where it ended."""
import dataclasses

import pytest
from dx_model.readout import Lineage, ReadoutError, Stage, admit_lineage
from dx_model.readout.lineage import FAMILIES


def lineage(family, **changes):
    stages = []
    for i, kind in enumerate(FAMILIES[family]):
        negatives = kind != "mixed_contrastive" if kind.endswith("_contrastive") else None
        stages.append(Stage(kind, (f"data-{i}",), f"procedure-{i}", f"checkpoint-{i}", negatives))
    return Lineage(tuple(stages), **changes)


def last(line):
    return line.stages[-1].checkpoint


@pytest.mark.parametrize("family", FAMILIES)
def test_a_complete_lineage_is_admitted(family):
    line = lineage(family)
    admit_lineage(line, family, last(line), ["encoder.weight"])
    assert len(set(line.ids())) == len(line.stages)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_stage_left_out_or_swapped_is_another_lineage(family):
    line = lineage(family)
    others = [Lineage(line.stages[:i] + line.stages[i + 1:]) for i in range(len(line.stages))]
    others += [Lineage(line.stages[::-1])] if len(line.stages) > 1 else []
    for other in others:
        assert other.digest() != line.digest()
        with pytest.raises(ReadoutError, match="lineage.stages"):
            admit_lineage(other, family, last(line))


def test_c_pack_is_an_ordered_record_of_data_and_procedure():
    line = lineage("c-pack")
    for i in range(3):
        for change in ({"data": ("other",)}, {"procedure": "other"}, {"checkpoint": "other"}):
            stages = list(line.stages)
            stages[i] = dataclasses.replace(stages[i], **change)
            other = Lineage(tuple(stages))
            assert other.ids()[:i] == line.ids()[:i]  # what came before is the same
            assert all(a != b for a, b in zip(other.ids()[i:], line.ids()[i:]))  # nothing after is
    with pytest.raises(ReadoutError, match=r"lineage.stages\[1\].data"):
        admit_lineage(Lineage((line.stages[0], dataclasses.replace(line.stages[1], data=()), line.stages[2])), "c-pack",
                      last(line))


def test_bidirectional_visibility_alone_is_no_llm2vec():
    """An information path is added; the weights trained to use it are what the later stages name."""
    line = lineage("llm2vec")
    for count in (2, 3):
        with pytest.raises(ReadoutError, match="lineage.stages"):
            admit_lineage(Lineage(line.stages[:count]), "llm2vec", line.stages[count - 1].checkpoint)
    with pytest.raises(ReadoutError, match="lineage.checkpoint"):
        admit_lineage(line, "llm2vec", line.stages[1].checkpoint)


def test_the_mixed_stage_admits_no_negatives_from_the_batch():
    line = lineage("nv-embed")
    mixed = dataclasses.replace(line.stages[2], in_batch_negatives=True)
    with pytest.raises(ReadoutError, match=r"lineage.stages\[2\].in_batch_negatives"):
        admit_lineage(Lineage((*line.stages[:2], mixed)), "nv-embed", last(line))
    with pytest.raises(ReadoutError, match=r"lineage.stages\[1\].in_batch_negatives"):
        admit_lineage(Lineage((line.stages[0], dataclasses.replace(line.stages[1], in_batch_negatives=None), mixed)),
                      "nv-embed", last(line))


def test_training_state_is_no_part_of_a_release():
    line = lineage("retromae")
    with pytest.raises(ReadoutError, match="lineage.exported"):
        admit_lineage(line, "retromae", last(line), ["token_emb.weight", "decoder.blocks.0.qkv.weight"])
