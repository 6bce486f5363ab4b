"""Trains a small classifier with dx_kernels on seeded points: the same bytes on every kernel path and degree."""
import hashlib
import sys
import time

import dx_kernels as k
import numpy as np

ROWS, WIDTH, HIDDEN, CLASSES, STEPS = 256, 16, 64, 4, 60


def numbers(shape, seed):
    """Numbers in [-1, 1) from whole-number arithmetic alone: SplitMix64's output function of a counter."""
    z = np.arange(1, int(np.prod(shape)) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return ((z >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-23) - np.float32(1)).reshape(shape)


def empty(*shape):
    return np.empty(shape, np.float32)


def train():
    """Layer norm, linear, GELU, linear, cross-entropy; adjoints; AdamW. First and last loss, share right, digest."""
    x = numbers((ROWS, WIDTH), 1)
    target = ((x[:, 0] > 0) * 2 + (x[:, 1] > 0)).astype(np.int32)  # the quadrant of the first two coordinates
    quarter = np.float32(0.25)
    w = {"norm": np.ones(WIDTH, np.float32), "shift": np.zeros(WIDTH, np.float32),
         "in": numbers((HIDDEN, WIDTH), 2) * quarter, "in_bias": np.zeros(HIDDEN, np.float32),
         "out": numbers((CLASSES, HIDDEN), 3) * quarter, "out_bias": np.zeros(CLASSES, np.float32)}
    g = {name: np.empty_like(a) for name, a in w.items()}
    moments = {name: (np.zeros(a.size, np.float32), np.zeros(a.size, np.float32)) for name, a in w.items()}
    n, xhat, inv = empty(ROWS, WIDTH), empty(ROWS, WIDTH), empty(ROWS)
    h, pre, saved, z = empty(ROWS, HIDDEN), empty(ROWS, HIDDEN), empty(ROWS, HIDDEN), empty(ROWS, CLASSES)
    dz, dh, dpre, dn, dx = np.empty_like(z), np.empty_like(h), np.empty_like(h), np.empty_like(n), np.empty_like(x)
    losses = []
    for step in range(1, STEPS + 1):
        k.layer_norm_forward(x, w["norm"], w["shift"], n, xhat, inv)
        k.linear_forward(n, w["in"], w["in_bias"], h, activation="gelu_tanh", pre=pre, saved=saved)
        k.linear_forward(h, w["out"], w["out_bias"], z)
        total, count = k.cross_entropy_backward(z, target, None, None, dz)
        losses.append(total / count)
        k.linear_backward(dz, h, w["out"], dh, g["out"], g["out_bias"])
        k.gelu_tanh_backward(dh.reshape(-1), pre.reshape(-1), saved.reshape(-1), dpre.reshape(-1))
        k.linear_backward(dpre, n, w["in"], dn, g["in"], g["in_bias"])
        k.layer_norm_backward(dn, xhat, inv, w["norm"], dx, g["norm"], g["shift"])
        for name, a in w.items():
            k.adamw_step(a.reshape(-1), g[name].reshape(-1), *moments[name], step=step, rate=0.01, decay=a.ndim > 1)
    right = int((z.argmax(1) == target).sum()) / ROWS
    return losses[0], losses[-1], right, hashlib.sha256(b"".join(a.tobytes() for a in w.values())).hexdigest()


def main():
    seen = set()
    for path in k.available_paths():
        for degree in (1, 2, 3):
            with k.kernel_path(path), k.degree(degree):
                start = time.perf_counter()
                first, last, right, digest = train()
                ms = 1e3 * (time.perf_counter() - start)
            seen.add((first, last, digest))
            print(f"{path:9} degree {degree}  loss {first:.4f} -> {last:.4f}, {right:.0%} of its points right  "
                  f"weights {digest[:16]}  {ms:.0f} ms", flush=True)
    print("the same bytes on every path and degree" if len(seen) == 1 else "DIFFERENT bytes")
    return 0 if len(seen) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
