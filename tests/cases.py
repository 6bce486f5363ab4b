"""Reported defects of other software that dx must not have: those of numerics, kernels and packaging, and their tests.

A test names its case: "Case num-13" in its docstring, or test_num_13_… . A case without a test here has its reason.
"""
TESTED = (
    "ker-01", "ker-08", "ker-10", "ker-13", "num-01", "num-02", "num-04", "num-05", "num-07", "num-08", "num-10",
    "num-11", "num-13", "num-14", "num-16", "num-17", "num-19", "num-20", "num-22", "num-23", "num-25", "num-26",
    "num-28", "num-29", "pkg-01", "pkg-02", "pkg-04", "pkg-08", "pkg-10")

_IMAGES = "arrives with the image encoder's position tables (resizing of a rectangular grid)"
REASONS = {
    "ker-02": _IMAGES, "ker-04": _IMAGES, "ker-05": _IMAGES, "ker-07": _IMAGES,
    "ker-11": "arrives with the manifest of a release, which names the activation; kernels have two names, no alias",
    "pkg-05": "arrives with the release folder, which holds all that is needed to run",
    "pkg-07": "arrives with the manifest of a release (licence and origin of every tensor file); the code's own "
              "licence is tested",
}
