"""docextract on both sides of the comparison: dx, torch and onnxruntime from one set of weights, and pages for them."""
import io
import sys
from pathlib import Path

import dx_kernels
import dx_model
import numpy as np
from dx_model.docextract import DocExtract, DocExtractConfig, Gradients, Losses, Targets, Workspace

CONFIG = DocExtractConfig(fields=("company", "date", "address", "total"), roles=("header", "question", "answer"),
                          doc_types=("invoice", "receipt"))
WEIGHTS = {"tag": 1.0, "role": 0.5, "doc": 0.25, "item": 0.75, "key_value": 0.5}
LABELS = ("Total:", "Invoice", "No.", "Date", "Tel", "JALAN", "SDN", "BHD", "Qty", "Price", "Amount", "Cash", "Change")


def page(words, seed=7):
    """A page of so many words in the manner of a receipt: seven a line, a third of them amounts, repeated labels."""
    rng = np.random.default_rng(seed)
    made = []
    for i in range(words):
        text = f"{rng.integers(1, 999)}.{rng.integers(0, 99):02}" if i % 3 == 0 else str(rng.choice(LABELS))
        text += str(rng.integers(0, 50)) if i % 5 == 1 else ""
        x, y = 90 * (i % 7) + int(rng.integers(0, 9)), 22 * (i // 7)
        made.append(dx_model.Word(text, (x, y, x + 7 * len(text), y + 15)))
    return dx_model.Page(f"p{words}", 720, 22 * (words // 7 + 2), made)


def weights(config=CONFIG, seed=7):
    """Random parameters, none of them zero."""
    parameters = DocExtract.initial(config, seed).parameters
    rng = np.random.default_rng(seed)
    for name, view in parameters.items():
        if name.endswith(("proj.weight", "fc2.weight")):
            view[...] = rng.standard_normal(view.shape) / np.sqrt(np.float32(view.shape[-1]))
    return parameters


def encoded(words, config=CONFIG):
    """The first window of that many rows."""
    whole = dx_model.encode_page(page(words), config.encoding())
    return whole.window(0, min(words, config.max_words))


def targets(rows, config=CONFIG, seed=31):
    rng = np.random.default_rng(seed)

    def some(high):
        return rng.integers(0, high, rows).astype(np.int32)

    return Targets(some(config.num_tags), some(config.num_role_tags), 1, some(rows), some(rows))


class Dx:
    """The product: forward of all heads; forward, losses and backward of every tensor."""

    def __init__(self, parameters):
        self.model, self.losses = DocExtract(parameters), Losses(parameters.config, WEIGHTS)
        self.gradients, self.space = Gradients(parameters.config), Workspace()

    def forward(self, window):
        return self.model.forward(window, ("tag", "role", "doc", "pointer"))

    def step(self, window, wanted):
        saved = self.model.forward_saved(window, self.space, self.losses.heads)
        _, douts = self.losses.run(saved.outputs, wanted, 1.0, self.space)
        self.model.backward(saved, douts, self.gradients)


class Torch:
    """The twin of tools/parity in eager mode; its pair features are given, which dx computes inside its forward."""

    def __init__(self, parameters, fast):
        import torch
        sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "parity"))
        from docextract_twin import Block, FastBlock, Twin, loss
        self.torch, self.loss = torch, loss
        self.twin = Twin(parameters.config, FastBlock if fast else Block).load(parameters.to_container())
        self.tag_weight = torch.full((parameters.config.num_tags,), 3.0)
        self.tag_weight[0] = 1.0

    def compiled(self):
        """The same through torch.compile; its first calls compile."""
        self.twin = self.torch.compile(self.twin, dynamic=True)
        return self

    def page(self, window):
        n = len(window)
        pairs = np.empty((CONFIG.pair_features, n, n), np.float32)
        dx_kernels.pair_features(window.real, window.whole, pairs)
        given = {"chars": window.characters.astype(np.int64), "inverse": window.inverse.astype(np.int64),
                 "features": window.features, "positions": np.ascontiguousarray(window.position.T.astype(np.int64)),
                 "pairs": pairs}
        return {name: self.torch.from_numpy(np.ascontiguousarray(array)) for name, array in given.items()}

    def targets(self, wanted):
        named = {name: getattr(wanted, name) for name in WEIGHTS}
        return {name: self.torch.from_numpy(np.asarray(value).astype(np.int64)) for name, value in named.items()}

    def forward(self, given):
        with self.torch.inference_mode():
            return self.twin(given)

    def step(self, given, wanted):
        self.twin.zero_grad(set_to_none=True)
        self.loss(self.twin(given), wanted, WEIGHTS, self.tag_weight)[0].backward()


class Onnx:
    """onnxruntime over the twin exported with the same weights, page and window sizes free."""

    def __init__(self, torch_side, given, threads):
        import onnxruntime
        names, outputs = list(given), ["tag", "role", "doc", "item", "key_value"]

        class ByPosition(torch_side.torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.twin = torch_side.twin

            def forward(self, *arrays):
                out = self.twin(dict(zip(names, arrays, strict=True)))
                return tuple(out[name] for name in outputs)

        file = io.BytesIO()
        axes = {"chars": {0: "u"}, "inverse": {0: "n"}, "features": {0: "n"}, "positions": {0: "n"},
                "pairs": {1: "n", 2: "n"}, "tag": {0: "n"}, "role": {0: "n"}, "item": {0: "n", 1: "n"},
                "key_value": {0: "n", 1: "n"}}
        torch_side.torch.onnx.export(ByPosition().eval(), tuple(given.values()), file, input_names=names,
                                     output_names=outputs, dynamic_axes=axes, opset_version=17, dynamo=False)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(file.getvalue(), options, providers=["CPUExecutionProvider"])

    def page(self, given):
        return {name: tensor.numpy() for name, tensor in given.items()}

    def forward(self, given):
        return self.session.run(None, given)
