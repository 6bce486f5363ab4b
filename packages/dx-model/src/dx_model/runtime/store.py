"""Reusable state on disk, content-addressed: entries (a key → a digest) and objects (a digest → bytes).

    <folder>/<layer>/<2 digits>/<key>.json          entry: canonical JSON {"key", "layer", "object", "release"}
    <folder>/objects/<2 digits>/<digest>            object: its SHA-256 is its name
    <folder>/locks/…                                empty files for flock, which ends with its process

Every file is written beside and renamed, the object before its entry, so a killed process leaves whole files and at
most an object without an entry or a temporary file, which `prune` takes away. Nothing waits for the disk: what a power
failure tears is found as any damage is, because what is read is checked, the entry against its key, the object against
its name; what does not hold is named, and computed again.
"""
import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .. import strict_json
from ..canonical_json import canonical
from ..readout.errors import require
from .arrays import arrays_from_bytes, arrays_to_bytes
from .keys import LAYERS

HEX = frozenset("0123456789abcdef")


def _replace(path: Path, data: bytes) -> None:
    """The file, whole or not at all for every reader; unlike a release's files it need not outlive a power failure."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


@dataclass(frozen=True)
class Corrupt:
    """A file of the store that did not hold what it should: path within the store, and why."""

    path: str
    reason: str


class StateStore:
    """A folder of reusable state, shared by any number of threads and processes.

    folder : made when it is not there
    report : called with each `Corrupt` as it is found; `corrupt` lists them too
    """

    def __init__(self, folder, report: Callable[[Corrupt], None] | None = None):
        self.folder, self.corrupt, self._report = Path(folder), [], report
        for name in (*LAYERS, "objects", "locks"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)

    # --- paths and locks ---------------------------------------------------------------------------------------------

    def _entry(self, layer, key):
        require(layer in LAYERS, "cache.layer", layer, ", ".join(LAYERS))
        require(isinstance(key, str) and len(key) == 64 and set(key) <= HEX, "cache.key", key,
                "64 lower-case hexadecimal digits")
        return self.folder / layer / key[:2] / f"{key}.json"

    def _object(self, digest):
        return self.folder / "objects" / digest[:2] / digest

    @contextlib.contextmanager
    def _lock(self, name, shared=False):
        """flock on a file of its own: gone with the process, however that ends."""
        import fcntl

        with open(self.folder / "locks" / name, "ab") as file:
            fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
            yield

    def _found_corrupt(self, path, reason):
        found = Corrupt(path.relative_to(self.folder).as_posix(), reason)
        self.corrupt.append(found)
        if self._report is not None:
            self._report(found)

    # --- reading and writing -----------------------------------------------------------------------------------------

    def get(self, layer: str, key: str) -> dict[str, np.ndarray] | None:
        """The arrays under a key, or None: nothing there, or corrupt (named in `corrupt`)."""
        path = self._entry(layer, key)
        with self._lock("all", shared=True):
            return self._read(path, layer, key)

    def _read(self, path, layer, key):
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            entry = strict_json.loads(data.decode("utf-8"))
            digest = entry["object"]
            if entry != {"key": key, "layer": layer, "object": digest, "release": entry["release"]}:
                raise ValueError("it is another key's")
            if not (isinstance(digest, str) and len(digest) == 64 and set(digest) <= HEX):
                raise ValueError("its object is no digest")
        except (ValueError, KeyError, TypeError) as error:
            self._found_corrupt(path, f"not the entry of its key: {error}")
            return None
        return self._read_object(self._object(digest), digest)

    def _read_object(self, path, digest):
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            self._found_corrupt(path, "an entry names it and it is not there")
            return None
        got = hashlib.sha256(data).hexdigest()
        if got != digest:
            self._found_corrupt(path, f"{len(data)} bytes have the SHA-256 {got}")
            return None
        return arrays_from_bytes(data)

    def put(self, layer: str, key: str, release: str, arrays: dict[str, np.ndarray]) -> str:
        """Stores arrays under a key; returns the object's digest. release : digest of the layer's release.

        Writers of one key write the same bytes, since a key covers everything that decides them. Where an intact entry
        says otherwise the key does not, and that is a ReadoutError, never a quiet replacement.
        """
        path, data = self._entry(layer, key), arrays_to_bytes(arrays)
        digest = hashlib.sha256(data).hexdigest()
        with self._lock("all", shared=True):
            before = self._named_object(path, layer, key)
            require(before in (None, digest), f"cache.{layer}[{key}]", digest,
                    f"{before}, which is there: the key leaves out something that decides the result")
            there = self._object(digest)
            there.parent.mkdir(exist_ok=True)
            if not there.exists() or hashlib.sha256(there.read_bytes()).hexdigest() != digest:
                _replace(there, data)
            if before is None:
                path.parent.mkdir(exist_ok=True)
                _replace(path, canonical({"key": key, "layer": layer, "object": digest, "release": release}))
        return digest

    def _named_object(self, path, layer, key):
        """The digest that an intact entry names, or None."""
        try:
            entry = strict_json.loads(path.read_bytes().decode("utf-8"))
            return entry["object"] if (entry["key"], entry["layer"]) == (key, layer) else None
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def get_or_compute(self, layer: str, key: str, release: str, compute: Callable[[], dict[str, np.ndarray]]
                       ) -> dict[str, np.ndarray]:
        """The arrays under a key, computed and stored when they are not there or corrupt; one computation at a time for
        a key. compute may ask for keys of lower layers, not of its own."""
        found = self.get(layer, key)
        if found is not None:
            return found
        with self._lock(f"{layer}-{key[:2]}"):
            found = self.get(layer, key)
            if found is None:
                found = compute()
                self.put(layer, key, release, found)
        return found

    # --- keeping house -----------------------------------------------------------------------------------------------

    def prune(self, releases: Iterable[str]) -> int:
        """Removes entries of other releases, corrupt entries, objects that no entry names, and what crashes left;
        returns how many files. Waits for writers; nobody writes meanwhile."""
        keep, named, removed = frozenset(releases), {}, 0
        with self._lock("all"):
            for layer in LAYERS:
                for path in sorted((self.folder / layer).glob("*/*")):
                    entry = self._kept(path, keep)
                    if entry is None:
                        path.unlink()
                        removed += 1
                    else:
                        named[entry] = True
            for path in sorted((self.folder / "objects").glob("*/*")):
                if path.name not in named:
                    path.unlink()
                    removed += 1
        return removed

    @staticmethod
    def _kept(path, releases):
        """The object of an entry that stays, or None."""
        try:
            entry = strict_json.loads(path.read_bytes().decode("utf-8"))
            fine = entry["key"] == path.stem and path.suffix == ".json" and entry["release"] in releases
            return entry["object"] if fine else None
        except (ValueError, KeyError, TypeError):
            return None

    def size(self) -> int:
        """Bytes of all objects."""
        total = 0
        for path in sorted((self.folder / "objects").glob("*/*")):
            with contextlib.suppress(FileNotFoundError):
                total += os.stat(path).st_size
        return total
