"""The committed PyTorch fixture (fixtures/docextract_backward.safetensors), and dx on its page."""
import json
from pathlib import Path
from types import SimpleNamespace

import dx_model
import numpy as np
import safetensors
from dx_model.docextract import DocExtract, DocExtractConfig, Gradients, Losses, Parameters, Targets, Workspace

FIXTURE = Path(__file__).resolve().parents[3] / "fixtures" / "docextract_backward.safetensors"


class GivenPairs(DocExtract):
    """A model whose pair features are given with the page instead of made from places."""

    def pair_bias(self, page, out):
        p = self.parameters
        dx_model.below.pair_mlp_forward(page.pairs.reshape(len(page.pairs), -1), p["pair1.weight"], p["pair1.bias"],
                                        p["pair2.weight"], p["pair2.bias"], out.reshape(len(out), -1))

    def pair_bias_gradients(self, page, dbias, g):
        p = self.parameters
        dx_model.below.pair_mlp_backward(dbias.reshape(len(dbias), -1), page.pairs.reshape(len(page.pairs), -1), None,
                                         p["pair1.weight"], p["pair1.bias"], p["pair2.weight"], g["pair1.weight"],
                                         g["pair1.bias"], g["pair2.weight"], g["pair2.bias"])


def load():
    """The committed fixture as a namespace: config, parameters, page, targets, f32, f64, allowance, loss weights."""
    with safetensors.safe_open(FIXTURE, "np") as file:
        meta = json.loads(file.metadata()["fixture"])
        groups = {}
        for key in file.keys():
            group, _, name = key.partition("/")
            groups.setdefault(group, {})[name] = file.get_tensor(key)
    config = DocExtractConfig.from_json(meta["config"])
    page = {k: v.astype(np.int32) if v.dtype == np.int64 else v for k, v in groups["page"].items()}
    page = SimpleNamespace(characters=page["chars"], features=page["features"], pairs=page["pairs"],
                           table_ids=np.ascontiguousarray(np.vstack([page["inverse"], page["positions"].T])))
    targets = {k: v.astype(np.int32) for k, v in groups["target"].items()}
    targets = Targets(**{k: int(v.reshape(-1)[0]) if k == "doc" else v for k, v in targets.items()})
    parameters = Parameters(config)
    parameters.load_container(groups["weight"])
    return SimpleNamespace(config=config, parameters=parameters, page=page, targets=targets, f32=groups["f32"],
                           f64=groups["f64"], allowance=groups["allowance"], weights=meta["loss_weights"],
                           raw=groups, field_weight=meta["field_weight"], torch=meta["torch"])


def run(f, weights=None, degree=1):
    """name → array of what the kernels give: out/…, loss/…, grad/…."""
    model, losses = GivenPairs(f.parameters), Losses(f.config, weights or f.weights, f.field_weight)
    gradients, space = Gradients(f.config), Workspace()
    gradients.flat[:] = np.nan
    with dx_model.degree(degree):
        saved = model.forward_saved(f.page, space)
        parts, douts = losses.run(saved.outputs, f.targets, 1.0, space)
        model.backward(saved, douts, gradients)
    result = {f"out/{k}": getattr(saved.outputs, k).copy() for k in ("tag", "role", "doc", "item", "key_value")}
    result |= {f"loss/{k}": np.array([v.value]) for k, v in parts.items()}
    result |= {"loss/total": np.array([losses.total(parts)])}
    return result | {f"grad/{k}": v for k, v in gradients.to_container().items()}
