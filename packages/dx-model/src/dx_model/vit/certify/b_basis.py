"""Column B: the compiled float32 kernels on all pairs of basis vectors, against their own forward.

The output is affine in a parameter, so the forward kernel alone gives the Jacobian exactly: J e_k = f(theta + e_k) -
f(theta), in small whole numbers. The gradient is linear in the cotangent and in the parameter's partner (a weight's
is the operation's input; a bias has none), so the pairs of basis vectors decide the whole map over the reals at that
shape.
"""
import numpy as np

from ...below import ieee_mode
from ..float32 import Kernels
from ...workspace import Workspace
from .families import FAMILIES, case
from .report import cells

SHAPES = {
    "row_dense": [(1, 1, 1), (3, 4, 5), (17, 3, 3), (33, 3, 2)],
    "patch_embed": [(1, 4, 4, 2, 4, 2), (1, 4, 6, 2, 6, 3), (1, 3, 4, 2, 4, 2), (1, 4, 5, 2, 4, 2), (1, 3, 3, 2, 2, 1),
                    (1, 4, 4, 2, 3, 2), (1, 4, 4, 2, 6, 2), (2, 2, 4, 2, 2, 2)],
    "layer_norm": [(1, 2), (3, 5), (17, 3), (33, 2)],
    "classifier": [(1, 1, 1), (3, 4, 5), (4, 17, 3)],
}
FULL = {"row_dense": [(49, 2, 2), (17, 16, 3)], "patch_embed": [(1, 8, 8, 4, 4, 3), (2, 5, 7, 3, 4, 2)],
        "layer_norm": [(49, 3)], "classifier": [(2, 33, 4)]}
# input → the one the gradient is linear in beside the cotangent
PARTNER = {"row_dense": {"s.weight": "x", "s.bias": None, "x": "s.weight"},
           "classifier": {"head.weight": "x", "head.bias": None, "x": "head.weight"},
           "patch_embed": {"patch.weight": "image", "patch.bias": None, "cls": None, "pos": None,
                           "image": "patch.weight"},
           "layer_norm": {"s.weight": "x", "s.bias": None}}


def run(full=False, table=Kernels):
    """family → Cell. `table`: what runs the operations (float32.Kernels)."""
    found = cells(FAMILIES)
    for operation, shapes in SHAPES.items():
        for shape in shapes + (FULL[operation] if full else []):
            c = case(operation, *shape)
            for family, (of, name) in FAMILIES.items():
                if of == operation and name in PARTNER[operation]:
                    check(c, name, table, found[family])
    return found


class Runner:
    """One operation on kernels, its inputs set one basis vector at a time."""

    def __init__(self, c, table):
        self.case = c
        self.values = {name: np.zeros(shape, np.float32) for name, shape in c.inputs.items()}
        gradients = {name: np.zeros(c.inputs[name], np.float32) for name in c.parameters(self.values)}
        self.table = table(c.config, c.parameters(self.values), Workspace(), gradients)

    def forward(self):
        self.table.repack()
        return self.case.forward(self.table, self.values).reshape(-1).copy()

    def gradient(self, name, dy):
        self.table.repack()
        return self.case.backward(self.table, self.values, dy)[name].reshape(-1).copy()


@ieee_mode()
def check(c, name, table, cell):
    """All pairs (basis vector of the partner, basis vector of the cotangent) for the gradient of `name`."""
    run = Runner(c, table)
    partner = PARTNER[c.operation][name]
    theta, dy = run.values[name].reshape(-1), np.zeros(c.output, np.float32)
    if c.operation == "layer_norm":
        points = [None]  # its partner is what the kernel makes of x, any x: see xhat_pairs
        run.values["x"][...] = np.arange(run.values["x"].size).reshape(c.inputs["x"]) * 7 % 5 - 2
        if name == "s.weight":
            xhat_pairs(c, run, cell)
    else:
        points = [None] if partner is None else range(run.values[partner].size)
    for point in points:
        if point is not None:
            run.values[partner].reshape(-1)[point] = 1
        base, jacobian = run.forward(), np.empty((theta.size, dy.size), np.float32)
        for k in range(theta.size):
            theta[k] = 1
            jacobian[k] = run.forward() - base
            theta[k] = 0
        for q in range(dy.size):
            dy.reshape(-1)[q] = 1
            same = np.array_equal(run.gradient(name, dy), jacobian[:, q])
            cell.expect(same, 1, f"{c.operation} {c.shape}: {name} at basis pair ({point}, {q})")
            dy.reshape(-1)[q] = 0
        if point is not None:
            run.values[partner].reshape(-1)[point] = 0
    cell.notes["shapes"] = cell.notes.get("shapes", 0) + 1


def xhat_pairs(c, run, cell):
    """gamma's gradient on all pairs of basis vectors of xhat, given as saved, and of the cotangent."""
    rows, d = c.output
    xhat, inv, dy = np.zeros((rows, d), np.float32), np.ones(rows, np.float32), np.zeros((rows, d), np.float32)
    for p in range(rows * d):
        xhat.reshape(-1)[p] = 1
        for q in range(rows * d):
            dy.reshape(-1)[q] = 1
            run.table.layer_norm_backward("s", dy, (xhat, inv))
            expected = [float(p == q and k == q % d) for k in range(d)]
            same = run.table.gradients["s.weight"].tolist() == expected
            cell.expect(same, 1, f"layer_norm {c.shape}: gamma at basis pair ({p}, {q}) of xhat and dy")
            dy.reshape(-1)[q] = 0
        xhat.reshape(-1)[p] = 0
