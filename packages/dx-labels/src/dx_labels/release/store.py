"""A folder of releases, which one is current, and going back: a rollback restores a whole tuple or refuses.

    <digest>/        releases (bundle.py)
    current.json     {"release", "digest", "serial", "history"}: replaced whole, so there is always one answer
    lock             held while the folder is changed
"""
import contextlib
import re
from pathlib import Path

from ..below import StrictJSONError, parse_json, write_atomic
from .bundle import SUMS, bundle_digest, json_bytes, record, sweep, verify_files, write_bundle
from .graph import ReleaseError
from .identity import PARTS, SemanticTuple, changed_parts, compatibility
from .states import CANDIDATE, state_of

CURRENT = "current.json"
_NAME = re.compile(r"[0-9a-f]{16}\Z")  # what a killed writer leaves has another one


@contextlib.contextmanager
def locked(folder):
    """Holds the store's lock; ReleaseError while another process does."""
    try:
        import fcntl
    except ImportError:  # a system without flock: renames alone keep the folder whole
        yield
        return
    with open(Path(folder, "lock"), "a+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ReleaseError(f"{folder}: another process is changing these releases") from None
        yield


class Store:
    """The releases of one folder; the folder is made when the first one is added."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def names(self) -> list[str]:
        """Names of the releases, sorted."""
        if not self.folder.is_dir():
            return []
        return sorted(p.name for p in self.folder.iterdir() if _NAME.match(p.name) and (p / SUMS).exists())

    def path(self, name: str) -> Path:
        """The folder of a release, by its name or the beginning of its digest; ReleaseError for none or several."""
        found = [n for n in self.names() if n.startswith(name[:16])] if name else []
        if len(found) != 1 or not bundle_digest(self.folder / found[0]).startswith(name):
            raise ReleaseError(f"{self.folder}: release {name!r}: expected one of {', '.join(self.names()) or 'none'}")
        return self.folder / found[0]

    def current(self) -> dict | None:
        """What current.json says; None before the first promotion."""
        path = self.folder / CURRENT
        if not path.exists():
            return None
        try:
            found = parse_json(path.read_text(encoding="utf-8"))
            texts = [isinstance(found[k], str) for k in ("release", "digest")]
            if not all(texts) or not isinstance(found["history"], list):
                raise KeyError("release, digest, history")
            return found
        except (UnicodeDecodeError, StrictJSONError, KeyError, TypeError) as error:
            raise ReleaseError(f"{path}: {error}") from None

    def add(self, files) -> Path:
        """Adds a release; its folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with locked(self.folder):
            sweep(self.folder)
            return write_bundle(self.folder, files)

    def promote(self, name: str) -> dict:
        """Makes a release the current one; ReleaseError unless it is whole and a CANDIDATE, whose parent is the current
        one (or that has none, where nothing is current)."""
        path = self.path(name)
        with locked(self.folder):
            return self._promote(path)

    def _promote(self, path) -> dict:
        files = verify_files(path)
        state = state_of(files)
        if state.name != CANDIDATE:
            raise ReleaseError(f"release {path.name} is {state.name}: expected {CANDIDATE}; missing: "
                               f"{'; '.join(state.missing)}")
        parent, now = record(files, "manifest/release.json")["parent"], self.current()
        if now is not None and now["digest"] != bundle_digest(path) and (parent or {}).get("digest") != now["digest"]:
            raise ReleaseError(f"release {path.name} has the parent {(parent or {}).get('digest')}: expected the "
                               f"current {now['digest']}: release it again")
        return self._point(path, "promotion", None)

    def rollback(self, name: str | None = None) -> dict:
        """Goes back to a whole known-good release: by default the rollback target of the current one.

        Refused: no current release, a target that is missing, was changed, is no CANDIDATE, or was never current.
        Afterwards current.json holds the target with the namespaces to keep and to drop; the serial rises, because this
        is a step forward to a complete identity, not old weights under a new name.
        """
        now = self.current()
        if now is None:
            raise ReleaseError(f"{self.folder}: no release is current: nothing to go back from")
        with locked(self.folder):
            return self._roll_back(self.current(), name)

    def _roll_back(self, now, name) -> dict:
        leaving = verify_files(self.path(now["digest"]))
        target = name or record(leaving, "lifecycle/rollback.json")["target"]
        if target is None:
            raise ReleaseError(f"release {now['release']} has no rollback target: it is the first one")
        path = self.path(target)
        files = verify_files(path)
        state = state_of(files)
        if state.name != CANDIDATE:
            raise ReleaseError(f"release {path.name} is {state.name}: only a {CANDIDATE} is a known-good one")
        if path.name not in [step["release"] for step in now["history"]]:
            raise ReleaseError(f"release {path.name} was never current: expected one of "
                               f"{', '.join(dict.fromkeys(step['release'] for step in now['history']))}")
        plan = compatibility(tuple_of(leaving), tuple_of(files))
        return self._point(path, "rollback", plan)

    def _point(self, path, why, plan) -> dict:
        """Replaces current.json; for the holder of the lock."""
        before = self.current()
        history = [] if before is None else before["history"]
        if before is not None and before["release"] == path.name:
            return before
        step = {"serial": len(history) + 1, "release": path.name, "why": why}
        found = {"release": path.name, "digest": bundle_digest(path), "serial": step["serial"],
                 "history": [*history, step], "plan": plan}
        write_atomic(self.folder / CURRENT, json_bytes(found))
        return found

    def current_path(self) -> Path:
        """Folder of the current release, whole; ReleaseError where there is none or it was changed."""
        now = self.current()
        if now is None:
            raise ReleaseError(f"{self.folder}: no release is current: promote one first")
        path = self.path(now["digest"])
        verify_files(path)
        return path


def tuple_of(files) -> SemanticTuple:
    """The semantic tuple that a release's manifest states."""
    stated = record(files, "manifest/release.json")["tuple"]
    return SemanticTuple(stated["kind"], stated["parts"])


def admit_restored(running: SemanticTuple, target: SemanticTuple) -> None:
    """ReleaseError unless everything that runs is the target's: old weights beside a new label map, readout,
    calibrator or runtime are named part by part."""
    wrong = changed_parts(target, running) if running.kind == target.kind else list(PARTS)
    if wrong:
        raise ReleaseError(f"rollback is incomplete: {', '.join(wrong)} of the running system differ from the "
                           "known-good release")


def admit_caches(caches, target: SemanticTuple) -> None:
    """ReleaseError unless every cache that stays in use (state → namespace) is under the target's namespace."""
    spaces = target.namespaces()
    for state, namespace in sorted(caches.items()):
        if spaces.get(state) != namespace:
            raise ReleaseError(f"{state} under {namespace}: expected the known-good release's {spaces.get(state)}, or "
                               "an empty cache")
