"""dx serve-review"""
from ..console import command, emit, emit_json, say, teller
from ..project import Project
from ..review import Session, serve


def add(commands):
    p = command(commands, "serve-review", run, "look at a project's pages in the browser and correct its labels", """\
  dx serve-review invoices             # prints an address; open it in a browser on this machine
  dx serve-review invoices --port 8800 --no-predictions

Corrections are kept in the project's reviews.jsonl, each saved before the page says so, and go before values.jsonl:
`dx label` and `dx train` use them. Ctrl-C ends the server.""")
    p.add_argument("project", metavar="PROJECT", help="the project's folder")
    p.add_argument("--port", type=int, default=0, metavar="N", help="port (default: a free one)")
    p.add_argument("--no-predictions", action="store_true", help="do not show what the project's model reads")


def run(a):
    if not 0 <= a.port < 65536:
        a.parser.error(f"--port {a.port}: expected 0 to 65535")
    session = Session(Project(a.project), predict=not a.no_predictions)
    for problem in session.problems:
        say(problem)

    def ready(url):
        emit_json({"url": url}) if a.json else emit(url)
        teller(a)(f"{len(session.documents)} documents; Ctrl-C ends")
    try:
        serve(session, port=a.port, ready=ready)
    except KeyboardInterrupt:
        teller(a)(f"{len(session.history.lines)} corrections in {session.history.path}")
    return 0
