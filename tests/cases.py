"""Reported defects of other software that dx must not have, and their tests: numerics, kernels and packaging; model,
files, training, labels and commands; readouts.

A test names its case: "Case num-13" in its docstring, or test_num_13_… . A case without a test here has its reason.
"""
TESTED = (
    "ker-01", "ker-08", "ker-10", "ker-11", "ker-13", "num-01", "num-02", "num-04", "num-05", "num-07", "num-08",
    "num-10", "num-11", "num-13", "num-14", "num-16", "num-17", "num-19", "num-20", "num-22", "num-23", "num-25",
    "num-26", "num-28", "num-29", "pkg-01", "pkg-02", "pkg-04", "pkg-05", "pkg-07", "pkg-08", "pkg-10",
    "cli-01", "cli-02", "cli-04", "cli-05", "cli-07", "cli-08", "io-01", "io-02", "io-04", "io-05", "io-07",
    "io-08", "io-10", "io-11", "io-13", "io-14", "io-16", "io-17", "io-19", "io-20", "io-22", "io-23", "io-25",
    "io-26", "io-28", "lab-01", "lab-02", "lab-04", "lab-05", "lab-07", "lab-08", "lab-10", "lab-11", "lab-13",
    "lab-14", "lab-16", "lab-17", "lab-19", "lab-20", "lab-22", "lab-23", "lab-25", "mod-01", "mod-02", "mod-04",
    "mod-05", "mod-07", "mod-08", "mod-10", "mod-11", "mod-13", "mod-14", "mod-16", "mod-17", "mod-19", "mod-20",
    "mod-22", "tra-01", "tra-02", "tra-04", "tra-05", "tra-07", "tra-08", "tra-10", "tra-11", "tra-13",
    "rea-01", "rea-02", "rea-04", "rea-05", "rea-07", "rea-08", "rea-10", "rea-11", "rea-13", "rea-20", "rea-22",
    "rea-23", "rea-26", "rea-14", "rea-16", "rea-17", "rea-19", "rea-25", "rea-28", "rea-29", "rea-31")

_IMAGES = "arrives with the image encoder's position tables (resizing of a rectangular grid)"
REASONS = {
    "ker-02": _IMAGES, "ker-04": _IMAGES, "ker-05": _IMAGES, "ker-07": _IMAGES,
}
