"""dx verify"""
from ..console import command, emit_json
from ..release import verify_release
from .release import show


def add(commands):
    p = command(commands, "verify", run, "check a release: digests, records, evidence; needs its folder alone", """\
  dx verify receipts/releases/0123456789abcdef
  dx verify 0123456789abcdef --digest 0123…   also that it is the release you were told of
  dx verify 0123456789abcdef --state CANDIDATE""")
    p.add_argument("release", help="the release's folder")
    p.add_argument("--digest", metavar="HEX", help="the digest it must have")
    p.add_argument("--state", choices=("DRAFT", "RECONCILED", "EVALUATED", "CANDIDATE"),
                   help="the state it must have reached")


def run(a):
    answer = verify_release(a.release, a.digest)
    if a.json:
        emit_json(answer)
    else:
        show(answer)
    order = ("DRAFT", "RECONCILED", "EVALUATED", "CANDIDATE")
    return 1 if a.state and order.index(answer["state"]) < order.index(a.state) else 0
