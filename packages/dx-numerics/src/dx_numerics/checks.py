"""Does this machine, build and process keep dx's arithmetic?"""
import dataclasses

from ._core import _selfcheck, available_paths, kernel_path

# by the bits of runtime_impl.h
_CHECKS = ("floating-point mode", "rounding to nearest even", "subnormals kept", "no contracted products",
           "one rounding in a dot")


@dataclasses.dataclass(frozen=True)
class Check:
    """One thing that was checked."""

    name: str
    path: str
    ok: bool
    detail: str = ""

    def __str__(self):
        return f"{'ok' if self.ok else 'FAILED'}  {self.path:9}{self.name}{': ' + self.detail if self.detail else ''}"


@dataclasses.dataclass(frozen=True)
class SelfCheckReport:
    """What `selfcheck` found."""

    checks: tuple

    @property
    def ok(self):
        """Whether every check passed."""
        return all(c.ok for c in self.checks)

    def require(self):
        """Raises RuntimeError that lists the failed checks; nothing when all passed."""
        failed = [str(c) for c in self.checks if not c.ok]
        if failed:
            raise RuntimeError("dx-numerics cannot keep its arithmetic here:\n" + "\n".join(failed))

    def __str__(self):
        return "\n".join(map(str, self.checks))


def selfcheck(full=False):
    """Checks the arithmetic of every available kernel path; SelfCheckReport.

    Always (at import too): rounding mode, subnormals, contraction, one rounding in a dot, inside a call of dx, whatever
    mode the calling thread is in. full=True: also that every path gives the bytes of the portable one over a fixed
    sweep of all functions (about 0.1 s).
    """
    checks = []
    for path in available_paths():
        failures = _selfcheck(path)
        checks += [Check(name, path, not failures >> bit & 1) for bit, name in enumerate(_CHECKS)]
    if full:
        from . import sweep  # it uses every module of the package

        with kernel_path("portable"):
            want = sweep.digests()
        for path in available_paths()[1:]:
            with kernel_path(path):
                got = sweep.digests()
            unlike = [name for name in want if got[name] != want[name]]
            checks.append(Check("same bytes as the portable path", path, not unlike, ", ".join(unlike)))
    return SelfCheckReport(tuple(checks))
