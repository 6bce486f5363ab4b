"""Updated weights against PyTorch's AdamW: 100 steps of the same model (tools/parity/docextract_training.py)."""
import json
from pathlib import Path
from types import SimpleNamespace

import dx_train
import numpy as np
import pytest
from dx_train import AdamW, BatchGradients, DocExtract, DocExtractConfig, Example, Losses, Parameters, Targets

FIXTURE = Path(__file__).resolve().parents[3] / "fixtures" / "docextract_training.safetensors"


class GivenPairs(DocExtract):
    """A model whose pair features are given with the page instead of made from places."""

    def hidden(self, page):
        p = self.parameters
        return np.maximum(np.einsum("hp,pij->hij", p["pair1.weight"], page.pairs) + p["pair1.bias"][:, None, None], 0)

    def pair_bias(self, page, out):
        p = self.parameters
        out[...] = np.einsum("oh,hij->oij", p["pair2.weight"], self.hidden(page)) + p["pair2.bias"][:, None, None]

    def pair_bias_gradients(self, page, dbias, g):
        hidden = self.hidden(page)
        dhidden = np.where(hidden > 0, np.einsum("oh,oij->hij", self.parameters["pair2.weight"], dbias), 0)
        g["pair1.weight"][...] = np.einsum("hij,pij->hp", dhidden, page.pairs)
        g["pair2.weight"][...] = np.einsum("oij,hij->oh", dbias, hidden)
        g["pair1.bias"][...], g["pair2.bias"][...] = dhidden.sum((1, 2)), dbias.sum((1, 2))


def load():
    safetensors = pytest.importorskip("safetensors")
    with safetensors.safe_open(FIXTURE, "np") as file:
        meta, groups = json.loads(file.metadata()["fixture"]), {}
        for key in file.keys():
            group, _, name = key.partition("/")
            groups.setdefault(group, {})[name] = file.get_tensor(key)
    return meta, groups


def example(groups, i):
    page, targets = groups[f"page{i}"], {k: v.astype(np.int32) for k, v in groups[f"target{i}"].items()}
    table_ids = np.ascontiguousarray(np.concatenate([page["inverse"][None], page["positions"].T]), np.int32)
    arrays = SimpleNamespace(characters=page["chars"].astype(np.int32), table_ids=table_ids, features=page["features"],
                             pairs=page["pairs"])
    return Example(f"p{i}", arrays, Targets(**{k: int(v.reshape(-1)[0]) if k == "doc" else v
                                               for k, v in targets.items()}))


@pytest.mark.skipif(not FIXTURE.exists(), reason="the fixture belongs to the source tree")
def test_weights_after_100_steps_are_torchs():
    """Every tensor within its allowance: twice PyTorch's own float32 error plus 2^-22 of the largest weight."""
    meta, groups = load()
    parameters = Parameters(DocExtractConfig.from_json(meta["config"]))
    parameters.load_container(groups["start"])
    examples = [example(groups, i) for i in range(3)]
    trainable = dx_train.trainable_set(parameters, meta["loss_weights"], 1.0)
    assert set(trainable.names) == set(parameters)
    model = GivenPairs(parameters)
    gradients = BatchGradients(model, Losses(parameters.config, meta["loss_weights"], meta["field_weight"]))
    optimizer = AdamW(parameters, trainable, beta1=meta["betas"][0], beta2=meta["betas"][1], eps=meta["eps"],
                      weight_decay=meta["decay"])
    steps, batch = meta["steps"], meta["batch"]
    for step in range(steps):
        result = gradients.run([examples[(step * batch + i) % 3] for i in range(batch)])
        loss = sum(gradients.losses.total(parts) for parts in result.parts) / batch
        assert abs(loss - groups["losses"][""][step]) < 1e-4
        optimizer.clip(gradients.total, meta["clip"])
        rate = dx_train.learning_rate(step, steps, meta["rate"], meta["warmup"], meta["final"])
        optimizer.step(step + 1, rate, gradients.total)
        model.repack()
    worst = {}
    for name, array in parameters.to_container().items():
        error = np.abs(array - groups["f64"][name]).max()
        worst[name] = float(error / groups["allowance"][name])
    assert max(worst.values()) <= 1, {name: share for name, share in worst.items() if share > 1}
