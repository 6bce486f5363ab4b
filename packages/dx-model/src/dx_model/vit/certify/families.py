"""The operations under certification: their definition as plain loops, their wiring, and the theorems they carry.

The definitions are the page's, one scalar at a time, and use no matrix product, no patch matrix and no gradient; they
know nothing of the wiring. Elements may be anything with + - *.
"""
from dataclasses import dataclass

import numpy as np

from .sizes import Sizes

# theorem → (operation, input whose gradient it is about)
THEOREMS = {
    "rowDense_weight_sgd_certified": ("row_dense", "s.weight"),
    "rowDense_bias_sgd_certified": ("row_dense", "s.bias"),
    "layerNormVec_gamma_sgd_certified": ("layer_norm", "s.weight"),
    "layerNormVec_beta_sgd_certified": ("layer_norm", "s.bias"),
    "posEmbed_sgd_certified": ("patch_embed", "pos"),
    "clsToken_sgd_certified": ("patch_embed", "cls"),
    "patchEmbed_weight_sgd_certified": ("patch_embed", "patch.weight"),
    "patchEmbed_bias_sgd_certified": ("patch_embed", "patch.bias"),
    "IR.weight_grad_bridge (classifier)": ("classifier", "head.weight"),
    "IR.bias_grad_bridge (classifier)": ("classifier", "head.bias"),
}
# What else the whole step needs: gradients of inputs, and the operations without parameters.
BEYOND = {
    "dense input": ("row_dense", "x"),
    "layer norm input": ("layer_norm", "x"),
    "patch embedding image": ("patch_embed", "image"),
    "classifier input": ("classifier", "x"),
    "attention qkv": ("attention", "qkv"),
    "GELU tanh": ("gelu_tanh", "x"),
    "GELU erf": ("gelu_erf", "x"),
    "softmax cross-entropy": ("cross_entropy", "logits"),
}
FAMILIES = THEOREMS | BEYOND


@dataclass(frozen=True)
class Case:
    """One operation at one shape: shapes of its inputs (those with a dot are parameters) and of its output."""

    operation: str
    shape: tuple
    config: Sizes
    inputs: dict
    output: tuple
    affine: tuple = ()  # inputs in which the output is affine, all at once

    def parameters(self, values):
        return {name: values[name] for name in self.inputs if "." in name or name in ("cls", "pos")}

    def forward(self, t, v):
        """The wiring's output."""
        return self.run(t, v, None)[0]

    def backward(self, t, v, dy):
        """The wiring's gradients: name → array."""
        return self.run(t, v, dy)[1]

    def run(self, t, v, dy):
        y, gradients = WIRING[self.operation](t, v, dy)
        if dy is not None:
            gradients |= {name: t.gradients[name] for name in self.parameters(v)}
        return y, gradients

    def definition(self, v, t):
        """The page's output, by loops; functions and constants are the table's."""
        return DEFINITIONS[self.operation](self, v, t)


def case(operation, *shape) -> Case:
    """The case of an operation at a shape."""
    return Case(operation, shape, *MAKERS[operation](*shape))


# --- per-token dense, (N, a, c) --------------------------------------------------------------------------------------


def make_row_dense(n, a, c):
    return Sizes(), {"s.weight": (c, a), "s.bias": (c,), "x": (n, a)}, (n, c), ("s.weight", "s.bias")


def wire_row_dense(t, v, dy):
    y = t.linear("s", v["x"])
    return y, None if dy is None else {"x": t.linear_backward("s", dy, v["x"])}


def define_row_dense(case, v, t):
    """y(r, k) = sum over i of x(r, i) W(i, k) + b(k)."""
    x, w, b = v["x"], v["s.weight"], v["s.bias"]
    y = np.empty(case.output, object)
    for r, k in np.ndindex(*case.output):
        y[r, k] = b[k]
        for i in range(x.shape[1]):
            y[r, k] = y[r, k] + x[r, i] * w[k, i]
    return y


# --- classifier on the CLS row, (N, D, K) ----------------------------------------------------------------------------


def make_classifier(n, d, k):
    return Sizes(), {"head.weight": (k, d), "head.bias": (k,), "x": (n, d)}, (1, k), ("head.weight", "head.bias")


def wire_classifier(t, v, dy):
    row = t.cls_row(v["x"])
    y = t.linear("head", row)
    return y, None if dy is None else {"x": t.cls_row_backward(t.linear_backward("head", dy, row), len(v["x"]))}


def define_classifier(case, v, t):
    y = np.empty(case.output, object)
    for k in range(case.output[1]):
        y[0, k] = v["head.bias"][k]
        for i in range(v["x"].shape[1]):
            y[0, k] = y[0, k] + v["x"][0, i] * v["head.weight"][k, i]
    return y


# --- patch embedding, (channels, H, W, P, N, D) ----------------------------------------------------------------------


def make_patch_embed(channels, height, width, patch, n, d):
    sizes = Sizes(num_channels=channels, image_size=(height, width), patch_size=patch, rows=n + 1, hidden_size=d)
    inputs = {"patch.weight": (d, channels, patch, patch), "patch.bias": (d,), "cls": (d,), "pos": (n + 1, d),
              "image": (channels, height, width)}
    return sizes, inputs, (n + 1, d), ("patch.weight", "patch.bias", "cls", "pos")


def wire_patch_embed(t, v, dy):
    y, saved = t.patch_embed(v["image"])
    if dy is None:
        return y, None
    t.patch_embed_backward(dy, saved)
    return y, {"image": t.patch_image_gradient(dy, v["image"].shape)}


def read(image, patch, c, kh, kw, p):
    """The pad-guarded read of pixel (c, h P + kh, w P + kw) of patch p: None outside the image."""
    width = image.shape[2] // patch
    y, x = p // width * patch + kh, p % width * patch + kw
    return image[c, y, x] if y < image.shape[1] and x < image.shape[2] else None


def define_patch_embed(case, v, t):
    """y(n, d) = pos(n, d) + cls(d) in row 0, else + b(d) + sum over taps of K(d, c, kh, kw) read(c, kh, kw, n - 1)."""
    channels, _, _, patch, _, _ = case.shape
    y = np.empty(case.output, object)
    for n, d in np.ndindex(*case.output):
        y[n, d] = v["pos"][n, d] + (v["patch.bias"][d] if n else v["cls"][d])
        for c, kh, kw in np.ndindex(channels, patch, patch) if n else ():
            pixel = read(v["image"], patch, c, kh, kw, n - 1)
            if pixel is not None:
                y[n, d] = y[n, d] + v["patch.weight"][d, c, kh, kw] * pixel
    return y


# --- layer norm over vectors, (N, D) ---------------------------------------------------------------------------------


def make_layer_norm(n, d):
    return Sizes(), {"s.weight": (d,), "s.bias": (d,), "x": (n, d)}, (n, d), ("s.weight", "s.bias")


def wire_layer_norm(t, v, dy):
    y, saved = t.layer_norm("s", v["x"])
    return y, None if dy is None else {"x": t.layer_norm_backward("s", dy, saved)}


def define_layer_norm(case, v, t):
    """y(r, k) = gamma(k) (x(r, k) - mean) / sqrt(variance + eps) + beta(k)."""
    x, (rows, d) = v["x"], case.output
    y = np.empty(case.output, object)
    for r in range(rows):
        mean = t.over(total(x[r]), d)
        variance = t.over(total([(e - mean) * (e - mean) for e in x[r]]), d)
        s = t.algebra.apply("inverse_root", variance + t.constant("eps"))
        for k in range(d):
            y[r, k] = v["s.weight"][k] * ((x[r, k] - mean) * s) + v["s.bias"][k]
    return y


def total(elements):
    result = 0
    for e in elements:
        result = result + e
    return result


# --- attention, (tokens, heads, head size) ---------------------------------------------------------------------------


def make_attention(n, heads, d):
    sizes = Sizes(num_attention_heads=heads, hidden_size=heads * d)
    return sizes, {"qkv": (n, 3 * heads * d)}, (n, heads * d)


def wire_attention(t, v, dy):
    y, saved = t.attention("s", v["qkv"])
    return y, None if dy is None else {"qkv": t.attention_backward("s", dy, v["qkv"], saved)}


def define_attention(case, v, t):
    """Head h: y(i, c) = sum over j of exp(q_i k_j / sqrt(d)) v(j, c) / sum over j of the same exponentials."""
    n, heads, d = case.shape
    qkv, width, y = v["qkv"], heads * d, np.empty(case.output, object)
    scale = t.algebra.apply("inverse", t.root(d))
    for h in range(heads):
        for i in range(n):
            e = []
            for j in range(n):
                score = total(qkv[i, h * d + c] * qkv[j, width + h * d + c] for c in range(d))
                e.append(t.algebra.apply("exp", score * scale))
            part = t.algebra.apply("inverse", total(e))
            for c in range(d):
                y[i, h * d + c] = total(e[j] * part * qkv[j, 2 * width + h * d + c] for j in range(n))
    return y


# --- GELU, (n,) ------------------------------------------------------------------------------------------------------


def make_gelu(form):
    return lambda n: (Sizes(hidden_act=form), {"x": (1, n)}, (1, n))


def wire_gelu(t, v, dy):
    y, saved = t.gelu(v["x"])
    return y, None if dy is None else {"x": t.gelu_backward(dy, saved)}


def define_gelu_tanh(case, v, t):
    y, c0, c1 = np.empty(case.output, object), t.constant("c0"), t.constant("c1")
    for at, x in np.ndenumerate(v["x"]):
        y[at] = t.constant("half") * x * (1 + t.algebra.apply("tanh", c0 * (x + c1 * x * x * x)))
    return y


def define_gelu_erf(case, v, t):
    y = np.empty(case.output, object)
    for at, x in np.ndenumerate(v["x"]):
        y[at] = x * t.algebra.apply("normal_cdf", x)
    return y


# --- softmax cross-entropy, (classes, label): a loss, so dy is the one number it is multiplied by --------------------


def make_cross_entropy(k, label):
    return Sizes(), {"logits": (1, k)}, (1, 1)


def wire_cross_entropy(t, v, dy):
    label = v["label"]
    return None, None if dy is None else {"logits": t.mul(dy, t.cross_entropy_gradient(v["logits"], label))}


def define_cross_entropy(case, v, t):
    z, apply = v["logits"], t.algebra.apply
    y = np.empty((1, 1), object)
    y[0, 0] = apply("log", total(apply("exp", e) for e in z[0])) - z[0, case.shape[1]]
    return y


MAKERS = {"row_dense": make_row_dense, "classifier": make_classifier, "patch_embed": make_patch_embed,
          "layer_norm": make_layer_norm, "attention": make_attention, "gelu_tanh": make_gelu("gelu_tanh"),
          "gelu_erf": make_gelu("gelu_erf"), "cross_entropy": make_cross_entropy}
WIRING = {"row_dense": wire_row_dense, "classifier": wire_classifier, "patch_embed": wire_patch_embed,
          "layer_norm": wire_layer_norm, "attention": wire_attention, "gelu_tanh": wire_gelu, "gelu_erf": wire_gelu,
          "cross_entropy": wire_cross_entropy}
DEFINITIONS = {"row_dense": define_row_dense, "classifier": define_classifier, "patch_embed": define_patch_embed,
               "layer_norm": define_layer_norm, "attention": define_attention, "gelu_tanh": define_gelu_tanh,
               "gelu_erf": define_gelu_erf, "cross_entropy": define_cross_entropy}
