"""The `dx` command. Exit codes: 0 done, 1 the asked-for thing failed, 2 usage, 130 interrupted."""
import argparse
import json
import sys
from importlib.metadata import PackageNotFoundError, distribution

from . import below

DISTRIBUTIONS = ("dx-numerics", "dx-kernels", "dx-model", "dx-train", "dx-labels")


def versions():
    """The five distributions as installed: name → {"version", "folder"}; version None for one that is not there."""
    found = {}
    for name in DISTRIBUTIONS:
        try:
            d = distribution(name)
            found[name] = {"version": d.version, "folder": str(d.locate_file(name.replace("-", "_")))}
        except PackageNotFoundError:
            found[name] = {"version": None, "folder": None}
    return found


def report():
    """What `dx --version --json` prints: the distributions and how this process computes."""
    return {"distributions": versions(), "python": sys.version.split()[0], "paths": list(below.available_paths()),
            "path": below.get_path(), "degree": below.get_degree()}


def main(arguments=None):
    """Runs the command on these arguments (default: the process's) and returns the exit code."""
    parser = argparse.ArgumentParser(prog="dx", description="Document models of your own.")
    parser.add_argument("--version", action="store_true", help="versions and folders of the five distributions")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    try:
        a = parser.parse_args(arguments)
    except SystemExit as stop:  # argparse has printed help (0) or the usage error (2)
        return stop.code
    if not a.version:
        parser.print_usage(sys.stderr)
        print("dx: nothing asked for", file=sys.stderr)
        return 2
    answer = report()
    if a.json:
        print(json.dumps(answer))
    else:
        for name, one in answer["distributions"].items():
            print(f"{name} {one['version'] or 'not installed'}  {one['folder'] or ''}".rstrip())
        print(f"kernel path {answer['path']} of {', '.join(answer['paths'])}; degree {answer['degree']}")
    return 1 if len({one["version"] for one in answer["distributions"].values()}) != 1 else 0
