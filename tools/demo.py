"""A layer of a network forward and backward on seeded data: the same digests on every kernel path and degree."""
import hashlib
import sys
import time

import dx_kernels as k
import numpy as np


def numbers(shape, seed):
    """Seeded numbers in (-1, 1) by SplitMix64's mixing of a counter: the same everywhere, on every numpy."""
    with np.errstate(over="ignore"):
        z = np.arange(1, int(np.prod(shape)) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return ((z >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-23) - np.float32(1)).reshape(shape)


def step(rows=300, d=192):
    """Layer norm, forward and backward; every output array."""
    x, dy, w, b = numbers((rows, d), 1), numbers((rows, d), 2), numbers((d,), 3), numbers((d,), 4)
    y, xhat, inv, dx = np.empty_like(x), np.empty_like(x), np.empty(rows, np.float32), np.empty_like(x)
    dw, db = np.empty_like(w), np.empty_like(b)
    k.layer_norm_forward(x, w, b, y, xhat, inv, eps=1e-5)
    k.layer_norm_backward(dy, xhat, inv, w, dx, dw, db)
    return {"y": y, "dx": dx, "dw": dw, "db": db}


def main():
    seen = set()
    for path in k.available_paths():
        for degree in (1, 2, 3):
            with k.kernel_path(path), k.degree(degree):
                start = time.perf_counter()
                digests = {name: hashlib.sha256(a.tobytes()).hexdigest()[:16] for name, a in step().items()}
            seen.add(tuple(digests.items()))
            text = "  ".join(f"{name} {digest}" for name, digest in digests.items())
            print(f"{path:9} degree {degree}  {text}  {1e3 * (time.perf_counter() - start):.1f} ms")
    print("the same bytes on every path and degree" if len(seen) == 1 else "DIFFERENT bytes")
    return 0 if len(seen) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
