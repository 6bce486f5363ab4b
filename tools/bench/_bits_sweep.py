"""One process of bench bits: python _bits_sweep.py MODE quick|full FOLDER… sets the floating-point mode before dx is
there, runs a fixed sweep over all public functions (and a docextract forward and backward), and prints its digests.

MODE      ieee, up, down, zero (rounding) or flush (subnormal operands and results to zero)
FOLDER    test folders of the compiled packages, which hold the registries, and docextract's
Output    one JSON object: digest (of all), digests (by function), calls, path, degree, numpy, python
"""
import ctypes
import ctypes.util
import hashlib
import json
import platform
import sys

X86 = platform.machine() in ("x86_64", "AMD64")
ROUNDING = {"up": 0x800, "down": 0x400, "zero": 0xC00} if X86 else {"up": 1 << 22, "down": 2 << 22, "zero": 3 << 22}


def set_mode(mode):
    """Puts this thread in a foreign floating-point mode through the C library, without a compiler."""
    if mode == "ieee":
        return
    c = ctypes.CDLL(ctypes.util.find_library("m"))
    if mode in ROUNDING:
        if c.fesetround(ROUNDING[mode]):
            raise OSError(f"fesetround({mode}) failed")
        return
    environment = (ctypes.c_uint32 * 16)()
    c.fegetenv(environment)
    environment[7 if X86 else 0] |= 0x8040 if X86 else 1 << 24  # MXCSR: FTZ and DAZ; FPCR: FZ
    c.fesetenv(environment)


def mode_is_set(mode):
    """Whether plain arithmetic shows the mode now."""
    one, tiny, small = ctypes.c_double(1.0).value, float.fromhex("0x1p-60"), float.fromhex("0x1p-1074")
    if mode == "flush":
        return small * one == 0 and small * 2 == 0
    return {"ieee": one + tiny == 1 and one - tiny == 1, "up": one + tiny > 1, "down": one - tiny < 1 and
            one + tiny == 1, "zero": one - tiny < 1 and one + tiny == 1}[mode] and small * one != 0


def docextract(feed):
    """(digest, number of passes) of a small docextract model, forward and backward; None without dx_model."""
    import importlib.util
    if importlib.util.find_spec("dx_model") is None:
        return None
    import docextract_pass

    h, count = hashlib.sha256(), 0
    for result in docextract_pass.passes():
        for name in sorted(result):
            h.update(name.encode())
            feed(h, result[name])
        count += 1
    return h.hexdigest(), count


def main(mode, size, *folders):
    sys.path[:0] = folders
    set_mode(mode)
    if not mode_is_set(mode):
        raise SystemExit(f"the floating-point mode {mode} could not be set")
    import dx_kernels
    import numpy
    import numerics_calls
    import page_calls
    from dx_numerics.testing import calls

    options = {"sizes": (0, 1, 17), "kinds": ("plain", "wild")} if size == "quick" else {}
    digests, number = {}, 0
    for package, registry in (("dx_numerics", numerics_calls.REGISTRY), ("dx_kernels", page_calls.REGISTRY)):
        for name in sorted(registry):
            digests[f"{package}.{name}"], count = calls.total({name: registry[name]}, **options)
            number += count
    model = docextract(calls.feed)
    if model:
        digests["dx_model.docextract"] = model[0]
        number += model[1]
    total = hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()
    if not mode_is_set(mode):
        raise SystemExit(f"dx did not give the floating-point mode {mode} back")
    print(json.dumps({"digest": total, "digests": digests, "calls": number, "path": dx_kernels.get_path(),
                      "degree": dx_kernels.get_degree(), "numpy": numpy.__version__,
                      "python": platform.python_version()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
