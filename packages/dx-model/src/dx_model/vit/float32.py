"""The operation table that ships: whole operations as compiled float32 kernels on a workspace's buffers."""
import numpy as np

from ..below import (
    PackedMatrix,
    attention_backward,
    attention_forward,
    cross_entropy_backward,
    gelu_erf_backward,
    gelu_erf_forward,
    gelu_tanh_backward,
    gelu_tanh_forward,
    layer_norm_backward,
    layer_norm_forward,
    linear_backward,
    linear_forward,
    patch_embed_backward,
    patch_embed_forward,
    sgd_step,
)


class Kernels:
    """Operations of `ops.Operations` on float32 arrays.

    parameters: mapping name → float32 array, used in place; call `repack()` after changing them · gradients: the same
    for what `assign` fills, or None · workspace: where outputs live until the next pass on it · saving: keep what
    backward needs; otherwise the blocks share their buffers and `saved` values are None.
    """

    def __init__(self, config, parameters, workspace, gradients=None, packed=None, saving=True):
        self.config, self.parameters, self.gradients = config, parameters, gradients
        self.workspace, self.saving = workspace, saving
        self.packed = {} if packed is None else packed

    def repack(self):
        """Takes notice of changed parameters."""
        for matrix in self.packed.values():
            matrix.repack()

    def pack(self, name, transpose_b):
        key = (name, transpose_b)
        if key not in self.packed:
            weight = self.parameters[name]
            self.packed[key] = PackedMatrix(weight.reshape(len(weight), -1), transpose_b=transpose_b)
        return self.packed[key]

    def take(self, site, part, shape):
        """A buffer for one output of a site; without saving, sites that end alike share it."""
        return self.workspace.take(f"{site if self.saving else site.rpartition('.')[2]}:{part}", shape)

    def passing(self, site, part, shape):
        """A buffer of backward, which the blocks share."""
        return self.workspace.take(f"{site.rpartition('.')[2]}:{part}", shape)

    def shape(self, x):
        return x.shape

    def patch_embed(self, image):
        p = self.parameters
        x = self.take("patch", "x", p["pos"].shape)
        patch_embed_forward(image, self.pack("patch.weight", True), p["patch.bias"], p["cls"], p["pos"], x,
                            patch=self.config.patch_size)
        return x, image

    def patch_embed_backward(self, dx, saved):
        g = self.gradients
        patch_embed_backward(dx, saved, None, None, g["patch.weight"], g["patch.bias"], g["cls"], g["pos"],
                             patch=self.config.patch_size)

    def patch_image_gradient(self, dx, image_shape):
        dimage = np.empty(image_shape, np.float32)
        patch_embed_backward(dx, None, self.parameters["patch.weight"], dimage, patch=self.config.patch_size)
        return dimage

    def linear(self, site, x, residual=None):
        bias = self.parameters[f"{site}.bias"]
        y = self.take(site, "y", (len(x), len(bias)))
        linear_forward(x, self.pack(f"{site}.weight", True), bias, y, residual=residual)
        return y

    def linear_backward(self, site, dy, x):
        g, dx = self.gradients, self.passing(site, "dx", x.shape)
        linear_backward(dy, x, self.pack(f"{site}.weight", False), dx, g[f"{site}.weight"], g[f"{site}.bias"])
        return dx

    def linear_gelu(self, site, x):
        bias = self.parameters[f"{site}.bias"]
        shape = (len(x), len(bias))
        y, act = self.take(site, "y", shape), self.config.hidden_act
        pre = self.take(site, "pre", shape) if self.saving else None
        t = self.take(site, "t", shape) if self.saving and act == "gelu_tanh" else None
        linear_forward(x, self.pack(f"{site}.weight", True), bias, y, activation=act, pre=pre, saved=t)
        return y, (pre, t)

    def linear_gelu_backward(self, site, dy, x, saved):
        pre, t = saved
        dpre = self.passing(site, "dpre", pre.shape)
        self.gelu_slope(dy, pre, t, dpre)
        return self.linear_backward(site, dpre, x)

    def gelu(self, x):
        y, t = np.empty_like(x), None
        if self.config.hidden_act == "gelu_erf":
            gelu_erf_forward(x.reshape(-1), y.reshape(-1))
        else:
            t = np.empty_like(x)
            gelu_tanh_forward(x.reshape(-1), y.reshape(-1), t.reshape(-1))
        return y, (x, t)

    def gelu_backward(self, dy, saved):
        x, t = saved
        dx = np.empty_like(x)
        self.gelu_slope(dy, x, t, dx)
        return dx

    @staticmethod
    def gelu_slope(dy, x, t, dx):
        if t is None:
            gelu_erf_backward(dy.reshape(-1), x.reshape(-1), dx.reshape(-1))
        else:
            gelu_tanh_backward(dy.reshape(-1), x.reshape(-1), t.reshape(-1), dx.reshape(-1))

    def layer_norm(self, site, x):
        p, y = self.parameters, self.take(site, "y", x.shape)
        xhat = self.take(site, "xhat", x.shape) if self.saving else None
        inv = self.take(site, "inv", (len(x),)) if self.saving else None
        layer_norm_forward(x, p[f"{site}.weight"], p[f"{site}.bias"], y, xhat, inv, eps=self.config.layer_norm_eps)
        return y, (xhat, inv)

    def layer_norm_backward(self, site, dy, saved, residual=None):
        g, dx = self.gradients, self.passing(site, "dx", dy.shape)
        layer_norm_backward(dy, *saved, self.parameters[f"{site}.weight"], dx, g[f"{site}.weight"], g[f"{site}.bias"])
        if residual is not None:
            np.add(dx, residual, out=dx)
        return dx

    def attention(self, site, qkv):
        heads, n = self.config.num_attention_heads, len(qkv)
        out = self.take(site, "out", (n, qkv.shape[1] // 3))
        probs = self.take(site, "probs", (heads, n, n)) if self.saving else None
        attention_forward(qkv, out, heads=heads, probs=probs)
        return out, probs

    def attention_backward(self, site, dout, qkv, saved):
        dqkv = self.passing(site, "dqkv", qkv.shape)
        attention_backward(dout, qkv, saved, dqkv, heads=self.config.num_attention_heads)
        return dqkv

    def cls_row(self, x):
        return x[:1]

    def cls_row_backward(self, drow, rows):
        dx = self.passing("cls_row", "dx", (rows, drow.shape[1]))
        dx[:1], dx[1:] = drow, 0
        return dx

    def mul(self, a, b):
        return a * b

    def cross_entropy_gradient(self, logits, label):
        dlogits = self.passing("cross_entropy", "dlogits", logits.shape)
        cross_entropy_backward(logits, np.array([label], np.int32), None, None, dlogits)
        return dlogits

    def sgd(self, rate):
        for name in self.gradients:
            sgd_step(self.parameters[name].reshape(-1), self.gradients[name].reshape(-1), rate=rate)
        self.repack()
