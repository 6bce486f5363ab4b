"""Calls of the vision kernels; importing this completes kernel_calls.REGISTRY."""
import dx_kernels as k
from dx_numerics.testing.calls import Built, call, out
from kernel_calls import kernel


def packed(weight):
    return k.PackedMatrix(weight.reshape(len(weight), -1), transpose_b=True)


@kernel("patch_rows", 300)
def patch_rows(n, draw):
    return [call(k.patch_rows, draw.real(2, 13, 17), out(n, 32), patch=4)]


@kernel("patch_embed_forward", 300)
def patch_embed_forward(n, draw):
    image, bias, cls, position = draw.real(2, 50, 37), draw.real(18), draw.real(18), draw.real(n + 1, 18)
    weight = draw.real(18, 2, 4, 4)
    return [call(k.patch_embed_forward, image, w, bias, cls, position, out(n + 1, 18), patch=4)
            for w in (weight, Built(packed, weight))]


@kernel("patch_embed_backward", 300)
def patch_embed_backward(n, draw):
    return [call(k.patch_embed_backward, draw.real(n + 1, 18), draw.real(2, 50, 37), draw.real(18, 2, 4, 4),
                 out(2, 50, 37), out(18, 2, 4, 4), out(18), out(18), out(n + 1, 18), patch=4)]


@kernel("round_bfloat16", 100_003)
def round_bfloat16(n, draw):
    return [call(k.round_bfloat16, draw.real(n), out(n))]


@kernel("linear_weight_gradient_bfloat16", 300)
def linear_weight_gradient_bfloat16(n, draw):
    return [call(k.linear_weight_gradient_bfloat16, draw.real(3, n, 18), draw.real(3, n, 33), out(18, 33))]


@kernel("patch_weight_gradient_bfloat16", 300)
def patch_weight_gradient_bfloat16(n, draw):
    return [call(k.patch_weight_gradient_bfloat16, draw.real(2, n + 1, 18), draw.real(2, 3, 50, 37),
                 out(18, 3, 4, 4))]
