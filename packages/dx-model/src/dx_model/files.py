"""Files that are replaced whole or not at all: write beside, fsync, rename, fsync of the folder."""
import contextlib
import os
import tempfile
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Makes a rename in the folder durable (where the system can open folders)."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def replace_file(path):
    """A file opened for writing bytes that replaces `path` when the block ends. A crash leaves the old file or the new
    one, never a mixture; on any error in the block the old file stays and the new one is removed. Raises OSError."""
    path = Path(path)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    sync_folder(path.parent)


def write_atomic(path, data: bytes) -> None:
    """Replaces the file `path` by `data`, as replace_file."""
    with replace_file(path) as file:
        file.write(data)
