"""What a run leaves beside its checkpoints: the lock, and the log with one JSON object a line."""
import contextlib
import json
import os
from pathlib import Path

from .below import write_atomic
from .checkpoint import checkpoint_files

LOCK, LOG, MODEL_FILE, CONTRACT_FILE = "lock", "log.jsonl", "model.safetensors", "run.json"


class FolderInUse(RuntimeError):
    """Another run works in the folder."""


@contextlib.contextmanager
def locked(folder):
    """Holds the folder for one run (flock: the system lets go of it when the process ends, however it ends)."""
    import fcntl
    path = Path(folder) / LOCK
    with open(path, "a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FolderInUse(f"{folder} is in use by another run") from None
        yield


def remove_run(folder) -> None:
    """Removes what a run left in its folder, which the caller has locked: checkpoints, log, contract and model."""
    for path in [*checkpoint_files(folder), *(Path(folder) / name for name in (LOG, CONTRACT_FILE, MODEL_FILE))]:
        path.unlink(missing_ok=True)


class Log:
    """The step log of a run, or nothing when there is no folder."""

    def __init__(self, folder, step: int):
        """Opens it so that it ends with step `step` (steps done): what a killed run wrote beyond its last checkpoint,
        or cut short, goes."""
        self._file = None
        if folder is None:
            return
        path = Path(folder) / LOG
        if path.exists():
            whole = path.read_bytes()
            kept = [line for line in whole.splitlines(keepends=True) if _done(line, step)]
            if b"".join(kept) != whole:
                write_atomic(path, b"".join(kept))
        self._file = open(path, "a", encoding="utf-8", newline="\n")

    def write(self, entry: dict) -> None:
        """Appends one object; numbers that JSON has not (a norm of infinity) become strings."""
        if self._file is not None:
            self._file.write(json.dumps(entry, allow_nan=False) + "\n")
            self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _done(line: bytes, step: int) -> bool:
    if not line.endswith(b"\n"):
        return False
    try:
        return json.loads(line)["step"] <= step
    except (ValueError, KeyError, TypeError):
        return False


def read_log(folder) -> list[dict]:
    """The log's entries."""
    with open(os.path.join(folder, LOG), encoding="utf-8") as file:
        return [json.loads(line) for line in file]
