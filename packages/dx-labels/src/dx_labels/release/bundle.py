"""A release as a folder of plain files with one digest: written whole or not at all, checked with nothing but itself.

    SHA256SUMS           digest and path of every other file, sorted by path (sha256sum -c reads it)
    manifest/            release.json splits.json contracts.json licences.json  artifact/ (the model's files)
    evaluation/          cases.jsonl plan.json result.json (parent_cases.jsonl and paired.json with a parent)
    implementation/      sources.json oracles.json
    lifecycle/           compatibility.json rollback.json handoff.json (migration.json with a parent)

The release's digest is the SHA-256 of SHA256SUMS; its folder is named by the first 16 digits.
"""
import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
from pathlib import Path

from ..below import StrictJSONError, parse_json
from .graph import ReleaseError

SUMS = "SHA256SUMS"
FOLDERS = ("manifest", "evaluation", "implementation", "lifecycle")
_LINE = re.compile(r"([0-9a-f]{64})  ([^\0\n]+)\Z")
_TEMPORARY = ".new-"


def json_bytes(value) -> bytes:
    """A record as its file has it: sorted keys, one space of indentation, UTF-8, a line feed at the end."""
    return (json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n").encode()


def jsonl_bytes(values) -> bytes:
    """One record a line."""
    lines = [json.dumps(v, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n" for v in values]
    return "".join(lines).encode()


def _safe(path: str) -> str:
    """The path of a bundle's file; ReleaseError for one that leaves the bundle or is not in one of its folders."""
    parts = path.split("/")
    if parts[0] not in FOLDERS or len(parts) < 2 or any(p in ("", ".", "..") or "\\" in p for p in parts):
        raise ReleaseError(f"file {path!r}: expected a path inside {', '.join(FOLDERS)}")
    return path


def sums_of(files) -> bytes:
    """SHA256SUMS of files (path → bytes)."""
    lines = [f"{hashlib.sha256(files[path]).hexdigest()}  {_safe(path)}\n" for path in sorted(files)]
    return "".join(lines).encode()


def bundle_digest(folder) -> str:
    """SHA-256 (hex) of the bundle's SHA256SUMS: the release's one digest. `verify_files` says whether it is true."""
    path = Path(folder, SUMS)
    if not path.is_file():
        raise ReleaseError(f"{folder}: no release: there is no {SUMS}")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _write_durable(path: Path, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder) -> None:
    """Makes names in a folder durable, where the system can open folders."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def sweep(store) -> None:
    """Removes what writers that were killed left behind. For the holder of the store's lock."""
    for path in sorted(Path(store).iterdir()):
        if path.name.startswith(_TEMPORARY):
            shutil.rmtree(path, ignore_errors=True)


def write_bundle(store, files) -> Path:
    """Writes a bundle into a folder of releases; its path.

    A new folder is filled, made durable and renamed into place: a kill at any moment leaves either no trace that counts
    or the whole release, and never touches another one. The same files give the same folder, and nothing is written
    twice.
    """
    sums, store = sums_of(files), Path(store)
    final = store / hashlib.sha256(sums).hexdigest()[:16]
    if final.exists():
        verify_files(final)
        return final
    new = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=store))
    try:
        folders = sorted({str(Path(path).parent) for path in files} | set(FOLDERS), key=lambda name: (len(name), name))
        for name in folders:
            (new / name).mkdir(parents=True, exist_ok=True)
        for path in sorted(files):
            _write_durable(new / path, files[path])
        _write_durable(new / SUMS, sums)
        for name in reversed(folders):
            sync_folder(new / name)
        sync_folder(new)
        os.chmod(new, 0o755)  # mkdtemp's folder is for its owner alone
        os.rename(new, final)
        sync_folder(store)
    except Exception:
        with contextlib.suppress(OSError):
            shutil.rmtree(new)
        raise
    return final


def listed(folder) -> dict:
    """path → digest, as SHA256SUMS says; ReleaseError where it breaks its form."""
    data = Path(folder, SUMS)
    if not data.is_file():
        raise ReleaseError(f"{folder}: no release: there is no {SUMS}")
    try:
        text = data.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise ReleaseError(f"{data}: not UTF-8") from None
    if not text.endswith("\n"):
        raise ReleaseError(f"{data}: the last line is cut off")
    found = {}
    for number, line in enumerate(text[:-1].split("\n"), 1):
        match = _LINE.match(line)
        if not match:
            raise ReleaseError(f"{data}:{number}: expected 64 hexadecimal digits, two spaces and a path")
        found[_safe(match[2])] = match[1]
        if list(found)[-1] != match[2] or len(found) != number:
            raise ReleaseError(f"{data}:{number}: {match[2]!r} stands twice")
    if list(found) != sorted(found):
        raise ReleaseError(f"{data}: the paths are not sorted")
    return found


def verify_files(folder) -> dict:
    """path → bytes of a bundle whose files are exactly those of SHA256SUMS; else ReleaseError names the file."""
    folder, wanted = Path(folder), listed(folder)
    there = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            raise ReleaseError(f"{folder}: {name} is no plain file")
        if path.is_file() and name != SUMS:
            there.append(name)
    for name in there:
        if name not in wanted:
            raise ReleaseError(f"{folder}: {name} is not in {SUMS}")
    files = {}
    for name, digest in wanted.items():
        if name not in there:
            raise ReleaseError(f"{folder}: {name} is missing")
        files[name] = (folder / name).read_bytes()
        found = hashlib.sha256(files[name]).hexdigest()
        if found != digest:
            raise ReleaseError(f"{folder}: {name} has the digest {found}: expected {digest}")
    return files


def record(files, path: str):
    """The JSON of a bundle's file; ReleaseError where it is missing or no JSON."""
    if path not in files:
        raise ReleaseError(f"{path} is missing")
    try:
        return parse_json(files[path].decode("utf-8"))
    except (UnicodeDecodeError, StrictJSONError) as error:
        raise ReleaseError(f"{path}: {error}") from None


def records(files, path: str) -> list:
    """The values of a JSON-lines file of a bundle."""
    if path not in files:
        raise ReleaseError(f"{path} is missing")
    try:
        return [parse_json(line) for line in files[path].decode("utf-8").splitlines()]
    except (UnicodeDecodeError, StrictJSONError) as error:
        raise ReleaseError(f"{path}: {error}") from None
