"""A training run: one transaction a step, resumable to the byte."""
import dataclasses
import hashlib
import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .below import NUMERICS_VERSION, Losses, Parameters, canonical_bytes, ieee_mode, write_atomic
from .checkpoint import (Checkpoint, CheckpointError, fingerprint, latest_checkpoint,
                         remove_leftovers, write_checkpoint)
from .coupled import CoupledGradients, Coupling
from .early import EarlyStop
from .examples import TrainingError, examples_digest
from .gradients import BatchGradients
from .optimizer import SGD, AdamW, MovingAverage
from .runlog import CONTRACT_FILE, MODEL_FILE, Log
from .schedule import learning_rate
from .stream import ExampleStream
from .task import Task
from .trainable import MODULE_MODES, TrainableSet



def say(text: str) -> None:
    """A message to the user, on stderr."""
    print(text, file=sys.stderr, flush=True)


@dataclass
class StepRecord:
    """What happened in one step. step counts the steps done, so the first is 1; losses are means over the batch."""

    step: int
    epoch: int
    rate: float
    norm: float
    loss: float
    terms: dict[str, float]
    words: int
    seconds: float
    score: float | None = None
    digest: str | None = None

    def to_json(self) -> dict:
        entry = {"step": self.step, "epoch": self.epoch, "rate": self.rate, "norm": self.norm, "loss": self.loss,
                 **self.terms, "words": self.words, "words_per_second": round(self.words / max(self.seconds, 1e-9), 1)}
        for name in ("score", "digest"):
            if getattr(self, name) is not None:
                entry[name] = getattr(self, name)
        return entry


@dataclass
class TrainResult:
    """parameters : the weights to use, the best ones where there was a development part, otherwise the last (or their
    moving average) · step : steps done · best_step, best_score : of the development part, or None · model_file,
    digest : the file written and its SHA-256, None without a folder"""

    parameters: Parameters
    step: int
    best_step: int | None
    best_score: float | None
    model_file: Path | None
    digest: str | None


def json_digest(value) -> str:
    """SHA-256 (hex) of a value's canonical JSON."""
    return hashlib.sha256(canonical_bytes(value)).hexdigest()


class Run:
    """The state of one run and its steps; made by FineTune.start.

    Iterating does one step a turn and yields its StepRecord, until the last step or an early stop. Between turns the
    state is whole: `save()` writes a checkpoint, `finish()` gives the result.
    """

    def __init__(self, settings, model, examples, trainable: TrainableSet, losses: Losses | Coupling | Task, *,
                 development=None, digests=None, folder=None, tell=None):
        self.settings, self.examples, self.trainable = settings, list(examples), trainable
        self.folder = None if folder is None else Path(folder)
        self.total = settings.total_steps(len(self.examples))
        self.parameters = model.parameters.copy()
        self._check_inputs()
        self.parts = self._parts(digests, development, losses)
        self._make, self.step = type(model), 0
        self.model = self._make(self.parameters)
        self.gradients = self._batches(losses)
        self.optimizer = SGD(self.parameters, trainable) if settings.optimizer == "sgd" else AdamW(
            self.parameters, trainable, beta1=settings.beta1, beta2=settings.beta2, eps=settings.eps,
            weight_decay=settings.weight_decay)
        self.average = MovingAverage(self.parameters, trainable, settings.ema_decay) if settings.ema_decay else None
        self.early = EarlyStop(development, self._make, settings.evaluation_interval(len(self.examples)),
                               settings.patience)
        self.stream = ExampleStream(len(self.examples), settings.batch, settings.seed)
        self._tell, self._whole, self._saved_step = tell or say, True, None
        if self.folder is not None:
            self._resume()
        self.log = Log(self.folder, self.step)

    # --- start -------------------------------------------------------------------------------------------------------

    def _batches(self, losses):
        """What computes the gradient of a batch."""
        if isinstance(losses, Coupling):
            return CoupledGradients(losses.passes(self.model), losses.loss, losses.keep)
        if isinstance(losses, Task):
            return BatchGradients(self.model, losses.loss, passes=losses.passes(self.model))
        return BatchGradients(self.model, losses, self.trainable.reaches_backbone)

    def _check_inputs(self):
        seen = set()
        for example in self.examples:
            if example.id in seen:
                raise ValueError(f"two examples have the id {example.id!r}")
            seen.add(example.id)
            example.check(self.parameters.config)
        for name, array in self.parameters.items():
            if not np.isfinite(array).all():
                raise ValueError(f"the starting model's tensor {name} holds a value that is not finite")
        if "char_emb.weight" in self.parameters and self.parameters["char_emb.weight"][0].any():
            raise ValueError("row 0 of the starting model's char_emb.weight is padding: expected zeros")

    def _parts(self, digests, development, losses) -> dict[str, str]:
        """The named digests that tie a checkpoint to its run."""
        config, trained = self.parameters.config, self.trainable.to_json()
        del trained["frozen_digest"]  # the starting model's
        parts = {"numerics version": str(NUMERICS_VERSION), "starting model": self.parameters.digest(),
                 "schema": json_digest(config.to_json()),
                 "settings": json_digest(self.settings.bits()), "trainable set": json_digest(trained),
                 "examples": examples_digest(self.examples),
                 "development part": "none" if development is None else "there"}
        if isinstance(losses, (Coupling, Task)):
            parts["loss"] = json_digest(losses.loss.settings())
        for name, digest in (digests or {}).items():
            if name in parts:
                raise ValueError(f"digests names {name!r}, which the run has itself")
            parts[name] = str(digest)
        return parts

    def _resume(self):
        remove_leftovers(self.folder)
        found = latest_checkpoint(self.folder, self.parts, self._tell)
        if found is not None:
            self._restore(found)
            self._tell(f"continuing at step {self.step} of {self.total}")
        contract = {"fingerprint": fingerprint(self.parts), "parts": self.parts, "steps": self.total,
                    "settings": dataclasses.asdict(self.settings), "contract": self.trainable.to_json()}
        try:
            write_atomic(self.folder / CONTRACT_FILE, canonical_bytes(contract) + b"\n")
        except OSError as error:
            raise CheckpointError(f"{self.folder} cannot be written to: {error.strerror or error}") from error

    # --- state -------------------------------------------------------------------------------------------------------

    def _arrays(self) -> dict[str, np.ndarray]:
        """name → array of everything that moves, as views: weights, moments, average, best weights."""
        arrays = {}
        for i, (name, weights) in enumerate(zip(self.optimizer.names, self.optimizer.weights, strict=True)):
            arrays[f"weight/{i}/{name}"] = weights
            for kind, moments in self.optimizer.moments.items():
                arrays[f"{kind}/{i}/{name}"] = moments[i]
        for kind, parameters in (("average", self.average and self.average.parameters), ("best", self.early.best)):
            if parameters is not None:
                for i, part in enumerate(self.trainable.parts(parameters)):
                    arrays[f"{kind}/{i}/{self.optimizer.names[i]}"] = part
        return arrays

    def checkpoint(self) -> Checkpoint:
        """The whole state after the last finished step."""
        if not self._whole:
            raise CheckpointError("the run was interrupted inside an update: continue from its last checkpoint")
        state = {"position": self.step * self.settings.batch, "early": self.early.state()}
        return Checkpoint(self.step, self.parts, state, self._arrays())

    def save(self) -> Path:
        """Writes a checkpoint into the run's folder. CheckpointError; TrainingError when a weight is not finite."""
        if self.folder is None:
            raise ValueError("the run has no folder to save into")
        self._check_weights()
        path = write_checkpoint(self.folder, self.checkpoint())
        self._saved_step = self.step
        return path

    def _check_weights(self):
        for name, array in self._arrays().items():
            if not np.isfinite(array).all():
                kind, _, tensor = name.split("/", 2)
                raise TrainingError(f"after step {self.step} the {kind} of tensor {tensor} holds a value that is not "
                                    f"finite; nothing was written")

    def _restore(self, found: Checkpoint):
        self.early.restore(found.state["early"], self.parameters)
        arrays = self._arrays()
        if set(arrays) != set(found.tensors) or found.state["position"] != found.step * self.settings.batch:
            raise CheckpointError(f"the checkpoint of step {found.step} does not hold what this run has")
        for name, array in arrays.items():
            array[...] = found.tensors[name].reshape(array.shape)
        self.step = self._saved_step = found.step
        self.model.repack()

    # --- steps -------------------------------------------------------------------------------------------------------

    @property
    def done(self) -> bool:
        """Whether no step is left."""
        return self.step >= self.total or self.early.stopped

    def __iter__(self):
        while not self.done:
            yield self.advance()

    def _prepare(self, item):
        epoch, index = item
        return self.examples[index].at(epoch, self.settings, self.parameters.config)

    @ieee_mode()
    def advance(self) -> StepRecord:
        """One step: gradients, check, clip, optimizer, average; then the evaluation and the log where they are due."""
        if self.done:
            raise ValueError(f"the run is over after {self.step} steps")
        if not self._whole:
            raise TrainingError("the run was interrupted inside an update: continue from its last checkpoint")
        s, began = self.settings, time.perf_counter()
        items = self.stream.step(self.step)
        rate = learning_rate(self.step, self.total, s.learning_rate, s.warmup, s.final_rate)
        batch = self.gradients.run(items, self._prepare)
        try:
            norm = self.optimizer.clip(self.gradients.total, s.clip_norm)
        except FloatingPointError as error:
            fault = self.gradients.find_fault(items, self.trainable.names, self._prepare)
            raise TrainingError(f"step {self.step + 1}: " + (
                f"example {fault[0]}: the gradient of tensor {fault[1]} is not finite" if fault else
                f"the sum of the examples' gradients overflows ({error})")) from None
        self._whole = False
        self.optimizer.step(self.step + 1, rate, self.gradients.total)
        self.model.repack()
        if self.average is not None:
            self.average.step(self.step + 1)
        self.step += 1
        self._whole = True
        record = StepRecord(self.step, items[0][0], rate, norm, batch.loss, batch.terms, batch.words,
                            time.perf_counter() - began)
        if self.early.due(self.step, self.total):
            record.score = self.early.evaluate(self.step, self._current())
        if s.digest_every and self.step % s.digest_every == 0:
            record.digest = self.parameters.digest()
        self.log.write(record.to_json())
        if self.folder is not None and s.checkpoint_every and self.step % s.checkpoint_every == 0 and not self.done:
            self.save()
        return record

    def _current(self) -> Parameters:
        return self.parameters if self.average is None else self.average.parameters

    # --- end ---------------------------------------------------------------------------------------------------------

    def finish(self) -> TrainResult:
        """Checks the contract of frozen values; writes the last checkpoint and the model file; the result."""
        self.trainable.verify(self.parameters, getattr(self.model, "modes", MODULE_MODES))
        chosen = self.early.best if self.early.best is not None else self._current()
        self.trainable.verify(chosen)
        self._check_weights()
        path = digest = None
        if self.folder is not None:
            if self._saved_step != self.step:
                self.save()
            path = self.folder / MODEL_FILE
            try:
                digest = self._make(chosen).save_pretrained(self.folder)
            except OSError as error:
                raise CheckpointError(f"the model could not be written to {path}: {error.strerror or error}; the run's "
                                      "checkpoints are intact") from error
        best = self.early
        score = None if best.best_score is None or not math.isfinite(best.best_score) else best.best_score
        return TrainResult(chosen, self.step, best.best_step, score, path, digest)

    def close(self) -> None:
        """Ends threads and closes the log."""
        self.gradients.close()
        self.log.close()
