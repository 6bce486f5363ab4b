"""What the commands share: output, messages, and a parser that suggests the right option for a mistyped one."""
import argparse
import json
import sys

from .schema import nearest


class Parser(argparse.ArgumentParser):
    """argparse's, with suggestions; options are written in full."""

    def __init__(self, *arguments, **options):
        options.setdefault("allow_abbrev", False)
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*arguments, **options)

    def parse_args(self, args=None, namespace=None):
        found, left = self.parse_known_args(args, namespace)
        if left:
            chosen = getattr(found, "parser", self)
            hint = nearest(left[0].split("=")[0], list(chosen._option_string_actions)) if left[0][:1] == "-" else ""
            chosen.error(f"unknown {'option' if left[0][:1] == '-' else 'argument'} {left[0]!r}{hint}")
        return found

    def _check_value(self, action, value):
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, f"unknown {value!r}{nearest(value, action.choices)}: expected one of "
                                                 f"{', '.join(map(str, action.choices))}")


def command(commands, name, run, help, example):
    """A sub-command's parser, with the options every command has."""
    parser = commands.add_parser(name, help=help, description=help[0].upper() + help[1:] + ".",
                                 epilog=f"examples:\n{example}")
    parser.add_argument("--json", action="store_true", help="JSON on stdout instead of text")
    parser.add_argument("--quiet", action="store_true", help="errors alone on stderr")
    parser.set_defaults(run=run, parser=parser)
    return parser


def threads_option(parser):
    parser.add_argument("--threads", type=positive, metavar="N", help="threads; no result depends on them")


def positive(text):
    """A whole number of at least 1."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number of at least 1")
    return value


def emit(text):
    """One line on stdout in UTF-8, whatever the locale; a lone surrogate becomes an escape."""
    data = text.encode("utf-8", "backslashreplace") + b"\n"
    if sys.stdout is None:
        raise OSError("stdout is closed")
    if hasattr(sys.stdout, "buffer"):
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        sys.stdout.write(data.decode("utf-8"))


def emit_json(value):
    """One JSON object on one line; plain ASCII where a text holds a lone surrogate."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, allow_nan=False)
    emit(text)


def say(text):
    """A message on stderr."""
    if sys.stderr is not None:  # closed: print would take stdout
        print(text.encode("utf-8", "backslashreplace").decode("utf-8"), file=sys.stderr, flush=True)


def teller(arguments):
    """Where progress messages go: stderr, or nowhere with --quiet."""
    return (lambda text: None) if arguments.quiet else say


def score_lines(scores, thresholds):
    """Lines of a table: field, right of scored with interval, F1 by words and by text with theirs, threshold."""
    yield (f"{'field':<16} {'right':>12}  {'95 % interval':<15} {'F1, words':>9}  {'95 % interval':<15} {'text':>6}  "
           f"{'95 % interval':<15} accept from")
    for name, s in [*scores["fields"].items(), ("all", scores["total"])]:
        low, high = s["correct"]["interval"]
        t = thresholds.get(name)
        value = "" if t is None else "none" if t["threshold"] is None else f"{t['threshold']:.6f}"
        words, text = (f"{s[m]['f1']:.3f}  {s[m]['f1_interval'][0]:.3f} to {s[m]['f1_interval'][1]:.3f}"
                       for m in ("words", "text"))
        yield (f"{name:<16} {s['correct']['k']:>5} of {s['correct']['n']:<4}  {low:.3f} to {high:.3f}  {words:>25}  "
               f"{text:>23}  {value}").rstrip()
