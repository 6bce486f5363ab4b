"""The readable references, for packages above."""


def references():
    """The package `dx_kernels.ref` with its modules activations and cross_entropy, loaded when asked for: plain loops
    over numpy scalars and rows, bit-equal to the kernels."""
    from . import ref

    return ref
