"""Finds what numerics.md rule 16 forbids in code that reaches a bit. `violations(source)` gives (line, what) pairs.

It reads the syntax tree and cannot know types: `**`, sum() and the rest are refused whatever their operands are. Where
they are whole numbers on purpose, the line says so with the comment `# exact: why` and is let through.
"""
import ast

NUMPY_FORBIDDEN = {
    **dict.fromkeys("exp exp2 expm1 log log2 log10 log1p tanh sinh cosh sin cos tan arcsin arccos arctan arctan2 power "
                    "float_power cbrt hypot logaddexp logaddexp2 sinc i0".split(), "numpy's elementary function"),
    **dict.fromkeys("sum mean std var median percentile quantile average nansum nanmean nanstd nanvar nanmedian prod "
                    "cumsum cumprod nanprod trapezoid trapz".split(), "numpy's own order of summation"),
    **dict.fromkeys("dot vdot inner matmul einsum tensordot kron convolve correlate vecdot matvec vecmat "
                    "cov corrcoef interp polyfit polyval".split(), "BLAS or numpy's own order"),
}
METHODS_FORBIDDEN = dict.fromkeys("mean std var cumsum cumprod prod dot sum".split(), "numpy's own order of summation")
SORTS = {"sort", "argsort", "partition", "argpartition"}  # lexsort and unique are stable by themselves
MATH_ALLOWED = {"sqrt", "floor", "ceil", "fsum", "ldexp", "isnan", "isinf", "isfinite", "inf", "nan", "gcd", "comb",
                "copysign", "trunc", "frexp", "isqrt"}
LISTINGS = {"listdir", "scandir", "iterdir", "glob", "iglob", "rglob", "walk"}
MODULES_FORBIDDEN = {"random": "random numbers come from dx_numerics", "statistics": "floats summed its own way",
                     "cmath": "libm's functions", "secrets": "not reproducible", "uuid": "not reproducible"}


def dotted(node):
    """'np.linalg.norm' for an attribute chain of names; '' for anything else."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


class Finder(ast.NodeVisitor):
    def __init__(self, lines):
        self.lines, self.found = lines, []
        self.numpy, self.math = set(), set()  # names under which the modules are imported
        self.ordered = set()  # ids of nodes inside sorted()
        self.unordered = set()  # ids of comprehensions that make sets
        self.sets = set()  # names that hold a set somewhere in the file

    def report(self, node, what):
        if "# exact:" not in self.lines[node.lineno - 1]:
            self.found.append((node.lineno, what))

    def visit_Import(self, node):
        for alias in node.names:
            top = alias.name.split(".")[0]
            if top == "numpy":
                self.numpy.add(alias.asname or "numpy")
                if "random" in alias.name or "linalg" in alias.name:
                    self.report(node, alias.name)
            elif top == "math":
                self.math.add(alias.asname or "math")
            elif top in MODULES_FORBIDDEN:
                self.report(node, f"import {top}: {MODULES_FORBIDDEN[top]}")

    def visit_ImportFrom(self, node):
        top = (node.module or "").split(".")[0] if not node.level else ""
        for alias in node.names:
            bad = alias.name in NUMPY_FORBIDDEN or alias.name in SORTS or alias.name in ("random", "linalg")
            if top == "numpy" and (bad or node.module.startswith(("numpy.random", "numpy.linalg"))):
                self.report(node, f"from {node.module} import {alias.name}")
            elif top == "math" and alias.name not in MATH_ALLOWED:
                self.report(node, f"math.{alias.name}: libm differs between machines")
            elif top in MODULES_FORBIDDEN:
                self.report(node, f"from {top}: {MODULES_FORBIDDEN[top]}")

    def visit_BinOp(self, node):
        if isinstance(node.op, ast.MatMult):
            self.report(node, "@: BLAS decides the order")
        elif isinstance(node.op, ast.Pow) and not self.power_of_two(node):
            self.report(node, "**: libm's pow")
        self.generic_visit(node)

    @staticmethod
    def power_of_two(node):
        """2.0**-126 and its like: two constants, folded when the file is compiled, exact."""
        if not isinstance(node, ast.BinOp):
            return False
        exponent = node.right.operand if isinstance(node.right, ast.UnaryOp) else node.right
        return getattr(node.left, "value", None) == 2 and isinstance(getattr(exponent, "value", None), int)

    def visit_AugAssign(self, node):
        self.visit_BinOp(node)

    def is_set(self, node):
        return isinstance(node, ast.Set | ast.SetComp) or (isinstance(node, ast.Name) and node.id in self.sets) or (
            isinstance(node, ast.Call) and dotted(node.func) in ("set", "frozenset"))

    def visit_Assign(self, node):
        if self.is_set(node.value):
            self.sets |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        self.generic_visit(node)

    def over_a_set(self, iterable):
        if self.is_set(iterable):
            self.report(iterable, "iteration over a set")

    def visit_For(self, node):
        self.over_a_set(node.iter)
        self.generic_visit(node)

    def visit_SetComp(self, node):
        self.unordered |= {id(g) for g in node.generators}  # a set made from a set has no order to lose
        self.generic_visit(node)

    def visit_comprehension(self, node):
        if id(node) not in self.unordered:
            self.over_a_set(node.iter)
        self.generic_visit(node)

    def visit_Call(self, node):
        name = dotted(node.func)
        head, _, rest = name.partition(".")
        last = name.rpartition(".")[2] or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
        if name in ("list", "tuple", "enumerate", "iter", "map", "zip") or last == "join":
            for argument in node.args:
                self.over_a_set(argument)
        if name == "sorted":  # a listing inside sorted() has an order, and so has a set
            self.ordered |= {id(n) for a in node.args for n in ast.walk(a)}
        if name in ("sum", "hash", "pow", "id"):
            self.report(node, {"sum": "sum(): its floats changed in Python 3.12", "pow": "pow(): libm's",
                               "hash": "hash(): differs between processes", "id": "id(): an address"}[name])
        elif head in self.numpy:
            self.numpy_call(node, rest, last)
        elif head in self.math and rest not in MATH_ALLOWED:
            self.report(node, f"math.{rest}: libm differs between machines")
        elif isinstance(node.func, ast.Attribute):
            self.method_call(node, last)
        self.generic_visit(node)

    def numpy_call(self, node, rest, last):
        first = rest.split(".")[0]
        if first in ("random", "linalg", "fft"):
            self.report(node, f"numpy.{rest}")
        elif last == "reduce" or last == "accumulate" or last == "reduceat":
            if first in ("add", "multiply", "logaddexp"):
                self.report(node, f"numpy.{rest}: numpy's own order of summation")
        elif rest in NUMPY_FORBIDDEN:
            self.report(node, f"numpy.{rest}: {NUMPY_FORBIDDEN[rest]}")
        elif rest in SORTS:
            self.stable(node, f"numpy.{rest}")

    def method_call(self, node, last):
        if last in METHODS_FORBIDDEN:
            self.report(node, f".{last}(): {METHODS_FORBIDDEN[last]}")
        elif last in ("argsort", "argpartition", "partition") and not isinstance(node.func.value, ast.Constant):
            if last != "partition" or not (node.args and isinstance(node.args[0], ast.Constant)):
                self.stable(node, f".{last}()")
        elif last in LISTINGS and id(node) not in self.ordered:
            self.report(node, f".{last}(): the file system's order; wrap it in sorted()")

    def stable(self, node, name):
        kinds = [k.value for k in node.keywords if k.arg == "kind"]
        if not (kinds and isinstance(kinds[0], ast.Constant) and kinds[0].value == "stable"):
            self.report(node, f'{name} without kind="stable"')


def violations(source):
    """(line, what) for everything in this Python source that rule 16 forbids."""
    finder = Finder(source.splitlines())
    finder.visit(ast.parse(source))
    return sorted(finder.found)
