"""Column A: each gradient equals Jacobian transposed times cotangent as a polynomial identity, at a list of shapes.

The output comes from the definition's loops, L = sum of dy y, and its derivatives from differentiating polynomials; the
gradient comes from the wiring. They must be equal coefficient by coefficient, and so must the wiring's output and the
definition's. Parameters that the theorem calls affine occur to the first power only.
"""
import numpy as np

from .families import FAMILIES, case
from .polynomial import Algebra, number_of
from .report import cells
from .symbolic import Symbolic

SHAPES = {
    "row_dense": [(1, 1, 1), (2, 1, 3), (2, 2, 2), (3, 2, 2), (3, 4, 5), (5, 3, 4), (7, 6, 5)],
    "patch_embed": [(1, 2, 2, 1, 4, 1), (1, 4, 4, 2, 4, 2), (2, 2, 4, 2, 2, 2), (1, 3, 4, 2, 4, 1), (1, 4, 5, 2, 4, 2),
                    (1, 4, 4, 2, 3, 1), (1, 4, 4, 2, 6, 1), (1, 3, 3, 2, 2, 2), (1, 2, 6, 2, 3, 2), (1, 5, 4, 2, 6, 2),
                    (2, 4, 6, 2, 6, 2)],
    "layer_norm": [(1, 1), (1, 2), (2, 3), (1, 4), (2, 4), (3, 5), (1, 7)],
    "classifier": [(1, 1, 1), (2, 1, 2), (3, 2, 1), (4, 3, 5)],
    "attention": [(1, 1, 1), (2, 1, 1), (2, 2, 2), (3, 1, 1), (3, 1, 2), (3, 2, 2), (4, 2, 3), (5, 1, 2)],
    "gelu_tanh": [(1,), (2,)],
    "gelu_erf": [(1,), (2,)],
    "cross_entropy": [(2, 0), (3, 2), (4, 1), (5, 0), (6, 3)],
}


def run(full=False, table=Symbolic):
    """family → Cell. `table`: the operation table whose wiring is certified."""
    found = cells(FAMILIES)
    for operation, shapes in SHAPES.items():
        for shape in shapes:
            prove(case(operation, *shape), table, found)
    return found


def prove(c, table, found):
    """One operation at one shape, into the cells of its families."""
    algebra = Algebra()
    v = {name: algebra.variables(shape) for name, shape in c.inputs.items()}
    dy = algebra.variables(c.output)
    if c.operation == "cross_entropy":
        v["label"] = c.shape[1]
    t = table(c.config, c.parameters(v), algebra)
    defined = c.definition(v, t)
    y, gradients = c.run(t, v, dy)
    loss = np.add.reduce((dy * defined).reshape(-1))  # exact: polynomials
    truth = algebra.gradient(loss)
    affine = [number_of(e) for name in c.affine for e in v[name].flat]
    same = y is None or equal(y, defined)
    for family, (operation, name) in FAMILIES.items():
        if operation != c.operation:
            continue
        cell, where = found[family], f"{operation} {c.shape}"
        cell.expect(same, int(dy.size), f"{where}: the wiring's output is not the definition's")
        expected = np.empty(c.inputs[name], object)
        for at, variable in np.ndenumerate(v[name]):
            expected[at] = truth.get(number_of(variable), 0)
        cell.expect(equal(gradients[name], expected), int(expected.size), f"{where}: gradient of {name}")
        if name in c.affine:
            cell.expect(loss.degree_in(affine) <= 1, 1, f"{where}: not affine in {', '.join(c.affine)}")
        cell.notes["shapes"] = len(SHAPES[operation])


def equal(a, b):
    """Elementwise equality of object arrays of polynomials, shapes too."""
    return a.shape == b.shape and all(x == y for x, y in zip(a.flat, b.flat))
