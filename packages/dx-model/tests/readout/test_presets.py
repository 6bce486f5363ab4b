"""Presets beside the installed implementations (skipped where they are absent), and what is refused here and passes
there."""
import warnings

import numpy as np
import pytest
from dx_model.bert import Bert, Tokenizer
from dx_model.bert.checkpoints import from_checkpoint
from dx_model.readout import ReadoutError, ScoreType, heads, pool, presets

F32 = np.float32
LENGTHS = np.array([9, 4, 1])
VOCABULARY = "[PAD] [UNK] [CLS] [SEP] [MASK] total invoice amount due date pay is the of a bill".split()


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture(scope="module")
def transformers(torch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("transformers", reason="transformers is not installed")


@pytest.fixture(scope="module")
def sentence_modules(torch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("sentence_transformers.sentence_transformer.modules",
                                   reason="sentence-transformers is not installed")


def rows(rng, left=False):
    """(hidden (3, 9, 8), attention): prefixes of 9, 4 and 1 rows, or suffixes."""
    mask = np.arange(9) < LENGTHS[:, None]
    return rng.standard_normal((3, 9, 8)).astype(F32), np.ascontiguousarray(mask[:, ::-1]) if left else mask


def linear(rng, out, width=8):
    return (rng.standard_normal((out, width)) / 2).astype(F32), rng.standard_normal(out).astype(F32)


def wrapper(transformers, torch, name, **more):
    """(their model in evaluation, our encoder of the same weights, ids, mask): sequences padded on the right."""
    config = transformers.BertConfig(vocab_size=len(VOCABULARY), hidden_size=16, num_hidden_layers=2,
                                     num_attention_heads=2, intermediate_size=24, max_position_embeddings=24, **more)
    torch.manual_seed(0)
    theirs = getattr(transformers, name)(config).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    tensors = {n: t.detach().numpy() for n, t in theirs.state_dict().items()}
    ours = Bert(from_checkpoint(tensors, config.to_dict())[0])
    mask = np.arange(9) < LENGTHS[:, None]
    ids = np.random.default_rng(1).integers(5, len(VOCABULARY), (3, 9)) * mask
    return theirs, ours, ids, mask


def run(torch, model, ids, mask, **labels):
    with torch.no_grad():
        return model(torch.tensor(ids), attention_mask=torch.tensor(mask.astype(np.int64)),
                     **{name: torch.tensor(value) for name, value in labels.items()})


def arrays(module):
    return module.weight.detach().numpy().copy(), module.bias.detach().numpy().copy()


def names(count):
    return heads.LabelMap(tuple(f"label {i}" for i in range(count)))


# --- transformers ----------------------------------------------------------------------------------------------------

def test_bert_pooler_reads_physical_row_zero(transformers, torch, rng):
    hidden, mask = rows(rng)
    pooler = transformers.models.bert.modeling_bert.BertPooler(transformers.BertConfig(hidden_size=8,
                                                                                       num_attention_heads=2))
    with torch.no_grad():
        want = pooler(torch.tensor(hidden)).numpy()
    assert np.abs(presets.bert_pooler(hidden, mask, *arrays(pooler.dense)) - want).max() < 1e-6


def test_bert_pooler_refuses_padding_in_row_zero(rng):
    hidden, mask = rows(rng, left=True)
    with pytest.raises(ReadoutError, match=r"attention\[1, 0\] = False: expected True: BertPooler reads physical"):
        presets.bert_pooler(hidden, mask, *linear(rng, 8))
    with pytest.raises(ReadoutError, match="attention = .int64"):
        presets.bert_pooler(hidden, mask.astype(int), *linear(rng, 8))


SEQUENCES = {
    "regression": (1, np.array([0.5, -1.0, 2.0], F32)),
    "single_label_classification": (3, np.array([2, 0, 1])),
    "multi_label_classification": (3, np.array([[1, 0, 1], [0, 0, 0], [0, 1, 1]]))}


def sequence_head(kind, count, weight, bias):
    if kind == "regression":
        scale = heads.plain_scale(names(count).names, ("",) * count)
        return heads.RegressionHead(scale, heads.RegressionObjective(), weight, bias)
    if kind == "single_label_classification":
        return heads.SingleLabelHead(names(count), weight, bias)
    return heads.MultilabelHead(names(count), weight, bias, [0.5] * count)


@pytest.mark.parametrize("kind", SEQUENCES)
def test_sequence_classification_of_transformers(transformers, torch, kind):
    """From ids: our encoder, pooler and head of their weights give their logits and loss."""
    count, labels = SEQUENCES[kind]
    theirs, ours, ids, mask = wrapper(transformers, torch, "BertForSequenceClassification", num_labels=count)
    given = labels.astype(F32) if kind == "multi_label_classification" else labels
    want = run(torch, theirs, ids, mask, labels=given)
    assert theirs.config.problem_type == kind == presets.guessed_problem_type(count, given.dtype)  # their guess
    head, hidden = sequence_head(kind, count, *arrays(theirs.classifier)), ours.forward_padded(ids, mask)
    pooler = ours.parameters["pooler.weight"], ours.parameters["pooler.bias"]
    targets = labels[:, None].astype(float) if kind == "regression" else labels
    found = presets.bert_sequence_classification(hidden, mask, pooler, head, targets, problem_type=kind)
    assert np.abs(found["logits"] - want.logits.numpy()).max() < 1e-5
    assert abs(found["loss"].value - float(want.loss)) < 1e-5


def test_the_dtype_of_a_batch_chooses_no_loss_here(transformers, torch, rng):
    """Class ids as floats are another objective there; here they are refused, and so is an undeclared problem type."""
    theirs, _, ids, mask = wrapper(transformers, torch, "BertForSequenceClassification", num_labels=3)
    run(torch, theirs, ids, mask, labels=np.eye(3, dtype=F32))
    assert theirs.config.problem_type == "multi_label_classification"
    hidden, mask = rows(rng)
    head = heads.SingleLabelHead(names(3), *linear(rng, 3))
    for problem_type, chosen, targets, message in (
            (None, head, None, "output.problem_type = None"),
            ("multi_label_classification", head, None, "head = 'SingleLabelHead': expected MultilabelHead"),
            ("single_label_classification", head, np.array([0.0, 1.0, 2.0]), "targets.dtype = 'float64'")):
        with pytest.raises(ReadoutError, match=message):
            presets.bert_sequence_classification(hidden, mask, linear(rng, 8), chosen, targets,
                                                 problem_type=problem_type)
    assert presets.guessed_problem_type(3, np.float32) == "multi_label_classification"
    assert presets.guessed_problem_type(3, np.int64) == "single_label_classification"


def test_token_classification_of_transformers(transformers, torch):
    theirs, ours, ids, mask = wrapper(transformers, torch, "BertForTokenClassification", num_labels=4)
    targets = np.where(mask, ids % 4, -100)
    targets[0, 3] = -100
    want, hidden = run(torch, theirs, ids, mask, labels=targets), ours.forward_padded(ids, mask)
    head = heads.TokenHead(names(4), *arrays(theirs.classifier))
    found = presets.bert_token_classification(hidden, mask, head, targets)
    assert np.abs(found["logits"] - want.logits.numpy())[mask].max() < 1e-5
    assert abs(found["loss"].value - float(want.loss)) < 1e-5 and found["loss"].denominator == mask.sum() - 1
    assert presets.bert_token_classification(hidden, mask, head)["loss"] is None
    targets[1, 8] = 0  # a row of padding counts there
    assert abs(float(run(torch, theirs, ids, mask, labels=targets).loss) - float(want.loss)) > 1e-4
    with pytest.raises(ReadoutError, match=r"targets\[1, 8\] = 0: expected -100: the row is padding"):
        presets.bert_token_classification(hidden, mask, head, targets)


def test_question_answering_of_transformers(transformers, torch):
    theirs, ours, ids, mask = wrapper(transformers, torch, "BertForQuestionAnswering", num_labels=2)
    positions = np.array([[2, 5], [0, 3], [-1, -1]])
    sentinel = np.where(positions < 0, 9, positions)  # the number of rows: ignored there
    want = run(torch, theirs, ids, mask, start_positions=sentinel[:, 0], end_positions=sentinel[:, 1])
    head = heads.AnswerHead(*arrays(theirs.qa_outputs), 5)
    with torch.no_grad():  # all physical rows compete there: those of padding too, as the encoder left them
        hidden = theirs.bert(torch.tensor(ids), attention_mask=torch.tensor(mask.astype(int)))[0].numpy()
    found = presets.bert_question_answering(hidden, "physical", head, positions)
    for name, theirs_logits in (("start", want.start_logits), ("end", want.end_logits)):
        assert np.abs(found[name] - theirs_logits.numpy()).max() < 1e-5
    assert abs(found["loss"].value - float(want.loss)) < 1e-5
    seen = presets.bert_question_answering(ours.forward_padded(ids, mask), mask, head, positions)
    assert np.abs(seen["start"] - found["start"])[mask].max() < 1e-5
    assert abs(seen["loss"].value - found["loss"].value) > 1e-3  # padding competes no longer
    for wrong in ([2, 40], [9, 9]):  # clamped to the sentinel there, and ignored
        assert np.isfinite(float(run(torch, theirs, ids, mask, start_positions=np.array([wrong[0], 0, 0]),
                                     end_positions=np.array([wrong[1], 3, 0])).loss))


def test_question_answering_refuses_what_is_clamped_there(rng):
    hidden, mask = rows(rng)
    head = heads.AnswerHead(*linear(rng, 2), 5)
    for wrong in ([2, 40], [9, 9], [5, 2], [-3, 1]):
        with pytest.raises(ReadoutError, match=r"targets\[0\]"):
            presets.bert_question_answering(hidden, "physical", head, np.array([wrong, [0, 3], [0, 0]]))
    with pytest.raises(ReadoutError, match=r"targets\[1\] = \(0, 5\)"):
        presets.bert_question_answering(hidden, mask, head, np.array([[0, 3], [0, 5], [0, 0]]))
    with pytest.raises(ReadoutError, match="candidates"):
        presets.bert_question_answering(hidden, "content", head)
    assert presets.bert_question_answering(hidden, mask, head)["loss"] is None


# --- sentence-transformers: pooling ----------------------------------------------------------------------------------

def theirs_pooled(torch, modules, mode, hidden, mask):
    module = modules.Pooling(hidden.shape[2], pooling_mode=mode)
    features = {"token_embeddings": torch.tensor(hidden), "attention_mask": torch.tensor(mask.astype(np.int64))}
    return module(features)["sentence_embedding"].numpy()


def pooled_as_theirs(torch, modules, rng, mode, sides=(False, True)):
    """Equal with padding on the given sides; no admitted row is refused here and passes there. Gives their vector of an
    example without admitted rows."""
    for left in sides:
        hidden, mask = rows(rng, left)
        ours = presets.sentence_pooling(hidden, mask, (mode,))
        assert np.abs(theirs_pooled(torch, modules, mode, hidden, mask) - ours).max() < 2e-6, left
    mask[1] = False
    with pytest.raises(ReadoutError, match="rows.selected"):
        presets.sentence_pooling(hidden, mask, (mode,))
    return theirs_pooled(torch, modules, mode, hidden, mask)[1], hidden[1]


def test_pooling_cls(sentence_modules, torch, rng):
    """The first admitted row, under padding on the left too; with none admitted row 0 there."""
    nothing, hidden = pooled_as_theirs(torch, sentence_modules, rng, "cls")
    assert np.array_equal(nothing, hidden[0])


def test_pooling_max(sentence_modules, torch, rng):
    nothing, _ = pooled_as_theirs(torch, sentence_modules, rng, "max")
    assert np.isneginf(nothing).all()
    hidden, mask = -1 - np.abs(rows(rng)[0]), rows(rng)[1]  # zeros in padding would win
    assert presets.sentence_pooling(hidden, mask, ("max",)).max() < -1


def test_pooling_mean(sentence_modules, torch, rng):
    nothing, _ = pooled_as_theirs(torch, sentence_modules, rng, "mean")
    assert not nothing.any()


def test_pooling_mean_sqrt_len_tokens(sentence_modules, torch, rng):
    nothing, _ = pooled_as_theirs(torch, sentence_modules, rng, "mean_sqrt_len_tokens")
    assert not nothing.any()
    hidden, mask = rows(rng)
    ratio = presets.sentence_pooling(hidden, mask, ("mean_sqrt_len_tokens",)) / presets.sentence_pooling(hidden, mask)
    assert np.abs(ratio - np.sqrt(LENGTHS)[:, None]).max() < 1e-4


def test_pooling_weightedmean(sentence_modules, torch, rng):
    """On the right as installed. On the left the pinned revision counts padding, the installed one does not; here it is
    refused unless asked for, and then the pinned revision's."""
    nothing, _ = pooled_as_theirs(torch, sentence_modules, rng, "weightedmean", sides=(False,))
    assert not nothing.any()
    hidden, mask = rows(rng, left=True)
    with pytest.raises(ReadoutError, match=r"attention\[1, 0\] = False: expected True: weights by physical column"):
        presets.sentence_pooling(hidden, mask, ("weightedmean",))
    weights = np.arange(1, 10) * mask
    pinned = (hidden.astype(float) * weights[..., None]).sum(1) / weights.sum(1, keepdims=True)
    ours = presets.sentence_pooling(hidden, mask, ("weightedmean",), physical_weights=True)
    assert np.abs(ours - pinned).max() < 1e-6
    shifted = pool(hidden, mask, "position_weighted_mean")  # ours, which padding does not move
    assert np.abs(shifted - ours).max() > 1e-3
    assert np.abs(theirs_pooled(torch, sentence_modules, "weightedmean", hidden, mask) - shifted).max() < 2e-6


def test_pooling_lasttoken(sentence_modules, torch, rng):
    nothing, _ = pooled_as_theirs(torch, sentence_modules, rng, "lasttoken")
    assert not nothing.any()


def test_several_modes_are_concatenated(sentence_modules, torch, rng):
    hidden, mask = rows(rng)
    chosen = ("mean", "max", "cls")
    ours = presets.sentence_pooling(hidden, mask, chosen)
    assert ours.shape == (3, 24)
    assert np.abs(ours - theirs_pooled(torch, sentence_modules, chosen, hidden, mask)).max() < 2e-6


def test_normalize_is_a_stage_behind_the_pooling(sentence_modules, torch, rng):
    hidden, mask = rows(rng)
    hidden[2, 0] = 0  # the only row of an example
    features = {"token_embeddings": torch.tensor(hidden), "attention_mask": torch.tensor(mask.astype(np.int64))}
    for module in (sentence_modules.Pooling(8, pooling_mode="mean"), sentence_modules.Normalize()):
        features = module(features)
    ours = presets.sentence_embedding(hidden, mask)
    assert np.abs(ours - features["sentence_embedding"].numpy()).max() < 1e-6 and not ours[2].any()
    assert ours.tobytes() == presets.sentence_normalize(presets.sentence_pooling(hidden, mask)).tobytes()
    plain = presets.sentence_embedding(hidden, mask, modules=("Pooling",))
    assert plain.tobytes() == presets.sentence_pooling(hidden, mask).tobytes()
    unit = hidden / np.maximum(np.linalg.norm(hidden, axis=2, keepdims=True), 1e-12)
    assert np.abs(presets.sentence_pooling(unit.astype(F32), mask)[:2] - ours[:2]).max() > 1e-2  # another geometry
    for modules in (("Normalize", "Pooling"), ("Pooling", "Normalize", "Normalize"), ()):
        with pytest.raises(ReadoutError, match="modules = .*of another order the geometry is another"):
            presets.sentence_embedding(hidden, mask, modules=modules)


# --- sentence-transformers: pairs ------------------------------------------------------------------------------------

PAIRS = [("the invoice", "total amount due"), ("pay", "a bill is due is due is due"), ("date of", "the invoice"),
         ("total", "total"), ("the date of the bill is the date of the invoice", "pay the amount"), ("a", "b")]


@pytest.mark.parametrize("outputs", [1, 3])
def test_predict_of_sentence_transformers(transformers, sentence_modules, torch, tmp_path, outputs):
    """A checkpoint on disk, scored by their CrossEncoder and from its files by ours: typed scores in the input's order
    for every size of batch."""
    pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    from sentence_transformers import CrossEncoder

    theirs, ours, _, _ = wrapper(transformers, torch, "BertForSequenceClassification", num_labels=outputs)
    theirs.save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    transformers.BertTokenizerFast(vocab={token: i for i, token in enumerate(VOCABULARY)},
                                   model_max_length=24).save_pretrained(tmp_path)
    tokenizer, weights = Tokenizer(tmp_path / "tokenizer.json"), arrays(theirs.classifier)
    pooler = ours.parameters["pooler.weight"], ours.parameters["pooler.bias"]
    head = sequence_head("regression" if outputs == 1 else "single_label_classification", outputs, *weights)
    sizes = []

    def score(pairs):
        sizes.append(len(pairs))
        found = []
        for ids, types in tokenizer.ids(pairs, max_length=24):
            hidden = ours.forward(np.array(ids), [0, len(ids)], np.array(types))[None]
            found.append(head.forward(presets.bert_pooler(hidden, np.ones(hidden.shape[:2], bool), *pooler)))
        return np.concatenate(found)

    library = CrossEncoder(str(tmp_path), num_labels=outputs, device="cpu")
    want = library.predict(PAIRS, batch_size=2, show_progress_bar=False)
    activation, axis = presets.default_activation(outputs), None if outputs == 1 else names(outputs).names
    digests = []
    for batch in (1, 2, 32):
        ids, scores = presets.predict_pairs(score, PAIRS, range(6), activation=activation, release="r", outputs=axis,
                                            batch=batch)
        assert ids == tuple(range(6)) and scores.values.shape == want.shape
        assert np.abs(scores.values - want).max() < 1e-5
        digests.append(scores.values.tobytes())
    assert len({*digests}) == 1 and sizes == [1] * 6 + [2] * 3 + [6]
    assert scores.type is (ScoreType.SIGMOID_PROBABILITY if outputs == 1 else ScoreType.LOGIT)
    if outputs > 1:
        want = library.predict(PAIRS, apply_softmax=True, show_progress_bar=False)
        _, scores = presets.predict_pairs(score, PAIRS, range(6), activation="softmax", release="r", outputs=axis)
        assert np.abs(scores.values - want).max() < 1e-5 and scores.type is ScoreType.SOFTMAX_PROBABILITY


def test_predict_sorts_by_length_and_gives_the_inputs_order():
    seen, pairs = [], [("a", "bb"), ("aaaa", "b"), ("", "c"), ("aa", "b")]

    def score(batch):
        seen.extend(batch)
        return np.array([[len(a) * 10 + len(b)] for a, b in batch], F32)

    ids, scores = presets.predict_pairs(score, pairs, "wxyz", activation="identity", release="r", batch=3)
    assert seen == [("aaaa", "b"), ("a", "bb"), ("aa", "b"), ("", "c")]
    assert ids == ("w", "x", "y", "z") and scores.values.tolist() == [12, 41, 1, 21]
    assert scores.sources == ("identity",)
    assert len(presets.predict_pairs(score, [], [], activation="identity", release="r")[1]) == 0


@pytest.mark.parametrize("change, message", [
    ({"ids": "ww"}, "ids = .*expected 2 different ids"), ({"ids": "w"}, "2 different ids"),
    ({"activation": None}, "head.activation = None"), ({"activation": "softmax"}, "scores.axis = None"),
    ({"batch": 0}, "batch = 0"), ({"outputs": ("one",)}, "outputs"), ({"outputs": ("a", "b")}, "float32 .2, 2"),
    ({"score": lambda pairs: np.zeros((2, 1))}, "score = 'float64"), ({"release": ""}, "scores.release")])
def test_predict_refuses(change, message):
    given = {"score": lambda pairs: np.zeros((len(pairs), 1), F32), "pairs": [("a", "b"), ("c", "d")], "ids": "xy",
             "activation": "sigmoid", "release": "r"} | change
    with pytest.raises(ReadoutError, match=message):
        presets.predict_pairs(**given)


# --- records ---------------------------------------------------------------------------------------------------------

def test_every_preset_has_a_record_and_a_pinned_revision():
    assert len({one.name for one in presets.PRESETS}) == len(presets.PRESETS) == 12
    for one in presets.PRESETS:
        assert callable(getattr(presets, one.function)) and one.does and one.stricter
        assert len(one.revision) == 40 and presets.preset(one.name) is one
    modes = [one.symbol.partition(".")[2] for one in presets.PRESETS if one.symbol.startswith("Pooling.")]
    assert modes == list(presets.POOLING_MODES)
    with pytest.raises(ReadoutError, match="preset = 'transformers.Bert'"):
        presets.preset("transformers.Bert")


def test_pooling_refuses_what_is_not_known(rng):
    hidden, mask = rows(rng)
    with pytest.raises(ReadoutError, match="pooling_mode = 'average'"):
        presets.sentence_pooling(hidden, mask, ("average",))
    with pytest.raises(ReadoutError, match="attention = .int64"):
        presets.sentence_pooling(hidden, mask.astype(np.int64))
    with pytest.raises(ReadoutError, match="num_labels = 0"):
        presets.default_activation(0)
