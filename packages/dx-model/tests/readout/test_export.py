"""Exported graphs against dx through onnxruntime, and everything that a bare graph would leave to guessing."""
import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from dx_model import ModelFileError, encode_page
from dx_model.bert import Bert, BertConfig
from dx_model.docextract import DocExtract
from dx_model.export import (
    ABI,
    FAMILIES,
    Session,
    Tensor,
    abi_from_json,
    export_docextract,
    export_readout,
    page_inputs,
    read_exported,
    readout_abi,
)
from dx_model.readout import Manifest, Pooling, normalize_rows
from dx_model.readout.heads import (
    LabelMap,
    RegressionHead,
    RegressionObjective,
    SingleLabelHead,
    TokenHead,
    plain_scale,
)
from dx_model.readout.heads.answers import AnswerHead
from dx_model.runtime import pad_batch
from readout_record import CLASSES, record, refused
from runtime_source import F, examples

CONFIG = BertConfig(vocab_size=40, max_position_embeddings=48, hidden_size=32, num_hidden_layers=2,
                    num_attention_heads=4, intermediate_size=48)
LABELS = ("negative", "neutral", "positive")
NEAR = 1e-5


@pytest.fixture(scope="module")
def libraries():
    """(onnx, onnxruntime), or the test is skipped."""
    return (pytest.importorskip("onnx", reason="onnx is not installed"),
            pytest.importorskip("onnxruntime", reason="onnxruntime is not installed"))


@pytest.fixture(scope="module")
def model():
    made = Bert.initial(CONFIG, 3)
    for name, tensor in made.parameters.items():
        if name.endswith("bias"):  # nothing may be cut off by zeros of the initial weights
            tensor.reshape(-1)[:] = (np.arange(tensor.size) % 13 - 6) / F(64)
    made.repack()
    return made


def manifest(**changes):
    state = {"width": 32} | changes.pop("contextual_state", {})
    return Manifest(record(contextual_state=state, **changes))


def everything(**changes):
    """A manifest whose readout reads every visible row."""
    return manifest(rows={"include_special": True, "include_prompt": True}, **changes)


def inputs(rectangle, rows=True):
    given = {"input_ids": rectangle.input_ids, "attention_mask": rectangle.attention_mask,
             "token_type_ids": rectangle.token_type_ids}
    return given | ({"row_mask": masks(rectangle).astype(np.int64)} if rows else {})


def masks(rectangle, content=True):
    return np.array([t.content if content else t.attention for t in rectangle.tables])


def rows_of(model, r):
    return model.forward_padded(r.input_ids, r.attention_mask, r.token_type_ids)


MODES = ["mean", "max", "first", "last", "mean_sqrt_length", "position_weighted_mean", "bert_pooler", "attention",
         "multi_hop_attention"]


@pytest.mark.parametrize("mode", MODES)
def test_embeddings_of_every_pool_are_dx_s(libraries, model, rng, mode):
    sizes = {"attention": {"size": 5, "hops": 1}, "multi_hop_attention": {"size": 5, "hops": 2}}.get(mode)
    m = manifest(readout={"pooling": [mode], "attention": sizes})
    pooling = m.pooling()
    parameters = {n: rng.standard_normal(s).astype(F) / F(4) for n, s in pooling.parameter_shapes(32).items()}
    session = Session(export_readout(model, m, parameters=parameters))
    for side, lengths in (("right", (5, 9, 3)), ("left", (7, 4)), ("both", (6, 6, 11, 3))):
        r = pad_batch(examples(rng, *lengths), side=side, length=max(lengths) + 3)
        want = normalize_rows(pooling.forward(rows_of(model, r), masks(r), parameters).vectors)
        got = session.run(inputs(r))
        assert list(got) == ["embeddings"] and got["embeddings"].dtype == F
        assert np.abs(got["embeddings"] - want).max() < NEAR


def test_padding_on_either_side_gives_the_same_rows(libraries, model, rng):
    """Positions are ranks inside the graph: left padding does not shift them."""
    session, batch = Session(export_readout(model, manifest())), examples(rng, 5, 8)
    alone = [session.run(inputs(pad_batch([e])))["embeddings"][0] for e in batch]
    for side in ("left", "right", "both"):
        got = session.run(inputs(pad_batch(batch, side=side, length=20)))["embeddings"]
        assert np.abs(got - alone).max() < NEAR


def test_classes_are_logits_with_their_labels(libraries, model, rng):
    m = manifest(readout={"normalize": {"kind": "none"}, "pooling": ["bert_pooler"]}, **CLASSES)
    head = SingleLabelHead(LabelMap(LABELS), rng.standard_normal((3, 32)).astype(F), rng.standard_normal(3).astype(F))
    parameters = {n: rng.standard_normal(s).astype(F) / F(6) for n, s in m.pooling().parameter_shapes(32).items()}
    exported = export_readout(model, m, head, parameters=parameters, calibrator="c" * 64)
    r = pad_batch(examples(rng, 5, 9, 3))
    want = head.forward(m.pooling().forward(rows_of(model, r), masks(r), parameters).vectors)
    got = Session(exported).run(inputs(r))["sequence_logits"]
    assert np.abs(got - want).max() < NEAR
    said = exported.abi.semantics
    assert (said.score_type, said.labels, said.calibrator, said.row_mask) == ("logits", LABELS, "c" * 64, "row_mask")
    refused(lambda: export_readout(model, m, parameters=parameters), "head")
    other = SingleLabelHead(LabelMap(LABELS[::-1]), head.linear.weight, head.linear.bias)
    refused(lambda: export_readout(model, m, other, parameters=parameters), "output.labels")


def test_values_tokens_and_boundaries(libraries, model, rng):
    r = pad_batch(examples(rng, 5, 9, 3), side="left", length=11)
    rows, seen = rows_of(model, r), masks(r, content=False)
    none = {"normalize": {"kind": "none"}}
    weight, bias = rng.standard_normal((3, 32)).astype(F), rng.standard_normal(3).astype(F)

    values = everything(readout=none, output={"kind": "regression", "labels": ["a", "b", "c"]},
                        score={"type": "value", "threshold": None})
    head = RegressionHead(plain_scale(("a", "b", "c"), ("m", "m", "m")), RegressionObjective("squared"), weight, bias)
    got = Session(export_readout(model, values, head)).run(inputs(r, rows=False))
    assert np.abs(got["regression"] - head.forward(Pooling("mean").forward(rows, seen).vectors)).max() < NEAR

    kept = {"pooling": [], **none}
    whole = {"include_special": True, "include_prompt": True}
    tokens = manifest(readout=kept, rows=whole | {"pieces": "first"},
                      output={"kind": "token_classification", "labels": list(LABELS)},
                      score={"type": "softmax_probability", "threshold": None})
    head = TokenHead(LabelMap(LABELS), weight, bias)
    got = Session(export_readout(model, tokens, head)).run(inputs(r, rows=False))["token_logits"]
    assert np.abs(got - head.forward(rows, seen)).max() < NEAR and not got[~seen].any()

    spans = everything(readout=kept, output={"kind": "extractive_qa"}, score={"type": "logit", "threshold": None})
    head = AnswerHead(weight[:2].copy(), bias[:2].copy(), 8)
    got = Session(export_readout(model, spans, head)).run(inputs(r, rows=False))
    assert list(got) == ["start_logits", "end_logits"]
    assert np.abs(np.stack([*got.values()], axis=2) - head.forward(rows, seen)).max() < NEAR


def test_token_vectors_come_with_their_row_mask(libraries, model, rng):
    """Without the mask padded rows would enter late interaction; an interface without it is refused."""
    m = manifest(readout={"pooling": [], "projection": {"out_features": 6, "bias": False, "activation": "identity"}},
                 output={"kind": "token_vectors"}, score={"type": "maxsim", "threshold": None})
    weight = rng.standard_normal((6, 32)).astype(F)
    exported = export_readout(model, m, parameters={"projection.weight": weight})
    r = pad_batch(examples(rng, 5, 9), side="left", length=12)
    got = Session(exported).run(inputs(r))
    content = masks(r)
    assert np.array_equal(got["row_mask_out"], content.astype(np.int64))
    want = normalize_rows(rows_of(model, r)[content] @ weight.T)
    assert np.abs(got["token_vectors"][content] - want).max() < NEAR and not got["token_vectors"][~content].any()
    refused(lambda: replace(exported.abi, outputs=exported.abi.outputs[:1]), "abi.outputs.row_mask_out")


def test_an_embedding_with_projection(libraries, model, rng):
    m = manifest(readout={"pooling": ["mean", "max"], "normalize": {"kind": "none"},
                          "projection": {"out_features": 4, "bias": True, "activation": "tanh"}},
                 score={"type": "dot"})
    p = {"projection.weight": rng.standard_normal((4, 64)).astype(F) / F(8),
         "projection.bias": rng.standard_normal(4).astype(F)}
    r = pad_batch(examples(rng, 5, 9))
    got = Session(export_readout(model, m, parameters=p)).run(inputs(r))["embeddings"]
    pooled = Pooling(("mean", "max")).forward(rows_of(model, r), masks(r)).vectors
    assert np.abs(got - np.tanh(pooled @ p["projection.weight"].T + p["projection.bias"])).max() < NEAR
    refused(lambda: export_readout(model, m, parameters={}), "parameters.projection.weight")


def page_model():
    from docextract_pass import CONFIG as SIZES
    made = DocExtract.initial(SIZES, 7)
    for _, tensor in made.parameters.items():
        if not tensor.any():
            tensor.reshape(-1)[:] = (np.arange(tensor.size) % 23 - 11) / F(64)
    made.repack()
    return made


def test_docextract_heads_are_dx_s(libraries):
    from docextract_pass import page
    made = page_model()
    exported = export_docextract(made)
    session = Session(exported)
    for words in (1, 2, 17, 60):
        encoded = encode_page(page(words), made.config.encoding())
        want = made.forward(encoded, ("tag", "role", "doc", "pointer"))
        got = session.run(page_inputs(made, encoded))
        for name in FAMILIES["docextract"]:
            assert got[name].shape == getattr(want, name).shape
            assert np.abs(got[name] - getattr(want, name)).max() < NEAR * max(1.0, np.abs(getattr(want, name)).max())
    assert json.loads(exported.record) == made.config.to_json()
    assert exported.abi.semantics.labels == tuple(made.config.tag_names())
    refused(exported.manifest, "export.kind")
    with pytest.raises(ValueError, match="no words"):
        page_inputs(made, encode_page(page(0), made.config.encoding()))


def test_the_manifest_travels_with_the_file(libraries, model, tmp_path):
    m, path = manifest(), tmp_path / "model.onnx"
    exported = export_readout(model, m)
    digest = exported.save(path)
    assert export_readout(model, m).data == exported.data  # equal in, equal bytes
    found = read_exported(path, digest=digest)
    assert found.manifest() == m and found.abi == exported.abi and found.kind == "readout"
    with pytest.raises(ModelFileError, match="expected 000"):
        read_exported(path, digest="0" * 64)


def test_files_that_say_something_else_are_refused(libraries, model, tmp_path):
    onnx, path = libraries[0], tmp_path / "model.onnx"
    whole = export_readout(model, manifest()).data

    def changed(change):
        proto = onnx.load_from_string(whole)
        change(proto)
        path.write_bytes(proto.SerializeToString())
        with pytest.raises(ModelFileError) as caught:
            read_exported(path)
        return str(caught.value)

    def head(edit):
        def change(proto):
            value = json.loads(proto.metadata_props[0].value)
            edit(value)
            proto.metadata_props[0].value = json.dumps(value)
        return change

    def weight(proto):
        t = next(t for t in proto.graph.initializer if t.name == "embeddings.word")
        array = onnx.numpy_helper.to_array(t).copy()
        array[0, 0] += 1
        t.CopyFrom(onnx.numpy_helper.from_array(array, t.name))

    def rename(proto):
        proto.graph.output[0].name = proto.graph.node[-1].output[0] = "last_hidden_state"

    def axis(proto):
        proto.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "tokens"

    assert "a bare graph" in changed(lambda p: p.ClearField("metadata_props"))
    assert "export.weights" in changed(weight)
    assert "export.outputs" in changed(rename)
    assert "export.input_ids" in changed(axis)
    assert "abi.family" in changed(head(lambda v: v["abi"].update(family="hidden_states")))
    assert "abi.outputs" in changed(head(lambda v: v["abi"].update(family="token_logits")))
    assert "score.threshold" in changed(head(lambda v: v["record"]["score"].pop("threshold")))
    assert "release.content_id" in changed(head(lambda v: v["record"]["score"].update(threshold=0.9)))
    assert "export" in changed(head(lambda v: v.update(extra=1)))
    path.write_bytes(whole[:200])
    with pytest.raises(ModelFileError, match="not an ONNX file"):
        read_exported(path)


def test_inputs_are_checked_before_anything_runs(libraries, model, rng):
    session, r = Session(export_readout(model, manifest())), pad_batch(examples(rng, 5, 3))
    good = inputs(r)
    session.run(good)
    refused(lambda: session.run({k: v for k, v in good.items() if k != "row_mask"}), "inputs.row_mask")
    refused(lambda: session.run(good | {"position_ids": r.position_ids}), "inputs.position_ids")
    refused(lambda: session.run(good | {"input_ids": r.input_ids.astype(np.int32)}), "inputs.input_ids")
    refused(lambda: session.run(good | {"row_mask": good["row_mask"][:, 1:]}), "inputs.row_mask.sequence")
    refused(lambda: session.run(good | {"row_mask": good["row_mask"] * [[1], [0]]}), "inputs.row_mask")


def test_what_is_not_exported_is_named(libraries, model):
    for change, field in (({"contextual_state": {"layers": [-2]}}, "contextual_state.layers"),
                          ({"readout": {"empty": "zero"}}, "readout.empty"),
                          ({"readout": {"pooling": ["weighted_mean"], "weights": "idf"}}, "readout.pooling")):
        refused(lambda change=change: export_readout(model, manifest(**change)), field)
    narrow = manifest().changed(contextual_state={"width": 8})
    refused(lambda: export_readout(model, narrow), "contextual_state.width")


def test_interfaces_are_declared_not_guessed():
    """No library is needed to say what an interface is: families, axes, types, one declared kind of output."""
    abi = readout_abi(manifest(), {"embedding_dim": 32})
    assert abi_from_json(abi.to_json()) == abi and [t.name for t in abi.inputs][-1] == "row_mask"
    assert [t.name for t in readout_abi(everything(), {"embedding_dim": 32}).inputs][-1] == "token_type_ids"
    refused(lambda: readout_abi(manifest(), {}), "abi.embeddings.axes")
    refused(lambda: replace(abi, family="hidden"), "abi.family")
    refused(lambda: replace(abi, outputs=()), "abi.outputs.embeddings")
    more = (*abi.outputs, Tensor("token_logits", "float32", ("batch",)))
    refused(lambda: replace(abi, outputs=more), "abi.outputs")
    refused(lambda: replace(abi, inputs=(*abi.inputs, abi.inputs[0])), "abi.names")
    refused(lambda: replace(abi, inputs=(Tensor("input_ids", "float16", ("batch",)),)), "abi.input_ids.dtype")
    lost = abi.to_json()
    del lost["semantics"]["tie_rule"]
    refused(lambda: abi_from_json(lost), "abi")
    assert isinstance(abi, ABI)


def test_an_export_without_its_row_mask_is_refused():
    """Token vectors of the right rank without their mask: padded rows would enter late interaction. Neither the
    interface nor the record of one is admitted, and a readout of content rows asks for the mask as an input."""
    m = manifest(readout={"pooling": []}, output={"kind": "token_vectors"},
                 score={"type": "maxsim", "threshold": None})
    abi = readout_abi(m, {"projection_dim": 32})
    assert [t.name for t in abi.outputs] == ["token_vectors", "row_mask_out"] and abi.inputs[-1].name == "row_mask"
    refused(lambda: replace(abi, outputs=abi.outputs[:1]), "abi.outputs.row_mask_out")
    bare = abi.to_json()
    bare["outputs"].pop()
    refused(lambda: abi_from_json(bare), "abi.outputs.row_mask_out")


def test_without_the_library_the_error_says_how_to_get_it(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'dx-model\[onnx\]'"):
        export_readout(model, manifest())
