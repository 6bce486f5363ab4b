"""The committed PyTorch fixture of vision transformers (fixtures/vit_backward.safetensors), and dx on its images."""
import json
from pathlib import Path
from types import SimpleNamespace

import dx_model
import numpy as np
import safetensors
from dx_model.vit import ClassLoss, Gradients, Parameters, ViT, ViTConfig
from dx_model.workspace import Workspace

FIXTURE = Path(__file__).resolve().parents[3] / "fixtures" / "vit_backward.safetensors"


def load(act):
    """The fixture of one form of GELU: config, parameters, images, labels, f32, f64, allowance, torch (its version)."""
    groups = {"weight": {}, "f32": {}, "f64": {}, "allowance": {}}
    with safetensors.safe_open(FIXTURE, "np") as file:
        meta = json.loads(file.metadata()["fixture"])
        for key in file.keys():
            own, _, name = key.partition("/")
            group, _, rest = name.partition("/")
            if own == act:
                (groups[group] if rest else groups)[rest or name] = file.get_tensor(key)
    parameters = Parameters(ViTConfig.from_json(meta["configs"][act]))
    parameters.load_container(groups.pop("weight"))
    return SimpleNamespace(config=parameters.config, parameters=parameters, torch=meta["torch"], **groups)


def run(f, degree=1):
    """name → array of what the model gives: logits, loss, dimages, grad/…, the examples' gradients added in order."""
    model, total, one = ViT(f.parameters), Gradients(f.config), Gradients(f.config)
    logits, losses, dimages = [], [], np.empty_like(f.images)
    with dx_model.degree(degree):
        for i, (image, label) in enumerate(zip(f.images, f.labels.tolist(), strict=True)):
            space, gradients = Workspace(), one if i else total
            gradients.flat[:] = np.nan
            saved = model.forward_saved(image, space)
            parts, dlogits = ClassLoss().run(saved.outputs, label, 1.0 / len(f.images), space)
            model.backward(saved, dlogits, gradients, dimage=dimages[i])
            logits.append(saved.outputs.copy())
            losses.append(parts["class"].value)
            if i:
                total.add(one)
    result = {"logits": np.stack(logits), "loss": np.array([sum(losses) / len(losses)]), "dimages": dimages}
    return result | {f"grad/{name}": array for name, array in total.to_container().items()}


def worst(f, got):
    """The largest share of the allowance and where: (share, name)."""
    shares = []
    for name, value in got.items():
        (atol, rtol), ref = f.allowance[name], f.f64[name]
        shares.append((float((np.abs(value - ref) / (atol + rtol * np.abs(ref))).max()), name))
    return max(shares)
