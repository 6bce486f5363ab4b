"""The last list of failures that pass every check of shape, injected one by one across packages, and what finds them.

Those of contrastive training, batching, thresholds, migration and rollback are injected beside their code
(readout_rows/0x0A.json names them all).
"""
import numpy as np
import pytest
from dx_labels.release.store import admit_caches
from dx_model import readout, runtime
from dx_model.readout import heads

from dx_labels import release as releases

F = np.float32
# token, attention, special, sequence, word, offset: "playing in Rome"
TRACE = [(101, 1, 1, None, None, None), (7, 1, 0, 0, 0, (0, 4)), (8, 1, 0, 0, 0, (4, 7)), (9, 1, 0, 0, 1, (8, 10)),
         (6, 1, 0, 0, 2, (11, 15)), (102, 1, 1, None, None, None), (0, 0, 1, None, None, None)]
DIGESTS = {name: f"{i:x}" * 64 for i, name in enumerate(("backbone", "head", "tokenizer", "other"), 1)}


def table(trace=TRACE):
    ids, attention, special, sequence, words, offsets = zip(*trace, strict=True)
    return readout.row_table(attention, special, sequence, words, offsets, ids=ids)


def manifest(**changes):
    made = {
        "artifact": {"architecture": "encoder", "backbone_sha256": DIGESTS["backbone"], "head_sha256": DIGESTS["head"],
                     "adapter": "none", "task_revision": "t1", "objective": "cross_entropy"},
        "input": {"tokenizer_sha256": DIGESTS["tokenizer"], "max_length": 16, "truncation": "longest_first",
                  "truncation_side": "right", "padding_side": "right", "template": None,
                  "special_token_ids": {"cls": 101, "sep": 102, "pad": 0}},
        "rows": {"mask_source": "content_mask", "mask_polarity": "one_keeps", "include_special": False,
                 "include_prompt": False, "offsets_required": True, "word_ids_required": False, "pieces": None},
        "contextual_state": {"layers": [-1], "layers_kind": "one", "axes": ["batch", "row", "channel"], "width": 2,
                             "final_norm_applied": True, "parameter_dtype": "float32", "compute_dtype": "float32",
                             "accumulation_dtype": "float32"},
        "readout": {"family": "single_vector", "pooling": ["mean"], "weights": None, "attention": None,
                    "empty": "reject", "projection": None, "dropout": 0.0, "normalize": {"kind": "none"}},
        "output": {"kind": "classification", "labels": ["no", "yes"], "null_label": None},
        "score": {"type": "logit", "normalizes_operands": False, "temperature": None, "threshold": None,
                  "tie_rule": "lowest_index"},
        "runtime": {"framework_revision": "1", "numerics_version": 1, "backend": "dx", "device": "cpu",
                    "export_format": "safetensors+json"},
        "release": {"schema": readout.MANIFEST_SCHEMA, "tests": ["probe"], "parent": None, "migration": None,
                    "files": {}, "rollback_to": []}}
    for part, fields in changes.items():
        made[part] |= fields
    return made


def semantic(**changes):
    return releases.readout_tuple(manifest(**changes))


def test_input_a_tokenizer_or_template_that_drifted():
    """The same shape of ids: another digest is refused, the trace from source to rows moves, and nothing is kept."""
    with pytest.raises(readout.ReadoutError, match="input.tokenizer_sha256"):
        readout.Manifest(manifest()).check("input", tokenizer_sha256=DIGESTS["other"])
    drifted = [*TRACE[:3], (*TRACE[3][:5], (7, 10)), *TRACE[4:]]  # one piece now begins a character earlier
    old, new = (runtime.Example("e", table(trace[:6]), "r1").digest for trace in (TRACE, drifted))
    assert old != new
    for change in ({"tokenizer_sha256": DIGESTS["other"]}, {"template": "query: {}"}):
        assert set(releases.effect_between(semantic(), semantic(input=change)).values()) == {"invalid"}


def test_rows_special_padding_or_second_pieces_in_the_readout():
    """All seven rows give a vector of the right width: the manifest's mask takes content rows, losses first pieces."""
    rows, hidden = table(), np.arange(14, dtype=F).reshape(1, 7, 2)
    mask = readout.Manifest(manifest()).row_mask(rows)
    assert mask.tolist() == [False, True, True, True, True, False, False]
    pool = readout.Pooling(("mean",))
    right, wrong = pool.forward(hidden, mask[None]).vectors, pool.forward(hidden, np.ones((1, 7), bool)).vectors
    assert right.shape == wrong.shape and right.tolist() == [[5.0, 6.0]] != wrong.tolist()
    with pytest.raises(readout.ReadoutError, match="rows.content"):
        readout.admit_content_mask(rows.attention[None], np.ones((1, 7), bool))
    assert readout.first_piece_mask(rows).tolist() == [False, True, False, True, True, False, False]
    assert rows.offsets[mask].tolist() == [[0, 4], [4, 7], [8, 10], [11, 15]]


def test_pooling_a_maximum_over_zeros_or_a_wrong_denominator():
    """Negative rows padded left, right, and not at all: the pools agree to the bit; zero filling and the padded size as
    denominator do not."""
    rows = np.array([[-3, -1], [-2, -5]], F)
    for mode in ("max", "mean", "first"):
        found = []
        for before, after in ((0, 0), (2, 0), (0, 3)):
            hidden = np.pad(rows, ((before, after), (0, 0)))[None]
            mask = np.pad(np.ones(2, bool), (before, after))[None]
            found.append(readout.Pooling((mode,)).forward(hidden, mask).vectors.tobytes())
        assert len(set(found)) == 1
        pooled = np.frombuffer(found[0], F)
        assert pooled.tolist() == {"max": [-2, -1], "mean": [-2.5, -3], "first": [-3, -1]}[mode]
    padded = np.pad(rows, ((0, 2), (0, 0)))
    assert padded.max(0).tolist() == [0, 0] and (padded.sum(0) / 4).tolist() == [-1.25, -1.5]  # what goes wrong


def test_head_another_order_of_labels_at_the_same_width():
    """Logits of the same shape mean another label: a semantic probe and the ordered map both say so."""
    labels, swapped = heads.LabelMap(("no", "yes")), heads.LabelMap(("yes", "no"))
    head = heads.SingleLabelHead(labels, np.array([[1, 0], [0, 1]], F), np.zeros(2, F))
    probe = np.array([[0, 3]], F)  # a text that says yes
    best = int(head.forward(probe)[0].argmax())
    assert labels.names[best] == "yes" != swapped.names[best]
    with pytest.raises(readout.ReadoutError, match=r"output.labels\[0\]"):
        labels.same(swapped)
    old, new = semantic(), semantic(output={"labels": ["yes", "no"]})
    record = releases.migration(old, new, source=old.digest, target=new.digest, rollback_to="r",
                                tests=[("shapes", True)])
    with pytest.raises(releases.ReleaseError, match="reordered labels move with the head's rows"):
        releases.admit_migration(record, old, new)
    moved = head.with_labels(swapped)
    assert swapped.names[int(moved.forward(probe)[0].argmax())] == "yes"


def test_span_window_rows_taken_for_source_offsets():
    """The second window's rows 1 to 2 are tokens 2 to 3 of the source: its record gives their characters, the bare row
    numbers give others that exist as well."""
    n = 5
    bare = readout.row_table(np.ones(n, bool), np.zeros(n, bool), np.zeros(n, int), range(n),
                             [(2 * i, 2 * i + 1) for i in range(n)], ids=range(n))
    windows = runtime.cut_windows("doc", bare, runtime.WindowPolicy(3, 2, "center", "spans"), "rel")
    assert [w.tokens for w in windows] == [(0, 3), (1, 4), (2, 5)]
    exact = readout.span_of_rows(windows[1].rows, 1, 2)
    assert exact == (0, 4, 7) and readout.span_of_rows(bare, 1, 2) == (0, 2, 5)
    with pytest.raises(readout.ReadoutError):
        runtime.admit_windows([windows[0], windows[2]])


def test_score_a_probability_taken_for_a_logit():
    """0.73 passes as a logit: a second sigmoid, or a logit's threshold, is refused by type, and the type is part of the
    release."""
    logit = readout.Scores(np.array([[1.0]], F), readout.ScoreType.LOGIT, "r1", ("yes",))
    once = readout.sigmoid(logit)
    with pytest.raises(readout.ReadoutError, match="scores.type"):
        readout.sigmoid(once)
    with pytest.raises(readout.ReadoutError, match="threshold.type"):
        readout.Threshold(0.0, readout.ScoreType.LOGIT, "dev").accepts(once)
    found = releases.effect_between(semantic(), semantic(score={"type": "sigmoid_probability"}))
    assert found["raw_scores"] == found["decisions"] == "invalid" and found["contextual_cache"] == "reusable"


def test_chunking_an_overlap_counted_twice_or_probabilities_for_logits():
    """Values 2, 4, 10, 20 in windows of three and two: 9, not 10.1667; logits [4, 0] and [0, 0]: 0.8808, not 0.7410;
    and the aggregation is part of the score's release."""
    values, n = np.array([[2], [4], [10], [20]], F), 4
    bare = readout.row_table(np.ones(n, bool), np.zeros(n, bool), np.zeros(n, int), range(n),
                             [(i, i + 1) for i in range(n)], ids=range(n))
    windows = runtime.cut_windows("s", bare, runtime.WindowPolicy(3, 1, "multiplicity", "mean"), "rel")
    rows = [values[slice(*w.tokens)] for w in windows]
    twice = float(np.mean([r.mean() for r in rows]))
    assert runtime.overlap_mean(windows, rows).tolist() == [9.0] and abs(twice - 10.1667) < 1e-4
    parts = [readout.Scores(np.array([row], F), readout.ScoreType.LOGIT, "r1", ("a", "b")) for row in ([4, 0], [0, 0])]
    logits = readout.softmax(runtime.aggregate_scores(parts, "mean_logits"))
    shares = runtime.aggregate_scores([readout.softmax(p) for p in parts], "mean_probabilities")
    assert abs(logits.values[0, 0] - 0.8808) < 5e-5 and abs(shares.values[0, 0] - 0.7410) < 5e-5
    assert logits.release != shares.release
    one, two = (releases.readout_tuple(manifest(), {"policy": "overlap", "aggregation": a})
                for a in ("mean_logits", "mean_probabilities"))
    assert one.digest != two.digest


def test_cache_an_old_vector_after_the_readout_changed(tmp_path):
    """Vectors of equal width from a mean and from a maximum: the new release looks under another namespace and finds
    nothing; the contextual rows stay."""
    old, new = semantic(), semantic(readout={"pooling": ["max"]})
    cache = {(old.namespaces()["vector_cache"], "doc"): [1.0, 2.0]}
    assert (new.namespaces()["vector_cache"], "doc") not in cache
    found = releases.compatibility(old, new)
    assert found["states"]["contextual_cache"] == "reusable" and "contextual_cache" in found["keep"]
    assert found["drop"]["vector_cache"] == old.namespaces()["vector_cache"]
    with pytest.raises(releases.ReleaseError, match="vector_cache"):
        admit_caches({"vector_cache": old.namespaces()["vector_cache"]}, new)
