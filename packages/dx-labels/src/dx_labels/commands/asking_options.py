"""Who is asked for values: options that `dx label` and `dx extract` share."""
import shlex

from ..console import positive
from ..labellers import ChatLabeller, CommandLabeller, FileLabeller


def labeller_options(p):
    who = p.add_mutually_exclusive_group()
    who.add_argument("--values", metavar="FILE", help="a file of values")
    who.add_argument("--command", metavar="COMMAND", help="a command to ask, split as a shell would; no shell runs")
    who.add_argument("--endpoint", metavar="URL", help="an OpenAI-compatible chat endpoint to ask (needs --model)")
    p.add_argument("--model", dest="endpoint_model", metavar="NAME", help="the endpoint's model")
    p.add_argument("--timeout", type=positive, default=60, metavar="SECONDS", help="for one attempt (default 60)")
    p.add_argument("--attempts", type=positive, default=4, metavar="N", help="attempts a document (default 4)")


def labeller_of(a):
    """The Labeller that the options name, or None. A usage error ends the command with exit code 2."""
    if bool(a.endpoint) != bool(a.endpoint_model):
        a.parser.error("--endpoint and --model go together")
    if a.values:
        return FileLabeller(a.values)
    if a.command:
        return CommandLabeller(shlex.split(a.command), a.timeout)
    if a.endpoint:
        return ChatLabeller(a.endpoint, a.endpoint_model, timeout=a.timeout, attempts=a.attempts)
    return None
