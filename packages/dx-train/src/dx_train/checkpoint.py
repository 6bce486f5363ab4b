"""Checkpoints: everything a run needs to go on as if it had never stopped, written whole or not at all."""
import contextlib
import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .below import ModelFileError, canonical_bytes, read_container, write_container

KIND = "docextract-checkpoint"
FORMAT = 1
KEPT = 2  # the newest and the one before it
NAME = re.compile(r"checkpoint-(\d{9})\.safetensors")
LEFTOVER = re.compile(r"\.(checkpoint-\d{9}\.safetensors|model\.safetensors|run\.json|log\.jsonl)\..*\.tmp")


class CheckpointError(RuntimeError):
    """A checkpoint that cannot be written, or that belongs to another run."""


@dataclass
class Checkpoint:
    """step : optimizer steps done · parts : the fingerprint's named digests · state : everything but arrays, as JSON ·
    tensors : name → float32 array"""

    step: int
    parts: dict[str, str]
    state: dict
    tensors: dict[str, np.ndarray]


def fingerprint(parts: dict[str, str]) -> str:
    """SHA-256 (hex) of the canonical JSON of named digests."""
    return hashlib.sha256(canonical_bytes(parts)).hexdigest()


def differences(ours: dict[str, str], theirs: dict[str, str]) -> list[str]:
    """Names of the parts that differ, are missing or are new, sorted."""
    return [name for name in sorted({**ours, **theirs}) if ours.get(name) != theirs.get(name)]


def _seal(config: dict, tensors: dict) -> str:
    """SHA-256 over everything in a checkpoint, so that a damaged one is known as such."""
    h = hashlib.sha256(canonical_bytes(config))
    for name, array in tensors.items():
        h.update(f"\n{name} {'x'.join(map(str, array.shape))}\n".encode())
        h.update(np.ascontiguousarray(array, "<f4").tobytes())
    return h.hexdigest()


def checkpoint_files(folder) -> list[Path]:
    """The folder's checkpoints, newest step first."""
    found = [name for name in sorted(os.listdir(folder)) if NAME.fullmatch(name)]
    return [Path(folder) / name for name in reversed(found)]


def write_checkpoint(folder, checkpoint: Checkpoint) -> Path:
    """Writes checkpoint-<step>.safetensors (beside, fsync, rename, fsync of the folder), then removes all but the two
    newest. CheckpointError: the disk is full, the folder read-only, …; what was there stays."""
    path = Path(folder) / f"checkpoint-{checkpoint.step:09d}.safetensors"
    config = {"format": FORMAT, "step": checkpoint.step, "parts": checkpoint.parts,
              "fingerprint": fingerprint(checkpoint.parts), "state": checkpoint.state}
    try:
        write_container(path, KIND, {**config, "seal": _seal(config, checkpoint.tensors)}, checkpoint.tensors)
    except OSError as error:
        kept = [file.name for file in _listed(folder)]
        there = f"the last good one is {kept[0]}" if kept else "there is no earlier one"
        raise CheckpointError(f"the checkpoint of step {checkpoint.step} could not be written to {folder}: "
                              f"{error.strerror or error}; {there}") from error
    for old in checkpoint_files(folder)[KEPT:]:
        with contextlib.suppress(OSError):
            old.unlink()
    return path


def _listed(folder):
    with contextlib.suppress(OSError):
        return checkpoint_files(folder)
    return []


def remove_leftovers(folder) -> None:
    """Removes temporary files of writes that were killed."""
    for name in sorted(os.listdir(folder)):
        if LEFTOVER.fullmatch(name):
            with contextlib.suppress(OSError):
                (Path(folder) / name).unlink()


def read_checkpoint(path) -> Checkpoint:
    """A checkpoint from its file; ModelFileError when it is damaged, OSError when it cannot be read."""
    config, tensors = read_container(path, KIND)
    seal = config.pop("seal", None)
    if config.get("format") != FORMAT:
        raise ModelFileError(f"{path}: checkpoint format {config.get('format')!r}: this version reads {FORMAT}")
    if seal != _seal(config, tensors):
        raise ModelFileError(f"{path}: damaged: its contents do not have the digest it was sealed with")
    return Checkpoint(config["step"], config["parts"], config["state"], tensors)


def latest_checkpoint(folder, parts: dict[str, str], tell=None) -> Checkpoint | None:
    """The newest checkpoint that is whole; None when there is none at all.

    A damaged one is passed over with a message. CheckpointError: the newest whole one belongs to another run (it says
    which parts differ), or every checkpoint is damaged."""
    files, damage = checkpoint_files(folder), []
    for path in files:
        try:
            found = read_checkpoint(path)
        except (ModelFileError, OSError) as error:
            damage.append(str(error))
            if tell is not None:
                tell(f"{path.name} is not usable, taking the one before it ({error})")
            continue
        different = differences(parts, found.parts)
        if different:
            raise CheckpointError(f"{path} belongs to another run: its {', '.join(different)} "
                                  f"{'differs' if len(different) == 1 else 'differ'}; use another folder, the inputs "
                                  "it was started with, or throw it away (fresh)")
        return found
    if files:
        raise CheckpointError(f"no checkpoint in {folder} is usable: " + "; ".join(damage))
    return None
