"""Column H: mutants. Each is one wrong line in the wiring, in an operation, in the patches that are read or in a
kernel's output; every one must be rejected by the certificates, or they prove less than they say.

A mutant of a source is made from that source's own text, so that it stays a mutant of what ships; a text that is no
longer found is an error, not a kill.
"""
import inspect
import types

import numpy as np

from .. import ops, wiring
from ..float32 import Kernels
from . import a_symbolic, b_basis, d_exact, e_step, g_bits
from .families import FAMILIES, case
from .field import Field
from .mutant_list import CHAINS, EMBEDDINGS, KERNELS, OPERATIONS, READS, SURVIVES_ON
from .report import Cell, cells
from .sizes import SMALL
from .symbolic import Symbolic

STEP = e_step.WHOLE


def run(full=False):
    """family → Cell: mutants aimed at it, each a comparison that must have failed elsewhere. Notes tell which columns
    killed them."""
    found = cells(FAMILIES | {STEP: None})
    for name, family, killers in tried():
        cell = found[family]
        cell.expect(bool(killers), 1, f"mutant survived: {name}")
        cell.notes.setdefault("killed by", {})[name] = ", ".join(killers)
    survivors(found["patchEmbed_weight_sgd_certified"])
    return found


def tried():
    """(mutant, family, names of the columns that rejected it) for every mutant."""
    for family, name, old, new in OPERATIONS + EMBEDDINGS:
        yield name, family, killers_of(methods_of(mutated(ops, old, new)), family)
    for family, name, read in READS:
        yield name, family, killers_of({"patches": reading(read)}, family, forward=False)
    for name, old, new in CHAINS:
        yield name, STEP, chain_killers(mutated(wiring, old, new))
    for family, name, methods in KERNELS:
        yield name, family, kernel_killers(type("Mutant", (Kernels,), methods), FAMILIES[family])


# --- making mutants --------------------------------------------------------------------------------------------------


def mutated(module, old, new):
    """A module from the source of another with one text replaced; ValueError unless the text stands there once."""
    source = inspect.getsource(module)
    if source.count(old) != 1:
        raise ValueError(f"{module.__name__} has {source.count(old)} times {old!r}: expected once")
    made = types.ModuleType(f"{module.__name__}_mutant")
    exec(compile(source.replace(old, new), made.__name__, "exec"), made.__dict__)
    return made


def methods_of(module):
    """The methods of a mutated ops.Operations that differ from the true ones, to be put into a table."""
    changed = {}
    for name, method in vars(module.Operations).items():
        true = vars(ops.Operations).get(name)
        if inspect.isfunction(method) and code_of(method) != code_of(true):
            changed[name] = method
    if len(changed) != 1:
        raise ValueError(f"a mutant changes {sorted(changed)}: expected one method")
    return changed


def code_of(function):
    code = function.__code__
    constants = [c.co_code if inspect.iscode(c) else c for c in code.co_consts]
    return code.co_code, constants, code.co_names


def reading(read):
    """patches() of a table whose gradient reads pixels by `read`, and whose forward reads the right ones."""

    def patches(self, image):
        patch, count = self.config.patch_size, self.shape(self.parameter("pos"))[0] - 1
        channels, height, width = image.shape
        rows = np.zeros((count, channels * patch * patch), image.dtype)
        for p in range(count):
            for i, (c, kh, kw) in enumerate(np.ndindex(channels, patch, patch)):
                y, x = read(p, kh, kw, patch, height, width)
                if y < height and x < width:
                    rows[p, i] = image[c, y, x]
        return rows

    return patches


# --- trying them -----------------------------------------------------------------------------------------------------


def verdict(column, holds):
    """[] when a certificate holds; [column] when it rejects, [column*] when it does not run through (shapes differ)."""
    try:
        return [] if holds() else [column]
    except (ValueError, IndexError, TypeError):
        return [f"{column}*"]


def killers_of(methods, family, forward=True):
    """The columns among A and E that reject a table with these methods."""
    operation = FAMILIES[family][0]
    if not forward:
        methods = {"patch_embed": reads_apart(methods["patches"])}
    act = "gelu_erf" if operation == "gelu_erf" else None
    return (verdict("A", lambda: symbolic_holds(type("Mutant", (Symbolic,), methods), operation))
            + verdict("E", lambda: step_holds(type("Mutant", (Field,), methods), act)))


def chain_killers(wired):
    return verdict("E", lambda: step_holds(wired=wired))


def reads_apart(patches):
    """patch_embed with the right output, keeping for backward what `patches` reads."""

    def patch_embed(self, image):
        return ops.Operations.patch_embed(self, image)[0], patches(self, image)

    return patch_embed


def symbolic_holds(table, operation, shapes=None):
    found = cells(FAMILIES)
    for shape in shapes or a_symbolic.SHAPES[operation]:
        a_symbolic.prove(case(operation, *shape), table, found)
    return all(found[f].ok for f, (of, _) in FAMILIES.items() if of == operation)


def step_holds(field=Field, act=None, wired=wiring):
    sizes = SMALL if act is None else type(SMALL)(**vars(SMALL) | {"hidden_act": act})
    return e_step.identity(sizes, e_step.small_setting(sizes, 5), field, wired)


def kernel_killers(table, family):
    """The columns among B, D and G that reject a table of kernels."""
    operation, name = family
    found = []
    if operation in b_basis.SHAPES and name in b_basis.PARTNER[operation]:
        cell = Cell()
        b_basis.check(case(operation, *b_basis.SHAPES[operation][1]), name, table, cell)
        found += [] if cell.ok else ["B"]
    if operation in d_exact.SHAPES:
        tried = cells(FAMILIES)
        d_exact.check(case(operation, *d_exact.SHAPES[operation][-1]), "this path", table, tried)
        found += [] if all(c.ok for c in tried.values() if c.checked) else ["D"]
    tried = cells(FAMILIES)
    way = [(g_bits.available_paths()[-1], 1)]
    g_bits.operation_bits(case(operation, *g_bits.SHAPES[operation][1]), way, table, tried)
    return found + ([] if all(c.ok for c in tried.values() if c.checked) else ["G"])


def survivors(cell):
    """Why the shapes are those of the list: some wrong reads show on no easier shape."""
    for name, shapes in SURVIVES_ON.items():
        read = next(read for _, mutant, read in READS if mutant == name)
        methods = {"patch_embed": reads_apart(reading(read))}
        table = type("Mutant", (Symbolic,), methods)
        for shape in shapes:
            cell.expect(symbolic_holds(table, "patch_embed", [shape]), 1, f"{name} was expected to pass on {shape}")
    cell.notes["pass on easier shapes"] = sorted(SURVIVES_ON)
