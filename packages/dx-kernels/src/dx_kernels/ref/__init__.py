"""Readable references: the kernels' arithmetic as plain loops over numpy binary32 scalars and rows, in the kernels'
order, bit-equal to them. Slow; for reading and for tests. Nothing here calls numpy's sums, products or functions."""
from . import activations as activations
from . import cross_entropy as cross_entropy
