"""The `dx` command. Exit codes: 0 done, 1 the asked-for thing failed, 2 usage, 130 interrupted."""
import hashlib
import json
import os
import sys
from importlib.metadata import PackageNotFoundError, distribution

from . import below, commands
from .console import Parser, say

DISTRIBUTIONS = ("dx-numerics", "dx-kernels", "dx-model", "dx-train", "dx-labels")
FAILURES = (ValueError, OSError, below.CheckpointError, below.FolderInUse, below.TrainingError, below.ModelFileError)


def versions():
    """The five distributions as installed: name → {"version", "folder", "sha256"}; all None for one that is not there.
    sha256 is the digest of the installed files (installed_digest)."""
    found = {}
    for name in DISTRIBUTIONS:
        try:
            d = distribution(name)
            found[name] = {"version": d.version, "folder": str(d.locate_file(name.replace("-", "_"))),
                           "sha256": installed_digest(d)}
        except PackageNotFoundError:
            found[name] = {"version": None, "folder": None, "sha256": None}
    return found


def installed_digest(found):
    """SHA-256 (hex) over "path SHA-256" lines of the package's files as they are on disk now, sorted by path: equal for
    equal code, whoever installed it. None where the installation lists no files."""
    total, some = hashlib.sha256(), False
    for file in sorted(found.files or (), key=str):
        path = found.locate_file(file)
        if file.parts[0].endswith(".dist-info") or file.suffix == ".pyc" or not path.is_file():
            continue
        with open(path, "rb") as opened:
            total.update(f"{file.as_posix()} {hashlib.file_digest(opened, 'sha256').hexdigest()}\n".encode())
        some = True
    return total.hexdigest() if some else None


def report():
    """What `dx --version --json` prints: the distributions and how this process computes."""
    return {"distributions": versions(), "python": sys.version.split()[0], "paths": list(below.available_paths()),
            "path": below.get_path(), "degree": below.get_degree()}


def parser():
    p = Parser(prog="dx", description="Document models of your own.")
    p.add_argument("--version", action="store_true", help="versions and folders of the five distributions")
    p.add_argument("--json", action="store_true", help="with --version: one JSON object on stdout")
    p.set_defaults(run=None)
    found = p.add_subparsers(metavar="COMMAND", parser_class=Parser)
    for module in commands.ALL:
        module.add(found)
    return p


def main(arguments=None):
    """Runs the command on these arguments (default: the process's) and returns the exit code."""
    p = parser()
    try:
        a = p.parse_args(arguments)
    except SystemExit as stop:  # argparse has printed help (0) or the usage error (2)
        return stop.code
    if a.run is None and not a.version:
        p.print_usage(sys.stderr)
        say("dx: nothing asked for")
        return 2
    try:
        return version(a) if a.run is None else a.run(a)
    except SystemExit as stop:  # a usage error that the command itself found
        return stop.code
    except KeyboardInterrupt as stop:  # FineTune's Interrupted says how to go on
        say(f"dx: {stop}" if str(stop) else "dx: interrupted")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except FAILURES as error:
        say(f"dx: {error}")
        return 1


def version(a):
    answer = report()
    if a.json:
        print(json.dumps(answer))
    else:
        for name, one in answer["distributions"].items():
            print(f"{name} {one['version'] or 'not installed'}  {one['folder'] or ''}".rstrip())
        print(f"kernel path {answer['path']} of {', '.join(answer['paths'])}; degree {answer['degree']}")
    return 1 if len({one["version"] for one in answer["distributions"].values()}) != 1 else 0
