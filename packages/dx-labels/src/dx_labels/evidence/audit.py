"""The ledger: every use of a split role, allowed or refused, in a file that only grows and whose lines are chained."""
import contextlib
import hashlib
import json
import os
from pathlib import Path

from ..below import StrictJSONError, canonical_bytes, parse_json
from .roles import ALLOWED, ROLES, EvidenceError

KEYS = ("before", "operation", "role", "ids", "subject", "frozen", "plan", "allowed")


def ids_digest(ids) -> str:
    """SHA-256 (hex) of ids, sorted."""
    return hashlib.sha256(canonical_bytes(sorted(ids))).hexdigest()


def chain(entry) -> str:
    """SHA-256 (hex) of an entry, which holds that of the one before it."""
    return hashlib.sha256(canonical_bytes(entry)).hexdigest()


def checked(entries) -> list[dict]:
    """The entries; EvidenceError where one was changed, left out, or put in another place."""
    before = ""
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, dict) or set(entry) != set(KEYS):
            raise EvidenceError(f"ledger entry {number}: expected an object of {', '.join(KEYS)}")
        if entry["before"] != before:
            raise EvidenceError(f"ledger entry {number}: it follows {entry['before'] or 'nothing'}: expected {before}")
        if entry["allowed"] != (entry["operation"] in ALLOWED.get(entry["role"], ())):
            raise EvidenceError(f"ledger entry {number}: {entry['operation']!r} of {entry['role']!r} is not "
                                f"{'allowed' if entry['allowed'] else 'refused'}")
        before = chain(entry)
    return list(entries)


class Ledger:
    """The ledger of one file (audit.jsonl); made by its first entry."""

    def __init__(self, path):
        self.path = Path(path)

    def entries(self) -> list[dict]:
        """All entries, checked. A last line that a kill cut off is left out."""
        if not self.path.exists():
            return []
        found = []
        for line in self.path.read_bytes().split(b"\n")[:-1]:
            try:
                found.append(parse_json(line.decode("utf-8")))
            except (UnicodeDecodeError, StrictJSONError) as error:
                raise EvidenceError(f"{self.path}:{len(found) + 1}: {error}") from None
        return checked(found)

    def use(self, operation: str, role: str, ids, *, subject: str = "", frozen: str = "", plan: str = "") -> None:
        """Notes one use of a role's examples, and refuses a forbidden one after noting it.

        operation : of roles.ALLOWED or FORBIDDEN · subject : digest of what was fitted or evaluated · frozen : that of
        the same without calibrator and decision · plan : digest of the evaluation plan. A use that stands there already
        is not noted twice.
        """
        if role not in ROLES:
            raise EvidenceError(f"role {role!r}: expected one of {', '.join(ROLES)}")
        allowed, ids = operation in ALLOWED[role], sorted(ids)
        with self._held():
            known = self.entries()
            entry = {"before": chain(known[-1]) if known else "", "operation": operation, "role": role, "ids": ids,
                     "subject": subject, "frozen": frozen, "plan": plan, "allowed": allowed}
            same = [e for e in known if all(e[k] == entry[k] for k in KEYS if k != "before")]
            if not same:
                self._append(entry)
        if not allowed:
            raise EvidenceError(f"{operation!r} of the role {role}: expected {' or '.join(ALLOWED[role])}")

    @contextlib.contextmanager
    def _held(self):
        try:
            import fcntl
        except ImportError:
            yield
            return
        with open(self.path, "a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _append(self, entry) -> None:
        line = json.dumps(entry, sort_keys=True, ensure_ascii=False).encode() + b"\n"
        with open(self.path, "r+b" if self.path.exists() else "w+b") as file:
            whole = file.read()
            file.seek(whole.rfind(b"\n") + 1)  # over a line that a kill cut off
            file.write(line)
            file.truncate()
            file.flush()
            os.fsync(file.fileno())


def up_to(entries, subject: str) -> list[dict]:
    """The entries up to the first evaluation of this candidate: what was known when it was judged."""
    for place, entry in enumerate(entries):
        if entry["operation"] == "evaluate frozen candidate" and entry["subject"] == subject:
            return list(entries[:place + 1])
    return list(entries)


def admit_audit(entries, *, subject: str, frozen: str, plan: str, promotion) -> None:
    """EvidenceError unless the promotion examples were an untouched test of this candidate.

    Refused: a forbidden use of any of them; these weights, or their settings or thresholds, fitted on them; the
    candidate was evaluated under another plan first (slices and floors chosen after seeing results); the same weights
    were evaluated on them with another calibrator or threshold before (the test has become tuning data: a new one is
    needed).
    """
    mine = frozenset(promotion)
    for number, entry in enumerate(checked(entries), 1):
        touched = [i for i in entry["ids"] if i in mine]
        if not touched:
            continue
        if entry["role"] != "promotion" and entry["frozen"] not in ("", frozen):
            continue  # other weights were fitted on it, in another split: these have not seen it
        if not entry["allowed"] or entry["role"] != "promotion":
            raise EvidenceError(f"ledger entry {number}: {entry['operation']!r} of {entry['role']} read "
                                f"{touched[0]!r}, which is a promotion example")
        if entry["subject"] == subject and entry["plan"] != plan:
            raise EvidenceError(f"ledger entry {number}: the candidate was evaluated under the plan "
                                f"{entry['plan'][:16]}: the plan {plan[:16]} came after its results")
        if entry["subject"] != subject and entry["frozen"] == frozen:
            raise EvidenceError(f"ledger entry {number}: the same weights were evaluated on {touched[0]!r} with "
                                "another calibrator or decision: they need a new, untouched promotion test")
    if not any(e["operation"] == "evaluate frozen candidate" and e["subject"] == subject and e["plan"] == plan
               and frozenset(e["ids"]) == mine for e in entries):
        raise EvidenceError("the ledger does not hold the evaluation of this candidate under this plan")
