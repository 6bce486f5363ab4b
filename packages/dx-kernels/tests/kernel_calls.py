"""Public kernels of dx-kernels with their calls: layers, losses, optimizer; page_calls.py adds the rest."""
import importlib
import pkgutil

import dx_kernels as k
import numpy as np
from dx_numerics.testing.calls import Built, Out, call, out

LARGE = 100_003
# Counts operations for a benchmark, as many as the path's registers hold. (What dx-numerics defines is tested there.)
NO_KERNELS = {"fma_probe", "references"}
REGISTRY = {}


def kernel(name, large):
    """Registers a maker under the name of its function; large: the size at which its threads have work."""
    def register(maker):
        REGISTRY[name] = maker, large
        return maker
    return register


def public():
    """Names of the public functions and classes of all modules ."""
    modules = [importlib.import_module(f"dx_kernels.{info.name}") for info in pkgutil.iter_modules(k.__path__)
               if not info.name.startswith("_") and info.name not in ("below", "ref")]
    return {name for module in modules for name, value in vars(module).items()
            if callable(value) and getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")}


def register_elementwise(name):
    forward, backward = getattr(k, f"{name}_forward"), getattr(k, f"{name}_backward")

    @kernel(f"{name}_forward", LARGE)
    def make_forward(n, draw):
        return [call(forward, draw.real(n), out(n))]

    @kernel(f"{name}_backward", LARGE)
    def make_backward(n, draw):
        return [call(backward, draw.real(n), draw.real(n), out(n))]


for _name in ("relu", "tanh", "sigmoid", "gelu_erf"):
    register_elementwise(_name)


@kernel("gelu_tanh_forward", LARGE)
def gelu_tanh_forward(n, draw):
    return [call(k.gelu_tanh_forward, draw.real(n), out(n), out(n)), call(k.gelu_tanh_forward, draw.real(n), out(n))]


@kernel("gelu_tanh_backward", LARGE)
def gelu_tanh_backward(n, draw):
    return [call(k.gelu_tanh_backward, draw.real(n), draw.real(n), draw.real(n), out(n))]


def moments(draw, *shape):
    """(weights, gradients, first and second moments) of a tensor."""
    w, g, m, v = (draw.real(*shape) for _ in range(4))
    return Out(w), g, Out(m), Out(np.abs(v))


@kernel("adamw_step", LARGE)
def adamw_step(n, draw):
    return [call(k.adamw_step, *moments(draw, n), step=3, rate=1e-3),
            call(k.adamw_step, *moments(draw, n), step=1000, rate=3e-4, scale=0.1, weight_decay=0.05, beta1=0.8,
                 beta2=0.99, eps=1e-6, decay=False)]


@kernel("adamw_steps", 10_007)
def adamw_steps(n, draw):
    groups = [list(group) for group in zip(moments(draw, n), moments(draw, 3, n), moments(draw, 1, 2, 3))]
    return [call(k.adamw_steps, *groups, step=2, rate=1e-2),
            call(k.adamw_steps, *groups, step=7, rate=1e-3, scales=[1.0, 0.1, 0.3], decays=[True, False, True])]


@kernel("sgd_step", LARGE)
def sgd_step(n, draw):
    return [call(k.sgd_step, Out(draw.real(n)), draw.real(n), rate=0.1, scale=0.3)]


def mask(draw, *shape):
    return draw.whole(0, 4, *shape, dtype=np.uint8)


def probabilities(rows, n, draw):
    """Rows that a softmax made."""
    p = np.empty((rows, n), np.float32)
    k.softmax_forward(draw.real(rows, n, kind="plain"), p, mask=mask(draw, rows, n))
    return p


@kernel("attention_forward", 150)
def attention_forward(n, draw):
    qkv = draw.real(n, 3 * 2 * 5)
    return [call(k.attention_forward, qkv, out(n, 10), heads=2, probs=out(2, n, n), bias=draw.real(2, n, n)),
            call(k.attention_forward, qkv, out(n, 10), heads=1, causal=True),
            call(k.attention_forward, draw.real(n, 3 * 32), out(n, 32), heads=1, mask=mask(draw, 1, n), causal=True),
            call(k.attention_forward, qkv, out(n, 10), heads=2, probs=out(2, n, n), mask=mask(draw, n, n))]


@kernel("attention_backward", 150)
def attention_backward(n, draw):
    probs = probabilities(2 * n, n, draw).reshape(2, n, n)
    return [call(k.attention_backward, draw.real(n, 10), draw.real(n, 30), probs, out(n, 30), out(2, n, n), heads=2),
            call(k.attention_backward, draw.real(n, 34), draw.real(n, 102), probs, out(n, 102), heads=2)]


@kernel("cross_attention_forward", 150)
def cross_attention_forward(n, draw):
    m = n // 2 + 1 if n % 2 else n
    q, keys, values = draw.real(n, 14), draw.real(m, 14), draw.real(m, 14)
    return [call(k.cross_attention_forward, q, keys, values, out(n, 14), heads=2, bias=draw.real(2, n, m),
                 mask=mask(draw, n, m), probs=out(2, n, m)),
            call(k.cross_attention_forward, q, keys[:0], values[:0], out(n, 14), heads=2)]


@kernel("cross_attention_backward", 150)
def cross_attention_backward(n, draw):
    m = n // 2 + 1 if n % 2 else n
    probs = probabilities(2 * n, m, draw).reshape(2, n, m)
    return [call(k.cross_attention_backward, draw.real(n, 14), draw.real(n, 14), draw.real(m, 14), draw.real(m, 14),
                 probs, out(n, 14), out(m, 14), out(m, 14), out(2, n, m), heads=2)]


def characters(n, draw):
    """(table, ids, weight, bias) of a small character encoder; some words are padding only."""
    ids = draw.whole(-2, 20, n, 7)
    return draw.real(20, 5), np.maximum(ids, 0), draw.real(9, 3, 5), draw.real(9)


@kernel("char_conv_forward", 2000)
def char_conv_forward(n, draw):
    table, ids, weight, bias = characters(n, draw)
    return [call(k.char_conv_forward, table, ids, weight, bias, out(n, 9), out(n, 9, dtype=np.int32)),
            call(k.char_conv_forward, table, ids, weight, None, out(n, 9)),
            call(k.char_conv_forward, table, ids[:, :0].copy(), weight, bias, out(n, 9))]


@kernel("char_conv_backward", 2000)
def char_conv_backward(n, draw):
    table, ids, weight, bias = characters(n, draw)
    y, argmax = np.empty((n, 9), np.float32), np.empty((n, 9), np.int32)
    k.char_conv_forward(table, ids, weight, bias, y, argmax)
    return [call(k.char_conv_backward, draw.real(n, 9), y, argmax, table, ids, weight, out(20, 5), out(9, 3, 5),
                 out(9)),
            call(k.char_conv_backward, draw.real(n, 9), y, argmax, table, ids, weight, dweight=out(9, 3, 5))]


@kernel("char_conv_weight_to_container", 200)
def char_conv_weight_to_container(n, draw):
    return [call(k.char_conv_weight_to_container, draw.real(n, 3, 5), out(n, 5, 3))]


@kernel("char_conv_weight_from_container", 200)
def char_conv_weight_from_container(n, draw):
    return [call(k.char_conv_weight_from_container, draw.real(n, 5, 3), out(n, 3, 5))]


def labelled(n, draw):
    """(logits, targets, weight, admit): targets are admitted columns or -1."""
    targets = draw.whole(-1, 7, n)
    admit = np.minimum(mask(draw, n, 7), 1)
    admit[np.arange(n), np.maximum(targets, 0)] = 1
    return draw.real(n, 7), targets, np.abs(draw.real(7, dtype=np.float64, kind="plain")), admit


@kernel("cross_entropy_forward", 5000)
def cross_entropy_forward(n, draw):
    logits, targets, weight, admit = labelled(n, draw)
    return [call(k.cross_entropy_forward, logits, targets, weight, admit, out(n, dtype=np.float64)),
            call(k.cross_entropy_forward, logits, targets)]


@kernel("cross_entropy_backward", 5000)
def cross_entropy_backward(n, draw):
    logits, targets, weight, admit = labelled(n, draw)
    return [call(k.cross_entropy_backward, logits, targets, weight, admit, out(n, 7), scale=1 / 3),
            call(k.cross_entropy_backward, logits, targets, None, None, out(n, 7), denominator=11.0)]


@kernel("embedding_forward", 5000)
def embedding_forward(n, draw):
    table, ids = draw.real(12, 19), draw.whole(0, 12, n)
    return [call(k.embedding_forward, table, ids, out(n, 19)),
            call(k.embedding_forward, table, ids, out(n, 19), padding=3)]


@kernel("embedding_sum_forward", 5000)
def embedding_sum_forward(n, draw):
    tables = [draw.real(rows, 19) for rows in (3, 9, 4, 9)]
    ids = np.stack([draw.whole(0, len(t), n) for t in tables])
    return [call(k.embedding_sum_forward, tables, ids, out(n, 19), draw.real(n, 19)),
            call(k.embedding_sum_forward, tables[:1], ids[:1], out(n, 19))]


@kernel("embedding_backward", 5000)
def embedding_backward(n, draw):
    ids = draw.whole(0, 12, n)
    return [call(k.embedding_backward, draw.real(n, 19), ids, out(12, 19)),
            call(k.embedding_backward, draw.real(n, 19), ids, out(12, 19), padding=0)]


@kernel("layer_norm_forward", 3000)
def layer_norm_forward(n, draw):
    d = max(n, 1)  # rows of nothing are an error
    return [call(k.layer_norm_forward, draw.real(n, 37), draw.real(37), draw.real(37), out(n, 37), out(n, 37), out(n)),
            call(k.layer_norm_forward, draw.real(5, d), None, None, out(5, d), eps=1e-12),
            call(k.layer_norm_forward, draw.real(n, 16), draw.real(16), None, out(n, 16), eps=0.1)]


@kernel("layer_norm_backward", 3000)
def layer_norm_backward(n, draw):
    d = max(n, 1)
    return [call(k.layer_norm_backward, draw.real(n, 37), draw.real(n, 37), draw.real(n), draw.real(37), out(n, 37),
                 out(37), out(37)),
            call(k.layer_norm_backward, draw.real(5, d), draw.real(5, d), draw.real(5), None, out(5, d))]


def pack(weight, **options):
    return Built(k.PackedMatrix, weight, **options)


@kernel("linear_forward", 700)
def linear_forward(n, draw):
    made = []
    for activation, d_in, d_out in ((None, 33, 17), ("relu", 16, 70), ("gelu_tanh", 100, 15), ("gelu_erf", 5, 16)):
        x, weight, bias, residual = draw.real(n, d_in), draw.real(d_out, d_in), draw.real(d_out), draw.real(n, d_out)
        for w in (weight, pack(weight, transpose_b=True)):
            saved = out(n, d_out) if activation == "gelu_tanh" else None
            made.append(call(k.linear_forward, x, w, bias, out(n, d_out), activation=activation, residual=residual,
                             pre=out(n, d_out), saved=saved))
            made.append(call(k.linear_forward, x, w, None, out(n, d_out), activation=activation))
    weight = draw.real(9, n)
    return made + [call(k.linear_forward, draw.real(4, n), w, None, out(4, 9)) for w in (
        weight, pack(weight, transpose_b=True))]


@kernel("linear_backward", 700)
def linear_backward(n, draw):
    weight, made = draw.real(17, 33), []
    for w in (weight, pack(weight)):
        made.append(call(k.linear_backward, draw.real(n, 17), draw.real(n, 33), w, out(n, 33), out(17, 33), out(17)))
    return [*made, call(k.linear_backward, draw.real(4, n), draw.real(4, 5), None, dweight=out(n, 5), dbias=out(n))]


def packed_product(a, b, c, transpose_a, **options):
    k.matmul(a, k.PackedMatrix(b, **options), c, transpose_a=transpose_a)


def products(n, draw, plain, packed):
    """Products with every layout, where n is each of the three sizes in turn."""
    made = []
    for rows, inner, columns in ((n, 33, 17), (7, n, 9), (5, 16, n), (n, n, n)):
        for ta in (False, True):
            a = draw.real(*((inner, rows) if ta else (rows, inner)))
            for tb in (False, True):
                b = draw.real(*((columns, inner) if tb else (inner, columns)))
                if plain:
                    made.append(call(k.matmul, a, b, out(rows, columns), transpose_a=ta, transpose_b=tb))
                if packed:
                    made.append(call(packed_product, a, b, out(rows, columns), ta, transpose_b=tb))
    return made


@kernel("matmul", 200)
def matmul(n, draw):
    planes = call(k.matmul, draw.real(3, n, 8), draw.real(3, 5, 8), out(3, n, 5), transpose_b=True)
    strided = call(k.matmul, draw.real(n, 20)[:, 3:16], draw.real(13, 10)[:, :6], out(n, 6))
    return [*products(n, draw, True, False), planes, strided]


@kernel("PackedMatrix", 200)
def packed_matrix(n, draw):
    return products(n, draw, False, True)


def product_pairs(n, draw):
    made = products(n, draw, True, True)
    return list(zip(made[::2], made[1::2], strict=True))


def linear_pairs(n, draw):
    made = linear_forward(n, draw)[:16]
    return [(made[i], made[i + 2]) for i in range(16) if i % 4 < 2]


def linear_backward_pairs(n, draw):
    plain = call(k.linear_backward, draw.real(n, 17), None, draw.real(17, 33), out(n, 33))
    return [(plain, plain._replace(args=(*plain.args[:2], pack(plain.args[2]), plain.args[3])))]


# name → maker of pairs of calls: with a plain operand, and the same with a PackedMatrix
PACKED_PAIRS = {"matmul": product_pairs, "linear_forward": linear_pairs, "linear_backward": linear_backward_pairs}


@kernel("squared_norm", LARGE)
def squared_norm(n, draw):
    return [call(k.squared_norm, draw.real(n)), call(k.squared_norm, draw.real(n), "name")]


def gradients(n, draw):
    return [Out(draw.real(n)), Out(draw.real(3, n)), Out(draw.real(2, 2, 2))]


@kernel("gradient_norm", LARGE)
def gradient_norm(n, draw):
    return [call(k.gradient_norm, gradients(n, draw)), call(k.gradient_norm, [])]


@kernel("clip_factor", 1000)
def clip_factor(n, draw):
    return [call(k.clip_factor, float(n), 1.0), call(k.clip_factor, n / 8, 0.3)]


@kernel("clip_gradients", LARGE)
def clip_gradients(n, draw):
    return [call(k.clip_gradients, gradients(n, draw), 0.7),
            call(k.clip_gradients, gradients(n, draw), 1e30, list("abc"))]


def pair_layers(draw):
    """(weight1, bias1, weight2, bias2) of a small pair MLP."""
    return draw.real(18, 20), draw.real(18), draw.real(3, 18), draw.real(3)


@kernel("pair_mlp_forward", 20_000)
def pair_mlp_forward(n, draw):
    return [call(k.pair_mlp_forward, draw.real(20, n), *pair_layers(draw), out(3, n), out(18, n)),
            call(k.pair_mlp_forward, draw.real(20, n), *pair_layers(draw), out(3, n))]


@kernel("pair_mlp_backward", 20_000)
def pair_mlp_backward(n, draw):
    w1, b1, w2, b2 = pair_layers(draw)
    features, y, hidden = draw.real(20, n), np.empty((3, n), np.float32), np.empty((18, n), np.float32)
    k.pair_mlp_forward(features, w1, b1, w2, b2, y, hidden)
    return [call(k.pair_mlp_backward, draw.real(3, n), features, h, w1, b1, w2, out(18, 20), out(18), out(3, 18),
                 out(3)) for h in (hidden, None)]


@kernel("pointer_forward", 150)
def pointer_forward(n, draw):
    q, keys = draw.real(n, 10), draw.real(n, 10)
    return [call(k.pointer_forward, q, keys, out(2, n, n), parts=2, bias=draw.real(2, n, n), mask=mask(draw, n, n)),
            call(k.pointer_forward, q, keys, out(1, n, n), causal=True),
            call(k.pointer_forward, q, draw.real(3, 10), out(1, n, 3), mask=mask(draw, 1, 3))]


@kernel("pointer_backward", 150)
def pointer_backward(n, draw):
    return [call(k.pointer_backward, draw.real(2, n, n), draw.real(n, 10), draw.real(n, 10), out(n, 10), out(n, 10),
                 parts=2)]


@kernel("softmax_forward", 2000)
def softmax_forward(n, draw):
    limits = draw.whole(0, 38, n)
    return [call(k.softmax_forward, draw.real(n, 37), out(n, 37), scale=1.7, bias=draw.real(n, 37), limits=limits),
            call(k.softmax_forward, draw.real(5, n), out(5, n), mask=mask(draw, 5, n)),
            call(k.softmax_forward, draw.real(n, 16), out(n, 16), scale=0.1, mask=mask(draw, 1, 16))]


@kernel("softmax_backward", 2000)
def softmax_backward(n, draw):
    return [call(k.softmax_backward, probabilities(n, 37, draw), draw.real(n, 37), out(n, 37), out(n, 37), scale=1.7),
            call(k.softmax_backward, probabilities(5, n, draw), draw.real(5, n), out(5, n))]
