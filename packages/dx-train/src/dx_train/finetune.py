"""FineTune: the plain interface of training."""
import contextlib
import signal
import sys
import threading
from pathlib import Path

from .below import Losses
from .checkpoint import CheckpointError
from .coupled import Coupling
from .run import Run, TrainResult
from .runlog import locked, remove_run
from .settings import TrainSettings
from .task import Task
from .trainable import MODULE_MODES, check_reached, named_set, scaled_set, trainable_set


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a run, after its checkpoint was written; the message says how to go on."""


class FineTune:
    """Fine-tunes models under fixed settings.

    Parameters
    ----------
    settings : TrainSettings
    scales : tensor name → learning-rate scale, an explicit allowlist of what is trained; None: the seed's rules
        (docs/training.md "What is trained")
    frozen_rows : tensor name → rows that stay as they are
    contract : what the caller states of the trainable set, `TrainableSet.to_json()` or some of its entries, as in a
        run.json; a run with another set is refused before its first step
    coupling : Coupling, a loss over the whole batch in place of the settings' loss terms; it needs scales. With it any
        model can be trained: made from parameters (`type(model)(parameters)`) with a config that has `to_json()`,
        `specs`, `copy()`, `digest()`; with `repack()`, `save_pretrained(folder)`; on examples as `Example` says.
    task : Task, for such a model with a loss of each example by itself (`image_classification()`). scales None: those
        of the task; where it has none every tensor, heads at 1 and the rest at settings.backbone_scale
    """

    def __init__(self, settings: TrainSettings, *, scales=None, frozen_rows=None, contract: dict | None = None,
                 coupling: Coupling | None = None, task: Task | None = None):
        if coupling is not None and task is not None:
            raise ValueError("coupling and task are both given: expected one of them")
        if coupling is not None and scales is None:
            raise ValueError("coupling needs scales: a coupled loss does not say which tensors it reaches")
        self.settings, self.coupling, self.task = settings, coupling, task
        self.scales, self.frozen_rows, self.contract = scales, frozen_rows, contract

    @contextlib.contextmanager
    def start(self, model, examples, *, development=None, digests=None, folder=None, fresh=False, tell=None):
        """A Run to iterate over, as a context manager; arguments as `run`.

            with FineTune(settings).start(model, examples, folder="out") as run:
                for record in run:
                    ...
                result = run.finish()
        """
        losses, trainable = self._plan(model)
        with contextlib.ExitStack() as stack:
            if folder is not None:
                try:
                    Path(folder).mkdir(parents=True, exist_ok=True)
                    stack.enter_context(locked(folder))
                    if fresh:
                        remove_run(folder)
                except OSError as error:
                    raise CheckpointError(f"{folder} cannot be written to: {error.strerror or error}") from error
            run = Run(self.settings, model, examples, trainable, losses, development=development, digests=digests,
                      folder=folder, tell=tell)
            stack.callback(run.close)
            yield run

    def _plan(self, model):
        """(what is computed, what it may change), checked against the contract."""
        parameters, modes = model.parameters, getattr(model, "modes", MODULE_MODES)
        losses = self.coupling or self.task
        if losses is None:
            active = self.settings.active_losses()
            losses = Losses(model.config, active, self.settings.field_weight)
        if self.task is not None and self.task.scales is not None:
            known = self.task.scales(parameters, self.settings.backbone_scale)
            scales = known if self.scales is None else self.scales
            for name in scales:
                if name not in known:
                    raise ValueError(f"trainable tensor {name!r}: the task gives no gradient of it")
            trainable = named_set(parameters, scales, self.frozen_rows, modes)
        elif self.scales is None and self.task is not None:
            trainable = scaled_set(parameters, self.settings.backbone_scale, self.frozen_rows, modes)
        elif self.scales is None:
            trainable = trainable_set(parameters, active, self.settings.backbone_scale, self.frozen_rows)
        else:
            trainable = named_set(parameters, self.scales, self.frozen_rows, modes)
            if self.coupling is None and self.task is None:
                check_reached(trainable, parameters, active)
        if self.contract is not None:
            trainable.require(self.contract)
        return losses, trainable

    def run(self, model, examples, *, development=None, digests=None, folder=None, fresh=False, progress=None,
            tell=None) -> TrainResult:
        """Trains to the end and gives the result; the model passed stays as it is.

        Parameters
        ----------
        model : to start from, a DocExtract or what `coupling` says
        examples : Examples with distinct ids, in an order that is the same every time
        development : callable taking a model and giving a score (higher is better); early stopping, best weights
        digests : name → digest of what else the run depends on (label files, the development part); a checkpoint is
            continued under the same ones only
        folder : where checkpoints, log and model go; a run found there is continued; None: nothing is written
        fresh : a run found there is thrown away, not continued
        progress : whether to show progress; None: when stderr is a terminal
        tell : takes each message for the user; None: they go to stderr

        Raises
        ------
        ContractError : the trainable set is not the one that was stated · ValueError : an example or a trainable tensor
        that does not fit, or that no active loss reaches · TrainingError : a loss or gradient that is not finite ·
        CheckpointError : a checkpoint that cannot be written or belongs to another run · FolderInUse : another run
        works in the folder · Interrupted : Ctrl-C, after the checkpoint is written
        """
        with self.start(model, examples, development=development, digests=digests, folder=folder, fresh=fresh,
                        tell=tell) as run:
            with _Interrupt() as interrupt, _bar(run, progress) as bar:
                while not run.done:
                    record = run.advance()
                    bar.set_postfix_str(f"loss {record.loss:.4f}", refresh=False)
                    bar.update()
                    if interrupt.asked and not run.done:
                        raise Interrupted(_stop(run))
            return run.finish()


def _stop(run: Run) -> str:
    if run.folder is None:
        return f"interrupted after step {run.step} of {run.total}; without a folder nothing was kept"
    run.save()
    return (f"interrupted after step {run.step} of {run.total}; everything is in {run.folder}: start the same run "
            "again to continue")


def _bar(run: Run, progress):
    from tqdm import tqdm

    hidden = (not sys.stderr.isatty()) if progress is None else not progress
    return tqdm(total=run.total, initial=run.step, unit="step", disable=hidden, file=sys.stderr)


class _Interrupt:
    """Turns the first Ctrl-C into a wish to stop after the step in progress; the second one stops at once."""

    def __init__(self):
        self.asked, self._before = False, None

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._ask)
        return self

    def _ask(self, number, frame):
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def __exit__(self, *_):
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
