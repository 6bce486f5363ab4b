"""scikit-learn's digits (1,797 images of 8 x 8, ten classes) for a small vision transformer, and a torch twin that
takes the same batches."""
import sys
from pathlib import Path

import numpy as np
from dx_train import ExampleStream, ImageExample, TrainSettings, ViTConfig, epoch_permutation, learning_rate

SIZES = {8: ViTConfig(image_size=(8, 8), num_channels=1, patch_size=2, num_classes=10, hidden_size=48,
                      num_hidden_layers=4, num_attention_heads=3, intermediate_size=96),
         16: ViTConfig(image_size=(16, 16), num_channels=1, patch_size=4, num_classes=10, hidden_size=48,
                       num_hidden_layers=4, num_attention_heads=3, intermediate_size=96)}
ADAMW = TrainSettings(seed=1, epochs=40, batch=32, learning_rate=2e-3, warmup=100, weight_decay=0.3, final_rate=0.02)
DESCENT = TrainSettings(seed=1, epochs=40, batch=32, learning_rate=0.6, warmup=100, optimizer="sgd", final_rate=0.02)


def parts(size):
    """(training 1,078, development 269, held-out 450 examples) of images of that side: pixels / 16, upscaled by
    repeating; the parts are cut from the permutation of SplitMix64 with seed 0."""
    from sklearn.datasets import load_digits

    data, times = load_digits(), size // 8
    images = (data.images / 16).astype(np.float32).repeat(times, 1).repeat(times, 2)[:, None]
    made = [ImageExample(f"digit {i:04}", np.ascontiguousarray(images[i]), int(data.target[i]))
            for i in epoch_permutation(0, 0, len(images)).tolist()]
    return made[:1078], made[1078:1347], made[1347:]


class Twin:
    """The torch model with the same starting weights, batches, rates, clipping and optimizer."""

    def __init__(self, torch, model, settings, examples):
        sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "parity"))
        from dx_model.vit import to_checkpoint
        from vit_twin import Twin

        self.torch, self.settings, self.examples = torch, settings, examples
        self.model = Twin(model.config, fast=True).load(to_checkpoint(model.parameters, "timm"))
        decays = [p for name, p in self.model.named_parameters() if p.ndim in (2, 4)]
        plain = [p for name, p in self.model.named_parameters() if p.ndim not in (2, 4)]
        s, groups = settings, [{"params": decays, "weight_decay": settings.weight_decay},
                               {"params": plain, "weight_decay": 0.0}]
        self.optimizer = (torch.optim.SGD(self.model.parameters(), lr=1.0) if s.optimizer == "sgd" else
                          torch.optim.AdamW(groups, betas=(s.beta1, s.beta2), eps=s.eps))

    def train(self):
        """Every step; the loss of each."""
        torch, s, losses = self.torch, self.settings, []
        stream, total = ExampleStream(len(self.examples), s.batch, s.seed), s.total_steps(len(self.examples))
        images = torch.from_numpy(np.stack([example.image for example in self.examples]))
        labels = torch.tensor([example.label for example in self.examples])
        for step in range(total):
            rows = [index for _, index in stream.step(step)]
            for group in self.optimizer.param_groups:
                group["lr"] = learning_rate(step, total, s.learning_rate, s.warmup, s.final_rate)
            self.optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(self.model(images[rows]), labels[rows])
            loss.backward()
            if s.clip_norm:
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), s.clip_norm)
            self.optimizer.step()
            losses.append(float(loss.detach()))
        return losses

    def accuracy(self, examples):
        with self.torch.inference_mode():
            logits = self.model(self.torch.from_numpy(np.stack([example.image for example in examples]))).numpy()
        return float((logits.argmax(1) == [example.label for example in examples]).mean())
