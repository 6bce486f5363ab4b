"""Real receipts: the model learns eight of them by heart, and an epoch of all 626 runs."""
import time

import dx_train
import grounding
import pytest
from dx_train import DocExtract, DocExtractConfig, FineTune, TrainSettings

pytestmark = pytest.mark.skipif(grounding.DATA is None, reason="DX_DATA is not set: no real pages")
CONFIG = DocExtractConfig(fields=grounding.FIELDS)


def test_overfits_eight_receipts(tmp_path):
    """Zero field errors on what it has seen: every value that stands on the page, found by joint decoding."""
    pages = list(grounding.pages(8))
    made = [grounding.example(page, fields, CONFIG) for page, fields in pages]
    settings = TrainSettings(steps=60, batch=8, learning_rate=2e-3, warmup=10, weight_decay=0.0, checkpoint_every=0)
    result = FineTune(settings).run(DocExtract.initial(CONFIG, 1), [example for example, _ in made], folder=tmp_path)
    model, wrong, right = DocExtract(result.parameters), [], 0
    for (page, fields), (example, keys) in zip(pages, made):
        got = grounding.decoded(model, example, keys)
        for field in example.targets.run_fields.tolist():
            name = CONFIG.fields[field]
            right += got[name] == grounding.key(fields[name])
            if got[name] != grounding.key(fields[name]):
                wrong.append((page.id, name, got[name]))
    assert wrong == [] and right >= 28
    log = dx_train.read_log(tmp_path)
    assert log[-1]["loss"] < 0.02 * log[0]["loss"]


@pytest.mark.exhaustive
def test_an_epoch_of_626_receipts(tmp_path):
    examples = [grounding.example(page, fields, CONFIG)[0] for page, fields in grounding.pages()]
    assert len(examples) == 626
    settings = TrainSettings(epochs=1, batch=8, augment=1.0)
    began = time.monotonic()
    result = FineTune(settings).run(DocExtract.initial(CONFIG, 1), examples, folder=tmp_path)
    log = dx_train.read_log(tmp_path)
    print(f"{626 / (time.monotonic() - began):.0f} pages/s")
    assert result.step == 79 and log[-1]["epoch"] == 0 and log[-1]["loss"] < 0.5 * log[0]["loss"]
