"""A vision transformer on both sides of the comparison: dx and torch eager with the same weights and images."""
import sys
from pathlib import Path

import numpy as np
from dx_model.vit import ViT, ViTConfig, to_checkpoint
from dx_train import SGD, BatchGradients, ClassLoss, ImageExample, ViTPasses, scaled_set

CONFIG = ViTConfig()  # ViT-Tiny: 224 x 224, patches of 16, depth 12, width 192, three heads; ten classes
RATE = 1e-3


def model(config=CONFIG, seed=7):
    """A model of random parameters, none of them zero or one."""
    found, rng = ViT.initial(config, seed), np.random.default_rng(seed)
    for spec in found.parameters.specs:
        scale = 0.3 if spec.shape[1:] == () else 1.0 / np.sqrt(spec.size / spec.shape[0])
        found.parameters[spec.name][...] += (scale * rng.standard_normal(spec.shape)).astype(np.float32)
    found.repack()
    return found


def examples(batch, config=CONFIG, seed=11):
    rng = np.random.default_rng(seed)
    return [ImageExample(str(i), rng.standard_normal(config.image_shape, np.float32), i % config.num_classes)
            for i in range(batch)]


class Dx:
    """Forward of a batch; a training step: forward, loss, backward, sum over examples, plain descent, repacking."""

    def __init__(self, batch, config=CONFIG):
        self.model, self.batch = model(config), batch
        self.images = np.stack([example.image for example in batch])
        self.gradients = BatchGradients(self.model, ClassLoss(), passes=ViTPasses(self.model))
        self.optimizer = SGD(self.model.parameters, scaled_set(self.model.parameters, 1.0))

    def forward(self):
        return self.model.forward(self.images)

    def step(self):
        self.gradients.run(self.batch)
        self.optimizer.step(1, RATE, self.gradients.total)
        self.model.repack()

    def close(self):
        self.gradients.close()


class Torch:
    """The twin of tools/parity in eager mode; fast: through scaled_dot_product_attention."""

    def __init__(self, torch, batch, fast, config=CONFIG):
        sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "parity"))
        from vit_twin import Twin
        self.torch = torch
        self.twin = Twin(config, fast).load(to_checkpoint(model(config).parameters, "timm"))
        self.images = torch.from_numpy(np.stack([example.image for example in batch]))
        self.labels = torch.tensor([example.label for example in batch])
        self.optimizer = torch.optim.SGD(self.twin.parameters(), RATE)

    def forward(self):
        with self.torch.inference_mode():
            return self.twin(self.images)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        self.torch.nn.functional.cross_entropy(self.twin(self.images), self.labels).backward()
        self.optimizer.step()
