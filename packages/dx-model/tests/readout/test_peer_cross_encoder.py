"""A cross-encoder beside sentence-transformers' on one checkpoint, where that is installed: the encoder's rows, the
pooler, the head and the activation as one readout of its manifest."""
import json
import warnings

import numpy as np
import pytest
from dx_model import readout
from dx_model.bert import Bert
from dx_model.readout import heads
from readout_record import record

F = np.float32
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "total", "due", "date", "bill", "of", "the", "tea", "cake"]
IDS = {word: i for i, word in enumerate(WORDS)}
QUERY, DOCUMENTS = "date of bill", ["the date", "tea cake", "total due date of the bill", "cake"]


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """(their model, its folder): a small random classifier of one label."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        transformers = pytest.importorskip("transformers", reason="transformers is not installed")
        library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    path = tmp_path_factory.mktemp("cross")
    config = transformers.BertConfig(vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                                     intermediate_size=24, max_position_embeddings=32, num_labels=1)
    torch.manual_seed(3)
    model = transformers.BertForSequenceClassification(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) / 4)
    model.save_pretrained(path)
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(IDS, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    transformers.PreTrainedTokenizerFast(tokenizer_object=made, pad_token="[PAD]", cls_token="[CLS]",
                                         sep_token="[SEP]", unk_token="[UNK]",
                                         model_max_length=32).save_pretrained(path)
    settings = json.loads((path / "tokenizer_config.json").read_text())
    settings["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    (path / "tokenizer_config.json").write_text(json.dumps(settings))
    return library.CrossEncoder(str(path), device="cpu"), path


def ours(path, activation):
    """Our CrossEncoder of the folder."""
    from safetensors.numpy import load_file
    tensors = load_file(path / "model.safetensors")
    encoder = Bert.from_checkpoint(path)
    head = heads.MultipleChoiceHead(tensors["classifier.weight"], tensors["classifier.bias"])
    manifest = readout.Manifest(record(
        artifact={"head_sha256": heads.head_digest(head)},
        input={"special_token_ids": {"cls": 2, "sep": 3, "pad": 0}, "max_length": 32},
        rows={"include_special": True, "offsets_required": False}, contextual_state={"width": 16},
        readout={"pooling": ["bert_pooler"], "normalize": {"kind": "none"}},
        output={"kind": "pair_score"}, score={"type": "logit", "threshold": None}))
    pairs = readout.Readout(manifest, head, {"pooler.weight": tensors["bert.pooler.dense.weight"],
                                             "pooler.bias": tensors["bert.pooler.dense.bias"]})
    template = readout.PairTemplate(first=2, separator=3, max_length=32)
    release = readout.CrossEncoderRelease(
        model=manifest.content_id, pair_template_hash=template.digest(), pair_truncation_policy="only_second",
        activation=activation, score_type={"identity": "logits", "sigmoid": "sigmoid_probabilities"}[activation])

    def score(table):
        starts = np.array([0, len(table)], np.int64)
        rows = encoder.forward(table.ids.astype(np.int32), starts, table.type_ids)
        return pairs.run([table], rows[None]).values
    return readout.CrossEncoder(score, template, release)


def test_scores_of_sentence_transformers(theirs):
    """Equal logits under no activation, and equal probabilities under theirs; which one is on by default there follows
    from the number of labels, here it is in the release and an unnamed one is refused."""
    model, path = theirs
    torch = pytest.importorskip("torch")
    query, documents = [IDS[w] for w in QUERY.split()], [[IDS[w] for w in d.split()] for d in DOCUMENTS]
    pairs = [(QUERY, d) for d in DOCUMENTS]
    for activation, function in (("identity", torch.nn.Identity()), ("sigmoid", torch.nn.Sigmoid())):
        found = ours(path, activation).score_pairs(query, documents, list("abcd"))
        expected = np.asarray(model.predict(pairs, activation_fn=function, show_progress_bar=False), float).reshape(-1)
        assert np.ptp(expected) > 1e-3 and np.abs(found.scores.values - expected).max() < 2e-5
    default = np.asarray(model.predict(pairs, show_progress_bar=False), float).reshape(-1)
    assert np.abs(default - found.scores.values).max() < 2e-5  # a sigmoid that nobody asked for
    order = [int(hit["corpus_id"]) for hit in model.rank(QUERY, DOCUMENTS, show_progress_bar=False)]
    assert order == readout.ranking(found.scores).tolist()
    with pytest.raises(readout.ReadoutError, match="head.activation"):
        readout.activate(found.scores, None)
