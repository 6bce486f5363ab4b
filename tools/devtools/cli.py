"""The command line of tools/dev.py."""
import argparse
import sys

from . import bench, build
from .workspace import VENV, Failed, say


def parser():
    p = argparse.ArgumentParser(prog="dev.py", description="Work on dx: build, run, test, measure.")
    commands = p.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("build", help="build the wheels that changed into dist/ and install them into .venv")
    b = commands.add_parser("bench", help="measure: one JSON object or a table")
    b.add_argument("name", help="one of: " + ", ".join(bench.names()))
    b.add_argument("--json", action="store_true", help="one JSON object on stdout")
    b.add_argument("--quick", action="store_true", help="a smoke run of a few seconds")
    b.add_argument("--record", action="store_true", help="write the table into docs/results.md")
    b.add_argument("--no-build", action="store_true", help="use .venv as it stands")
    return p


def main(arguments=None):
    a = parser().parse_args(arguments)
    try:
        if a.command == "build":
            for wheel in build.ensure_installed(VENV, []).values():
                print(build.relative(wheel))
            return 0
        return bench.bench(a.name, a.json, a.quick, a.record, a.no_build)
    except Failed as error:
        say(f"dev.py: {error}")
        return 1
    except KeyboardInterrupt:
        say("interrupted")
        return 130


if __name__ == "__main__":
    sys.exit(main())
