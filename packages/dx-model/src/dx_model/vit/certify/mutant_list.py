"""The mutants of column H: (family, name, text, wrong text) in `ops`, wrong reads, (name, text, wrong text) in
`wiring`, and wrong kernel outputs."""
import numpy as np

from ..float32 import Kernels

WEIGHT, BIAS = "rowDense_weight_sgd_certified", "rowDense_bias_sgd_certified"
GAMMA, BETA = "layerNormVec_gamma_sgd_certified", "layerNormVec_beta_sgd_certified"
POS, CLS = "posEmbed_sgd_certified", "clsToken_sgd_certified"
PATCH_WEIGHT, PATCH_BIAS = "patchEmbed_weight_sgd_certified", "patchEmbed_bias_sgd_certified"
HEAD_WEIGHT, HEAD_BIAS = "IR.weight_grad_bridge (classifier)", "IR.bias_grad_bridge (classifier)"

DENSE_BIAS = 'self.assign(f"{site}.bias", self.column_sum(dy))\n        return self.matmul'
OPERATIONS = [
    (WEIGHT, "dense: the bias is forgotten in forward",
     'transpose_b=True), self.parameter(f"{site}.bias"))\n        return y',
     'transpose_b=True), self.sub(self.parameter(f"{site}.bias"), self.parameter(f"{site}.bias")))\n        return y'),
    (WEIGHT, "dense: weight gradient of the first token only",
     "self.matmul(dy, x, transpose_a=True))",
     "self.matmul(self.rows(dy, 0, 1), self.rows(x, 0, 1), transpose_a=True))"),
    (WEIGHT, "dense: weight gradient without the last token",
     "self.matmul(dy, x, transpose_a=True))",
     "self.matmul(self.rows(dy, 0, -1), self.rows(x, 0, -1), transpose_a=True))"),
    (WEIGHT, "dense: weight gradient transposed", "self.matmul(dy, x, transpose_a=True))",
     "self.reshape(self.matmul(x, dy, transpose_a=True), (self.shape(dy)[1], -1)))"),
    (WEIGHT, "dense: weight gradient averaged over tokens", "self.matmul(dy, x, transpose_a=True))",
     "self.over(self.matmul(dy, x, transpose_a=True), 1 + self.shape(x)[0]))"),
    (WEIGHT, "dense: weight gradient with the wrong sign", "self.matmul(dy, x, transpose_a=True))",
     "self.matmul(self.sub(dy, self.add(dy, dy)), x, transpose_a=True))"),
    (BIAS, "dense: bias gradient is the first token's", DENSE_BIAS,
     'self.assign(f"{site}.bias", self.reshape(self.rows(dy, 0, 1), (-1,)))\n        return self.matmul'),
    (BIAS, "dense: bias gradient without the first token", DENSE_BIAS,
     'self.assign(f"{site}.bias", self.column_sum(self.rows(dy, 1, None)))\n        return self.matmul'),
    (BIAS, "dense: bias gradient twice", DENSE_BIAS,
     'self.assign(f"{site}.bias", self.column_sum(self.add(dy, dy)))\n        return self.matmul'),
    ("dense input", "dense: input gradient by the weight's transpose",
     'return self.matmul(dy, self.parameter(f"{site}.weight"))',
     'return self.reshape(self.matmul(self.parameter(f"{site}.weight"), dy, True, True), (self.shape(dy)[0], -1))'),
    (GAMMA, "layer norm: gamma's gradient without xhat", "self.column_sum(self.mul(dy, xhat))", "self.column_sum(dy)"),
    (GAMMA, "layer norm: gamma's gradient with gamma in it", "self.column_sum(self.mul(dy, xhat))",
     'self.column_sum(self.mul(self.mul(dy, self.parameter(f"{site}.weight")), xhat))'),
    (GAMMA, "layer norm: gamma's gradient of the first row", "self.column_sum(self.mul(dy, xhat))",
     "self.column_sum(self.rows(self.mul(dy, xhat), 0, 1))"),
    (BETA, "layer norm: beta's gradient takes xhat along",
     'self.assign(f"{site}.bias", self.column_sum(dy))\n        g =',
     'self.assign(f"{site}.bias", self.column_sum(self.mul(dy, xhat)))\n        g ='),
    (BETA, "layer norm: beta's gradient without the last row",
     'self.assign(f"{site}.bias", self.column_sum(dy))\n        g =',
     'self.assign(f"{site}.bias", self.column_sum(self.rows(dy, 0, -1)))\n        g ='),
    ("layer norm input", "layer norm: eps forgotten",
     'self.inverse_root(self.add(variance, self.constant("eps")))', "self.inverse_root(variance)"),
    ("layer norm input", "layer norm: variance over d + 1", "variance = self.over(self.row_dot(c, c), d)",
     "variance = self.over(self.row_dot(c, c), d + 1)"),
    ("layer norm input", "layer norm: the mean's term dropped", "self.sub(self.sub(g, self.column(mean)), ",
     "self.sub(g, "),
    ("layer norm input", "layer norm: the variance's term dropped", "self.mul(xhat, self.column(along)))",
     "self.mul(xhat, self.column(self.sub(along, along))))"),
    ("layer norm input", "layer norm: 1 / sqrt forgotten in backward",
     "dx = self.mul(self.column(inv), self.sub(", 'dx = self.mul(self.constant("one"), self.sub('),
    ("layer norm input", "layer norm: gamma forgotten in backward",
     'g = self.mul(dy, self.parameter(f"{site}.weight"))', "g = dy"),
    ("layer norm input", "layer norm: mean divided by d + 1", "mean = self.over(self.row_sum(g), d)",
     "mean = self.over(self.row_sum(g), d + 1)"),
    ("attention qkv", "attention: scale forgotten in forward",
     "p = self.softmax(self.div(self.matmul(q, k, transpose_b=True), root))",
     "p = self.softmax(self.matmul(q, k, transpose_b=True))"),
    ("attention qkv", "attention: scale forgotten in backward",
     "e = self.div(ds, self.root(self.shape(qkv)[1] // (3 * heads)))", "e = ds"),
    ("attention qkv", "attention: scale is the width's root, not the head's",
     "e = self.div(ds, self.root(self.shape(qkv)[1] // (3 * heads)))",
     "e = self.div(ds, self.root(self.shape(qkv)[1] // 3))"),
    ("attention qkv", "attention: dk without the transpose", "self.matmul(e, q, transpose_a=True)",
     "self.matmul(e, q)"),
    ("attention qkv", "attention: dv without the transpose", "self.matmul(p, do, transpose_a=True)",
     "self.matmul(p, do)"),
    ("attention qkv", "attention: the row's own term dropped",
     "self.mul(p, self.sub(dp, self.column(self.row_dot(p, dp))))", "self.mul(p, dp)"),
    ("attention qkv", "attention: softmax adjoint without P",
     "self.mul(p, self.sub(dp, self.column(self.row_dot(p, dp))))",
     "self.sub(dp, self.column(self.row_dot(p, dp)))"),
    ("attention qkv", "attention: dq and dk exchanged", "self.merge_heads([dq, dk, ", "self.merge_heads([dk, dq, "),
    ("attention qkv", "attention: q and k exchanged in backward",
     "dq, dk = self.matmul(e, k), self.matmul(e, q, transpose_a=True)",
     "dq, dk = self.matmul(e, q), self.matmul(e, k, transpose_a=True)"),
    ("attention qkv", "softmax: divided by twice the sum",
     "self.normal(self.div(e, self.column(self.row_sum(e))))",
     "self.normal(self.div(e, self.column(self.row_sum(self.add(e, e)))))"),
    ("GELU tanh", "GELU: 3 c1 without the 3", 'self.mul(self.mul(c("three"), c("c1")), self.mul(x, x))',
     'self.mul(c("c1"), self.mul(x, x))'),
    ("GELU tanh", "GELU: second term dropped", 'self.add(self.mul(c("half"), self.add(c("one"), t)), term)',
     'self.mul(c("half"), self.add(c("one"), t))'),
    ("GELU tanh", "GELU: 1 + T^2 for 1 - T^2", 's = self.sub(c("one"), self.mul(t, t))',
     's = self.add(c("one"), self.mul(t, t))'),
    ("GELU tanh", "GELU: x^2 for x^3 in forward", "self.mul(x, self.mul(x, x))", "self.mul(x, x)"),
    ("GELU erf", "GELU erf: x P' dropped", "self.add(t, self.mul(x, self.normal_pdf(x)))", "t"),
    ("GELU erf", "GELU erf: P' without x", "self.add(t, self.mul(x, self.normal_pdf(x)))",
     "self.add(t, self.normal_pdf(x))"),
    ("softmax cross-entropy", "cross-entropy: the label's 1 not subtracted",
     "self.minus_one_at(self.softmax(logits), label)", "self.softmax(logits)"),
    ("softmax cross-entropy", "cross-entropy: another label",
     "self.minus_one_at(self.softmax(logits), label)",
     "self.minus_one_at(self.softmax(logits), (label + 1) % self.shape(logits)[1])"),
    (HEAD_WEIGHT, "classifier: on the last row", "return self.rows(x, 0, 1)", "return self.rows(x, -1, None)"),
    ("classifier input", "classifier: gradient into the last row", "return self.below_zeros(drow, rows)",
     "return self.concatenate([self.rows(self.below_zeros(drow, rows), 1, None), drow])"),
    (HEAD_BIAS, "dense: bias gradient zero", DENSE_BIAS,
     'self.assign(f"{site}.bias", self.column_sum(self.sub(dy, dy)))\n        return self.matmul'),
]

EMBEDDINGS = [
    (PATCH_WEIGHT, "patch: tokens off by one", "dtokens = self.rows(dx, 1, None)", "dtokens = self.rows(dx, 0, -1)"),
    (PATCH_WEIGHT, "patch: CLS in the kernel's gradient", "weight = self.matmul(dtokens, saved, transpose_a=True)",
     "weight = self.add(self.matmul(dtokens, saved, transpose_a=True),"
     " self.matmul(self.rows(dx, 0, 1), self.rows(saved, 0, 1), transpose_a=True))"),
    (PATCH_BIAS, "patch: CLS in the bias's gradient", 'self.assign("patch.bias", self.column_sum(dtokens))',
     'self.assign("patch.bias", self.column_sum(dx))'),
    (PATCH_BIAS, "patch: last patch not in the bias's gradient", 'self.assign("patch.bias", self.column_sum(dtokens))',
     'self.assign("patch.bias", self.column_sum(self.rows(dx, 1, -1)))'),
    (PATCH_BIAS, "patch: bias gradient three times", 'self.assign("patch.bias", self.column_sum(dtokens))',
     'self.assign("patch.bias", self.mul(self.constant("three"), self.column_sum(dtokens)))'),
    (CLS, "CLS: row 1's gradient", "self.reshape(self.rows(dx, 0, 1), (-1,))",
     "self.reshape(self.rows(dx, 1, 2), (-1,))"),
    (CLS, "CLS: summed over the rows", "self.reshape(self.rows(dx, 0, 1), (-1,))", "self.column_sum(dx)"),
    (POS, "position: row 0 left out", 'self.assign("pos", dx)',
     'self.assign("pos", self.concatenate([self.sub(self.rows(dx, 0, 1), self.rows(dx, 0, 1)), dtokens]))'),
    (POS, "position: rows moved on by one", 'self.assign("pos", dx)',
     'self.assign("pos", self.concatenate([dtokens, self.rows(dx, 0, 1)]))'),
    (POS, "position: not added to row 0", 'self.add(self.concatenate([cls, tokens]), self.parameter("pos"))',
     'self.concatenate([cls, self.add(tokens, self.rows(self.parameter("pos"), 1, None))])'),
    ("patch embedding image", "patch: image gradient with the CLS row",
     "self.unpatch(self.matmul(self.rows(dx, 1, None), kernel), image_shape)",
     "self.unpatch(self.matmul(self.rows(dx, 0, -1), kernel), image_shape)"),
]


def tap(p, kh, kw, patch, across):
    return p // across * patch + kh, p % across * patch + kw


# What the kernel's gradient reads for tap (kh, kw) of patch p, where forward reads what it should: (y, x).
READS = [
    (PATCH_WEIGHT, "patch: grid of ceil(W / P) columns",
     lambda p, kh, kw, patch, height, width: tap(p, kh, kw, patch, -(-width // patch))),
    (PATCH_WEIGHT, "patch: grid transposed",
     lambda p, kh, kw, patch, height, width: tap(p, kh, kw, patch, max(1, height // patch))[::-1]),
    (PATCH_WEIGHT, "patch: kh and kw exchanged",
     lambda p, kh, kw, patch, height, width: tap(p, kw, kh, patch, width // patch)),
    (PATCH_WEIGHT, "patch: the border repeated instead of 0",
     lambda p, kh, kw, patch, height, width: np.minimum(tap(p, kh, kw, patch, width // patch),
                                                        (height - 1, width - 1))),
    (PATCH_WEIGHT, "patch: stride P - 1",
     lambda p, kh, kw, patch, height, width: (p // (width // patch) * (patch - 1) + kh,
                                              p % (width // patch) * (patch - 1) + kw)),
]
# Shapes on which a wrong read is no mistake: why the lists hold others.
SURVIVES_ON = {"patch: grid of ceil(W / P) columns": [(1, 4, 4, 2, 4, 2), (2, 4, 6, 2, 6, 2), (1, 3, 4, 2, 4, 1)],
               "patch: the border repeated instead of 0": [(1, 4, 4, 2, 4, 2), (2, 4, 6, 2, 6, 2), (1, 4, 5, 2, 4, 2)]}

CHAINS = [
    ("block: no residual around attention", 'h = t.linear(f"{site}.proj", a, residual=x)',
     'h = t.linear(f"{site}.proj", a)'),
    ("block: no residual around the MLP", 'y = t.linear(f"{site}.fc2", g, residual=h)',
     'y = t.linear(f"{site}.fc2", g)'),
    ("block: MLP's residual from the block's input", 'y = t.linear(f"{site}.fc2", g, residual=h)',
     'y = t.linear(f"{site}.fc2", g, residual=x)'),
    ("block: MLP's residual not in backward", 'norm2, residual=dy)', "norm2)"),
    ("block: attention's residual not in backward", "norm1, residual=dh)", "norm1)"),
    ("block: attention's residual from dy", "norm1, residual=dh)", "norm1, residual=dy)"),
    ("block: qkv's gradient from the block's output", 'dn1 = t.linear_backward(f"{site}.qkv", dqkv, n1)',
     'dn1 = t.linear_backward(f"{site}.qkv", dqkv, n2)'),
    ("block: layer norms' saved values exchanged", "dn2, norm2, residual=dy)", "dn2, norm1, residual=dy)"),
    ("block: proj's gradient from dy", 'da = t.linear_backward(f"{site}.proj", dh, a)',
     'da = t.linear_backward(f"{site}.proj", dy, a)'),
    ("block: second layer norm of the block's input", 'n2, norm2 = t.layer_norm(f"{site}.ln2", h)',
     'n2, norm2 = t.layer_norm(f"{site}.ln2", x)'),
    ("model: backward through the blocks in forward order",
     "for i in reversed(range(t.config.num_hidden_layers)):", "for i in range(t.config.num_hidden_layers):"),
    ("model: one block's saved values for the other", "dx, blocks[i])", "dx, blocks[-1 - i])"),
    ("model: final layer norm left out", 'n, norm = t.layer_norm("norm", t.cls_row(x))',
     'n, norm = t.cls_row(x), t.layer_norm("norm", t.cls_row(x))[1]'),
]


def wrong(operation, name, change):
    """A kernel method whose gradient of a parameter is changed after the kernel has run."""
    kernel = getattr(Kernels, operation)

    def method(self, *arguments, **options):
        made = kernel(self, *arguments, **options)
        for found in self.gradients:
            if found.endswith(name):
                change(self.gradients[found])
        return made

    return {operation: method}


def one_ulp(array):
    """The last nonzero element, to the next larger number."""
    flat = array.reshape(-1)
    at = np.flatnonzero(flat)
    if at.size:
        flat[at[-1]] = np.nextafter(flat[at[-1]], np.float32(np.inf))


def moved(array):
    flat = array.reshape(-1)
    flat[:] = flat[::-1].copy()


def lost(array):
    array.reshape(-1)[-1] = 0


KERNELS = [
    (WEIGHT, "kernel: one weight gradient off by an ulp", wrong("linear_backward", "s.weight", one_ulp)),
    (WEIGHT, "kernel: last weight gradient lost", wrong("linear_backward", "s.weight", lost)),
    (BIAS, "kernel: one bias gradient off by an ulp", wrong("linear_backward", "s.bias", one_ulp)),
    (HEAD_WEIGHT, "kernel: classifier gradient off by an ulp", wrong("linear_backward", "head.weight", one_ulp)),
    (GAMMA, "kernel: one gamma gradient off by an ulp", wrong("layer_norm_backward", "s.weight", one_ulp)),
    (BETA, "kernel: beta gradients in the wrong order", wrong("layer_norm_backward", "s.bias", moved)),
    (PATCH_WEIGHT, "kernel: one kernel gradient off by an ulp", wrong("patch_embed_backward", "patch.weight", one_ulp)),
    (PATCH_BIAS, "kernel: patch bias gradients in the wrong order",
     wrong("patch_embed_backward", "patch.bias", moved)),
    (CLS, "kernel: last CLS gradient lost", wrong("patch_embed_backward", "cls", lost)),
    (POS, "kernel: position gradients in the wrong order", wrong("patch_embed_backward", "pos", moved)),
]
