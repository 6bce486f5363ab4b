"""PyTorch's logits, loss and every gradient entry of vision transformers, as the oracle of the adjoint.

    python tools/parity/vit_backward.py           (needs torch==2.13.0, the dx packages and safetensors)

writes fixtures/vit_backward.safetensors: models of depth 2, one for each form of GELU, random weights, two images.
All is computed in float32 and in float64 from the same float32 inputs. The allowance of a tensor is atol + rtol * |ref|
against float64 with rtol = c and atol = c * RMS(ref), one c for all tensors, such that PyTorch's own float32 run uses
at most a tenth of it. `bench parity` also puts ViT-Tiny at its true shape through `cases`.
"""
import json
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file
from vit_twin import Twin

from dx_model.vit import Parameters, ViTConfig, to_checkpoint
from dx_model.vit.checkpoints import checkpoint_name

OUT = Path(__file__).resolve().parents[2] / "fixtures" / "vit_backward.safetensors"
SMALL = {"image_size": (12, 16), "num_channels": 2, "patch_size": 4, "num_classes": 5, "hidden_size": 18,
         "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 30}
SHARE = 0.1


def random_parameters(config, seed=7):
    """Generic weights: layer norms around one, everything else around zero, nothing exactly there."""
    parameters, rng = Parameters(config), np.random.default_rng(seed)
    for spec in parameters.specs:
        deviation = spec.init if isinstance(spec.init, float) and spec.init != 0.02 else 0.3
        if spec.name.endswith(("proj.weight", "fc2.weight")):
            deviation = 1.0 / np.sqrt(spec.shape[1])
        values = deviation * rng.standard_normal(spec.shape) + float(spec.init == "ones")
        parameters[spec.name][...] = values.astype(np.float32)
    return parameters


def random_images(config, count=2, seed=31):
    """(images, labels)."""
    rng = np.random.default_rng(seed)
    images = rng.standard_normal((count, *config.image_shape)).astype(np.float32)
    return images, rng.integers(0, config.num_classes, count)


def from_timm(config, tensors):
    """Arrays by our names from those by timm's: q, k and v are the thirds of qkv."""
    found = {}
    for spec in Parameters(config).specs:
        theirs, part = checkpoint_name("timm", spec.name), spec.name.split(".")[-2:][0]
        array = tensors[theirs]
        if ".qkv." in theirs:
            array = array.reshape(3, *spec.shape)["qkv".index(part)]
        found[spec.name] = array.reshape(spec.shape)
    return found


def run(config, parameters, images, labels, dtype):
    """name → array: logits, loss (mean over the images), dimages, grad/… by our names."""
    twin = Twin(config).to(dtype).load(to_checkpoint(parameters, "timm"))
    given = torch.from_numpy(images).to(dtype).requires_grad_()
    logits = twin(given)
    loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(labels))
    loss.backward()
    grads = from_timm(config, {name: p.grad.numpy() for name, p in twin.named_parameters()})
    result = {"logits": logits.detach().numpy(), "loss": loss.detach().numpy().reshape(1)}
    result |= {f"grad/{name}": np.ascontiguousarray(array) for name, array in grads.items()}
    return result | {"dimages": given.grad.numpy()}


def reference(config, parameters, images, labels):
    """(f32, f64, allowance): name → array, and name → (atol, rtol)."""
    f32, f64 = (run(config, parameters, images, labels, dtype) for dtype in (torch.float32, torch.float64))
    errors = {name: np.abs(f32[name].astype(np.float64) - ref) for name, ref in f64.items()}
    rms = {name: float(np.sqrt(np.mean(ref * ref))) for name, ref in f64.items()}
    # The gradient of a key bias is zero in exact arithmetic (a softmax does not see it); its scale is the query bias's.
    scale = {name: rms[name.replace(".k.bias", ".q.bias")] for name in f64}
    c = max(float((errors[name] / (scale[name] + np.abs(f64[name]))).max()) for name in f64) / SHARE
    return f32, f64, {name: (c * scale[name], c) for name in f64}


def cases(shapes):
    """For each dictionary of a config's sizes: (config, parameters, images, labels, f32, f64, allowance)."""
    for sizes in shapes:
        config = ViTConfig(**sizes)
        given = (random_parameters(config), *random_images(config))
        yield config, *given, *reference(config, *given)


def main():
    torch.set_num_threads(1)
    tensors, meta = {}, {"torch": torch.__version__, "configs": {}}
    for act in ("gelu_tanh", "gelu_erf"):
        (config, parameters, images, labels, f32, f64, allowance), = cases([SMALL | {"hidden_act": act}])
        meta["configs"][act] = config.to_json()
        made = {f"weight/{name}": array for name, array in parameters.to_container().items()}
        made |= {"images": images, "labels": labels}
        for name, ref in f64.items():
            made |= {f"f64/{name}": ref, f"f32/{name}": f32[name], f"allowance/{name}": np.array(allowance[name])}
        tensors |= {f"{act}/{name}": array for name, array in made.items()}
    save_file(tensors, OUT, metadata={"fixture": json.dumps(meta)})
    print(OUT.name, len(tensors), "arrays,", OUT.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
