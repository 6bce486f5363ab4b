"""`python -m dx_model.vit certify [--full] [--json]`: the certificates' table.

The table or one JSON object goes to stdout, progress to stderr. Exit codes: 0 everything held; 1 something did not;
2 usage; 130 interrupted."""
import argparse
import json
import sys


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="python -m dx_model.vit", description="Vision transformers with certificates.")
    commands = p.add_subparsers(dest="command", required=True, metavar="COMMAND")
    c = commands.add_parser("certify", help="show that every parameter gradient is Jacobian transposed times cotangent")
    c.add_argument("--full", action="store_true", help="all inputs of the functions, more shapes, seeds and degrees")
    c.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    c.add_argument("--columns", default="ABCDEFGH", metavar="LETTERS", help="only these columns (ABCDEFGH)")
    return p


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments=None) -> int:
    """Runs the command on these arguments (default: the process's); returns the exit code."""
    try:
        a = parser().parse_args(arguments)
    except SystemExit as stop:  # argparse has printed help (0) or the usage error (2)
        return stop.code
    unknown = sorted(set(a.columns) - set("ABCDEFGH"))
    if unknown or not a.columns:
        say(f"python -m dx_model.vit: --columns takes letters A to H, not {''.join(unknown) or 'nothing'}")
        return 2
    from .certify import certify, table  # when asked for: it loads the readable references

    try:
        report = certify(a.full, "".join(sorted(set(a.columns))), say)
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    print(json.dumps(report.to_json(), indent=1) if a.json else "\n".join(table(report)))
    problems = report.problems()
    for problem in problems:
        say(problem)
    return 1 if problems else 0
