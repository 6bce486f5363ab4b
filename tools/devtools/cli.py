"""The command line of tools/dev.py."""
import argparse

from . import bench, build, contracts, demo, release, sbom, testing
from .workspace import PACKAGES, VENV, Failed, above, existing, say


def parser():
    p = argparse.ArgumentParser(prog="dev.py", description="Work on dx: build, run, test, measure.")
    commands = p.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("demo", help="build, install, and run the demonstration")
    commands.add_parser("build", help="build the wheels that changed into dist/ and install them into .venv")
    t = commands.add_parser("test", help="the fast tier of tests; with an option another one")
    which = t.add_mutually_exclusive_group()
    which.add_argument("--packages", action="store_true", help="every package alone: sdist, wheel, clean environment")
    which.add_argument("--package", choices=PACKAGES, help="the same for this package and all above it")
    which.add_argument("--changed", metavar="REF", help="the same for what differs from a git reference, and all above")
    which.add_argument("--exhaustive", action="store_true", help="the long checks")
    which.add_argument("--debug-cython", action="store_true", help="with Cython's run-time checks compiled in")
    which.add_argument("--sanitize", action="store_true", help="the compiled packages under ASan and UBSan (gcc)")
    t.add_argument("--record-counts", action="store_true", help="write tests/counts.json from this run")
    t.add_argument("--no-build", action="store_true", help="use .venv as it stands")
    t.add_argument("pytest", nargs="*", help="after --: options for pytest; the counts are not judged then")
    b = commands.add_parser("bench", help="measure: one JSON object or a table")
    b.add_argument("name", help="one of: " + ", ".join(bench.names()))
    b.add_argument("--json", action="store_true", help="one JSON object on stdout")
    b.add_argument("--quick", action="store_true", help="a smoke run of a few seconds")
    b.add_argument("--record", action="store_true", help="write the table into docs/results.md")
    b.add_argument("--no-build", action="store_true", help="use .venv as it stands")
    c = commands.add_parser("contracts", help="compare the installed packages with tests/contracts")
    c.add_argument("--write", action="store_true", help="pin what is installed now")
    c.add_argument("--no-build", action="store_true", help="use .venv as it stands")
    s = commands.add_parser("screenshots", help="pictures of the report and the review page, to look at (Chromium)")
    s.add_argument("folder", nargs="?", default=".screenshots", help="where they go (default: .screenshots)")
    commands.add_parser("sbom", help="a bill of materials of the wheels (CycloneDX) on stdout")
    v = commands.add_parser("version", help="set the one version of all packages")
    v.add_argument("new", metavar="X")
    return p


def test(a):
    if a.packages:
        return testing.clean(existing())
    if a.package:
        return testing.clean(above(a.package))
    if a.changed:
        return testing.clean(testing.changed_packages(a.changed))
    if a.debug_cython:
        return testing.debug_cython(a.pytest)
    if a.sanitize:
        return testing.sanitize(a.pytest)
    tier = testing.exhaustive if a.exhaustive else testing.fast
    return tier(a.pytest, a.record_counts, a.no_build)


def run(a):
    if a.command == "demo":
        return demo.demo()
    if a.command == "build":
        for wheel in build.ensure_installed(VENV, []).values():
            print(build.relative(wheel))
        return 0
    if a.command == "test":
        return test(a)
    if a.command == "bench":
        return bench.bench(a.name, a.json, a.quick, a.record, a.no_build)
    if a.command == "contracts":
        return contracts.contracts(a.write, a.no_build)
    if a.command == "screenshots":
        return demo.screenshots(a.folder)
    if a.command == "sbom":
        return sbom.sbom()
    return release.set_version(a.new)


def main(arguments=None):
    try:
        return run(parser().parse_args(arguments))
    except Failed as error:
        say(f"dev.py: {error}")
        return 1
    except KeyboardInterrupt:
        say("interrupted")
        return 130
