"""Writes fixtures/docextract_training.safetensors: the weights of the small docextract model of docextract_backward.py
after 100 steps of PyTorch's AdamW on three pages.

    python tools/parity/docextract_training.py           (needs torch==2.13.0, the dx packages and safetensors)

Pages and targets come from the seeds 31, 32, 33; a step takes two of them in turn (1 2, 3 1, 2 3, …), each scaled by
one half, with the seed's five losses, clipping at norm 1, warm-up over 10 steps and linear decay to a tenth, decay on
matrices and tables. Computed in float32 and float64 from the same float32 start. For every tensor the fixture holds an
allowance against the float64 weights: twice the largest error of PyTorch's own float32 run plus 2^-22 times the largest
weight. eps is 1e-4: with a smaller one Adam's quotient turns the rounding of gradients near zero into whole steps, in
any implementation.
"""
from pathlib import Path

import numpy as np
import torch
from docextract_backward import CONFIG, FIELD_WEIGHT, LOSS_WEIGHTS, random_page, random_weights
from docextract_twin import Twin, loss
from safetensors.numpy import save_file

from dx_model.canonical_json import canonical

OUT = Path(__file__).resolve().parents[2] / "fixtures" / "docextract_training.safetensors"
STEPS, BATCH, WARMUP, RATE, FINAL = 100, 2, 10, 1e-3, 0.1
DECAY, BETAS, EPS, CLIP = 0.05, (0.9, 0.98), 1e-4, 1.0


def rate(step):
    """The schedule, steps from 0."""
    if step < WARMUP:
        return RATE * (step + 1) / WARMUP
    return RATE * (1 - (1 - FINAL) * (step - WARMUP + 1) / (STEPS - WARMUP))


def train(weights, pages, dtype):
    """name → weights after the run; the loss of each step."""
    twin = Twin(CONFIG).to(dtype).load(weights)
    decayed = [p for p in twin.parameters() if p.dim() > 1]
    rest = [p for p in twin.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": DECAY}, {"params": rest, "weight_decay": 0.0}],
                                  betas=BETAS, eps=EPS)
    tag_weights = torch.full((CONFIG.num_tags,), FIELD_WEIGHT)
    tag_weights[0] = 1.0
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        total = 0.0
        for i in range(BATCH):
            page, targets = pages[(step * BATCH + i) % len(pages)]
            tensors = {k: torch.from_numpy(v) for k, v in page.items()}
            tensors = {k: v.to(dtype) if v.dtype == torch.float32 else v for k, v in tensors.items()}
            given = {k: torch.from_numpy(np.asarray(v)) for k, v in targets.items()}
            total = total + loss(twin(tensors), given, LOSS_WEIGHTS, tag_weights)[0] / BATCH
        total.backward()
        torch.nn.utils.clip_grad_norm_(twin.parameters(), CLIP)
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        optimizer.step()
        losses.append(float(total.detach()))
    return {k: np.ascontiguousarray(v.detach().numpy()) for k, v in twin.named_parameters()}, np.array(losses)


def main():
    torch.set_num_threads(1)
    weights = random_weights(np.random.default_rng(7))
    pages = [random_page(np.random.default_rng(seed)) for seed in (31, 32, 33)]
    (f32, losses32), (f64, losses) = (train(weights, pages, dtype) for dtype in (torch.float32, torch.float64))
    tensors = {}
    for i, (page, targets) in enumerate(pages):
        tensors |= {f"page{i}/{k}": v for k, v in page.items()}
        tensors |= {f"target{i}/{k}": np.asarray(v, np.int64) for k, v in targets.items()}
    for name, ref in f64.items():
        error = float(np.abs(f32[name] - ref).max())
        tensors[f"start/{name}"], tensors[f"f64/{name}"] = weights[name], ref
        tensors[f"allowance/{name}"] = np.array(2 * error + 2.0 ** -22 * float(np.abs(ref).max()))
        moved = float(np.sqrt(np.mean((ref - weights[name]) ** 2)))
        print(f"{name:26} moved {moved:.2e}, torch's largest error {error:.2e}")
    tensors["losses"] = losses
    meta = {"config": CONFIG.to_json(), "loss_weights": LOSS_WEIGHTS, "field_weight": FIELD_WEIGHT, "steps": STEPS,
            "batch": BATCH, "warmup": WARMUP, "rate": RATE, "final": FINAL, "decay": DECAY, "betas": list(BETAS),
            "eps": EPS, "clip": CLIP, "torch": torch.__version__}
    save_file(tensors, OUT, metadata={"fixture": canonical(meta).decode()})
    print(OUT.name, len(f64), "tensors,", OUT.stat().st_size, "bytes; loss", losses[0], "to", losses[-1], "float32 to",
          losses32[-1])


if __name__ == "__main__":
    main()
