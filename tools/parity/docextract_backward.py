"""Writes fixtures/docextract_backward.safetensors: PyTorch's activations, losses and gradients of a small docextract
model.

    python tools/parity/docextract_backward.py           (needs torch==2.13.0, the dx packages and safetensors)

The model has generic random weights (seed 7), the page and its targets come from seed 31, every loss is on. All is
computed in float32 and in float64 from the same float32 inputs. For every tensor the fixture holds an allowance
atol + rtol * |ref| against the float64 reference: rtol = c and atol = c * RMS(ref), one c for all tensors, such that
PyTorch's own float32 run uses at most a tenth of it (a tenth in its worst tensor).
"""
from pathlib import Path

import numpy as np
import torch
from docextract_twin import Twin, loss
from safetensors.numpy import save_file

from dx_model.canonical_json import canonical
from dx_model.docextract.config import DocExtractConfig, tensor_table

OUT = Path(__file__).resolve().parents[2] / "fixtures" / "docextract_backward.safetensors"
CONFIG = DocExtractConfig(
    fields=("company", "date", "address", "total"), roles=("header", "question", "answer"),
    doc_types=("invoice", "receipt"), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
    max_chars=8, char_dim=8, char_channels=24, position_buckets=32, word_features=20, pair_features=12, pair_hidden=16,
    relation_size=8)
WORDS, DISTINCT = 37, 29
LOSS_WEIGHTS = {"tag": 1.0, "role": 0.5, "doc": 0.25, "item": 0.75, "key_value": 0.5}
FIELD_WEIGHT = 3.0
SHARE = 0.1


def random_weights(rng):
    weights = {}
    for spec in tensor_table(CONFIG):
        std = 0.3 if not isinstance(spec.init, float) else spec.init if spec.init != 0.02 else 0.5
        w = rng.standard_normal(spec.shape) * std
        if spec.init == "ones":
            w += 1.0
        weights[spec.name] = w.astype(np.float32)
    weights["char_emb.weight"][0] = 0.0
    return weights


def random_page(rng):
    lengths = rng.integers(1, CONFIG.max_chars + 1, DISTINCT)
    chars = rng.integers(1, CONFIG.char_vocab, (DISTINCT, CONFIG.max_chars))
    chars[np.arange(CONFIG.max_chars)[None] >= lengths[:, None]] = 0
    inverse = np.concatenate([np.arange(DISTINCT), rng.integers(0, DISTINCT, WORDS - DISTINCT)])
    page = {"chars": chars, "inverse": rng.permutation(inverse),
            "features": rng.standard_normal((WORDS, CONFIG.word_features)).astype(np.float32),
            "positions": rng.integers(0, CONFIG.position_buckets, (WORDS, 4)),
            "pairs": rng.standard_normal((CONFIG.pair_features, WORDS, WORDS)).astype(np.float32)}

    def some(high):
        return np.where(rng.random(WORDS) < 0.2, -1, rng.integers(0, high, WORDS))

    targets = {"tag": some(CONFIG.num_tags), "role": some(CONFIG.num_role_tags), "doc": np.array(1),
               "item": some(WORDS), "key_value": some(WORDS)}
    return page, targets


def run(weights, page, targets, dtype):
    """name → array: activations ("act/…"), logits ("out/…"), losses ("loss/…"), gradients ("grad/…")."""
    twin = Twin(CONFIG).to(dtype).load(weights)
    tensors = {k: torch.from_numpy(v) for k, v in page.items()}
    tensors = {k: v.to(dtype) if v.dtype == torch.float32 else v for k, v in tensors.items()}
    kept, counts = {}, {}

    def keep(name, x):
        x.retain_grad()
        counts[name] = counts.get(name, -1) + 1
        kept[f"{name}.{counts[name]}" if name in ("attention", "block") else name] = x

    out = twin(tensors, keep)
    tag_weights = torch.full((CONFIG.num_tags,), FIELD_WEIGHT)
    tag_weights[0] = 1.0
    given = {k: torch.from_numpy(np.asarray(v)) for k, v in targets.items()}
    total, terms = loss(out, given, LOSS_WEIGHTS, tag_weights)
    total.backward()
    result = {f"out/{k}": v for k, v in out.items()} | {f"act/{k}": v for k, v in kept.items()}
    result |= {f"dact/{k}": v.grad for k, v in kept.items()} | {f"loss/{k}": v for k, v in terms.items()}
    result |= {"loss/total": total} | {f"grad/{k}": p.grad for k, p in twin.named_parameters()}
    return {k: np.ascontiguousarray(v.detach().numpy()) for k, v in result.items()}


def main():
    torch.set_num_threads(1)
    weights = random_weights(np.random.default_rng(7))
    page, targets = random_page(np.random.default_rng(31))
    f32, f64 = run(weights, page, targets, torch.float32), run(weights, page, targets, torch.float64)
    tensors = {f"weight/{k}": v for k, v in weights.items()} | {f"page/{k}": v for k, v in page.items()}
    tensors |= {f"target/{k}": v.astype(np.int64) for k, v in targets.items()}
    errors = {name: np.abs(f32[name].astype(np.float64) - ref) for name, ref in f64.items()}
    rms = {name: float(np.sqrt(np.mean(ref * ref))) for name, ref in f64.items()}
    # Gradients that are zero in exact arithmetic (a bias that a softmax cancels) have no scale of their own.
    scaled = [name for name in f64 if rms[name] > 1e-9]
    c = max(float((errors[name] / (rms[name] + np.abs(f64[name]))).max()) for name in scaled) / SHARE
    for name, ref in f64.items():
        floor = float(errors[name].max()) / SHARE if name not in scaled else 0.0
        tensors[f"f64/{name}"], tensors[f"f32/{name}"] = ref, f32[name]
        tensors[f"allowance/{name}"] = np.array([max(c * rms[name], floor), c])
    meta = {"config": CONFIG.to_json(), "loss_weights": LOSS_WEIGHTS, "field_weight": FIELD_WEIGHT,
            "torch": torch.__version__}
    save_file(tensors, OUT, metadata={"fixture": canonical(meta).decode()})
    count = sum(w.size for w in weights.values())
    print(OUT.name, len(f64), "tensors,", count, "weights,", OUT.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
