"""docextract against PyTorch eager and onnxruntime with the same weights: default configuration, pages of 64…512 words.

figures  forward_vs_torch_*, forward_vs_onnxruntime_*: all heads, from an encoded page; dx computes the pair features
         inside its forward, the peers are given them. forward_backward_vs_torch_*: five losses, every gradient.
         memory_vs_torch: peak RSS above that after loading at 512 words, the larger ratio of forward and forward +
         backward. features_share: encoding a page / forward, the largest over the sizes. python_share_64: the same
         calls on a model of tiny sizes / forward at 64 words. pages_per_second_1t: page to fields, over the sizes.
rows     part, words, threads, dx_ms; their time / ours: vs_torch (the faster of two forms of attention),
         vs_torch_compiled, vs_onnxruntime
"""
import dx_model
from dx_model.docextract import DocExtract, DocExtractConfig, extract_page

from . import _model_memory, geomean, interleave, machine_notes, peer, progress, threads
from . import _model_sides as sides

PEERS = ("torch", "onnxruntime", "onnx")
SIZES = (64, 128, 256, 512)
SLICE = 0.02  # seconds: long enough for a side to have its weights back in the cache


def least(t, names):
    """The smallest ratio, i.e. against the peer's best form; None without the peer."""
    ratios = [t.ratio(name) for name in names if name in t.rounds]
    return min(ratios) if ratios else None


def forward_row(dx, torches, session, words, n_threads, quick):
    window = sides.encoded(words)
    calls = {"dx": lambda: dx.forward(window)}
    given = torches["torch"].page(window) if torches else None
    for name, side in torches.items():
        calls[name] = lambda side=side: side.forward(given)
    if session:
        arrays = session.page(given)
        calls["onnxruntime"] = lambda: session.forward(arrays)
    t = interleave(calls, quick, seconds=4.0, slice_seconds=SLICE)
    return {"part": "forward", "words": words, "threads": n_threads, "dx_ms": 1e3 * t.seconds["dx"],
            "vs_torch": least(t, ("torch", "torch_sdpa")), "vs_torch_compiled": least(t, ("torch_compiled",)),
            "vs_onnxruntime": least(t, ("onnxruntime",))}


def step_row(dx, torches, words, n_threads, quick):
    window, wanted = sides.encoded(words), sides.targets(words)
    calls = {"dx": lambda: dx.step(window, wanted)}
    for name in ("torch", "torch_sdpa"):
        if name in torches:
            side = torches[name]
            page, given = side.page(window), side.targets(wanted)
            calls[name] = lambda side=side, page=page, given=given: side.step(page, given)
    t = interleave(calls, quick, seconds=4.0, slice_seconds=SLICE)
    return {"part": "forward_backward", "words": words, "threads": n_threads, "dx_ms": 1e3 * t.seconds["dx"],
            "vs_torch": least(t, ("torch", "torch_sdpa"))}


def features_row(dx, words, quick):
    """Encoding a page against the forward pass over it."""
    page, encoding = sides.page(words), sides.CONFIG.encoding()
    window = sides.encoded(words)
    t = interleave({"dx": lambda: dx.forward(window), "encode": lambda: dx_model.encode_page(page, encoding)}, quick,
                   slice_seconds=SLICE)
    return {"part": "features", "words": words, "threads": 1, "dx_ms": 1e3 * t.seconds["encode"],
            "share_of_forward": t.ratio("encode")}


def python_share(dx, quick):
    """Python's part of a forward at 64 words: the same statements where the kernels have next to nothing to do."""
    config = DocExtractConfig(fields=("a",), roles=("a",), doc_types=("a",), hidden_size=4, intermediate_size=4,
                              num_hidden_layers=sides.CONFIG.num_hidden_layers, max_chars=2, char_dim=2,
                              char_channels=4, position_buckets=4, pair_hidden=4, relation_size=2)
    tiny, one, window = DocExtract.initial(config), sides.encoded(1, config), sides.encoded(64)
    t = interleave({"dx": lambda: dx.forward(window),
                    "tiny": lambda: tiny.forward(one, ("tag", "role", "doc", "pointer"))}, quick, slice_seconds=SLICE)
    return t.ratio("tiny")


def pages_per_second(dx, quick):
    pages = [sides.page(words) for words in SIZES]
    t = interleave({"dx": lambda: [extract_page(dx.model, page) for page in pages]}, quick, slice_seconds=SLICE)
    return len(pages) / t.seconds["dx"]


def run(quick):
    parameters = sides.weights()
    dx, rows, figures, notes = sides.Dx(parameters), [], {}, []
    torch, onnx = peer("torch"), peer("onnxruntime")
    torches = {}
    if torch:
        torches = {"torch": sides.Torch(parameters, fast=False), "torch_sdpa": sides.Torch(parameters, fast=True)}
        if not quick:
            torches["torch_compiled"] = sides.Torch(parameters, fast=True).compiled()
    for n_threads in (1, 2):
        with threads(n_threads):
            session = None
            if torches and onnx:
                try:
                    session = sides.Onnx(torches["torch_sdpa"], torches["torch"].page(sides.encoded(64)), n_threads)
                except Exception as error:  # the exporter belongs to the peer: without it there is no figure
                    notes.append(f"no onnxruntime figures: {type(error).__name__}: {error}")
            for words in SIZES[:2] if quick else SIZES:
                rows.append(forward_row(dx, torches, session, words, n_threads, quick))
                rows.append(step_row(dx, torches, words, n_threads, quick))
                for row in rows[-2:]:
                    progress(" ".join(f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in row.items()))
        own = [row for row in rows if row["threads"] == n_threads]
        for name in ("torch", "onnxruntime"):
            figures[f"forward_vs_{name}_{n_threads}t"] = geomean([row[f"vs_{name}"] for row in own
                                                                  if row["part"] == "forward"])
        figures[f"forward_backward_vs_torch_{n_threads}t"] = geomean([row["vs_torch"] for row in own
                                                                      if row["part"] == "forward_backward"])
    with threads(1):
        features = [features_row(dx, words, quick) for words in SIZES]
        rows += features
        figures["features_share"] = max(row["share_of_forward"] for row in features)
        figures["python_share_64"] = python_share(dx, quick)
        figures["pages_per_second_1t"] = pages_per_second(dx, quick)
    figures["memory_vs_torch"], memory_rows = _model_memory.ratio(quick) if torch else (None, [])
    notes += [] if torch else ["no torch: its figures are null"]
    return {"figures": figures, "rows": rows + memory_rows, "notes": machine_notes() + notes + [
        f"{parameters.flat.size:,} parameters; peers are given the pair features that dx computes in its forward"]}
