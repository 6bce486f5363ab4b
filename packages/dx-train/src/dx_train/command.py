"""`python -m dx_train`: trains a model from a prepared file. Decides nothing that FineTune does not."""
import argparse
import dataclasses
import json
import sys

from .below import DocExtract, DocExtractConfig, ModelFileError, degree, initial_parameters
from .checkpoint import CheckpointError
from .continuing import continue_parameters
from .curve import loss_curve
from .development import FieldF1
from .examples import TrainingError
from .finetune import FineTune, Interrupted
from .prepared import PreparedError, file_digest, prepared_examples, read_prepared
from .run import say
from .runlog import FolderInUse
from .settings import TrainSettings

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="python -m dx_train", description="Trains a model on a prepared file; the same "
                                "command again continues a run that was stopped.")
    p.add_argument("prepared", help="JSON lines of pages with the places of their values")
    p.add_argument("folder", help="where checkpoints, log and model.safetensors go")
    p.add_argument("--model", help="model file or folder to continue from; without it weights start anew from --seed")
    p.add_argument("--development", metavar="FILE", help="a prepared file that is not trained on: the weights with the "
                   "best F1 of fields there are kept (see --evaluate-every, --patience)")
    p.add_argument("--threads", type=int, default=None, help="threads; never shows in a bit of the result")
    p.add_argument("--model-size", action="append", default=[], metavar="NAME=NUMBER",
                   help="a size of a new model, such as hidden_size=64")
    p.add_argument("--curve", metavar="IMAGE", help="draw the loss curve there afterwards (needs matplotlib)")
    p.add_argument("--fresh", action="store_true", help="throw away an earlier run in the folder")
    p.add_argument("--json", action="store_true", help="the result as one JSON object on stdout")
    p.add_argument("--quiet", action="store_true", help="no progress, no messages")
    for spec in dataclasses.fields(TrainSettings):
        option = "--" + spec.name.replace("_", "-")
        if spec.name == "loss_weights":
            p.add_argument(option, metavar="NAME=WEIGHT,…", help="loss terms, default tag=1,run=1")
        else:
            p.add_argument(option, type=spec.type, default=spec.default, help=f"default {spec.default}")
    return p


def _pairs(text, convert):
    return {name.strip(): convert(value) for name, _, value in (part.partition("=") for part in text.split(","))}


def main(argv=None) -> int:
    """The command; returns the exit code: 0 done, 1 it failed, 2 usage, 130 interrupted."""
    args = parser().parse_args(argv)
    try:
        values = {spec.name: getattr(args, spec.name) for spec in dataclasses.fields(TrainSettings)}
        weights = values.pop("loss_weights")
        settings = TrainSettings(**values, **({"loss_weights": _pairs(weights, float)} if weights else {}))
        sizes = {}
        for part in args.model_size:
            sizes |= _pairs(part, int)
        settings.active_losses()
        if args.threads is not None and args.threads < 1:
            raise ValueError(f"--threads {args.threads}: expected at least 1")
        known = {spec.name for spec in dataclasses.fields(DocExtractConfig) if spec.type is int}
        for name in sizes:
            if name not in known:
                raise ValueError(f"--model-size {name}: expected some of {', '.join(sorted(known))}")
    except ValueError as error:
        print(f"python -m dx_train: {error}", file=sys.stderr)
        return USAGE
    try:
        return _train(args, settings, sizes)
    except Interrupted as stop:
        print(stop, file=sys.stderr)
        return INTERRUPTED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except (TrainingError, CheckpointError, FolderInUse, PreparedError, ModelFileError, ValueError, OSError) as error:
        print(f"python -m dx_train: {error}", file=sys.stderr)
        return FAILED


def _train(args, settings, sizes) -> int:
    head, pages = read_prepared(args.prepared)
    schema = {"fields": tuple(head["fields"]), "repeated": tuple(head["repeated"])}
    if args.model is None:
        model = DocExtract(initial_parameters(DocExtractConfig(**schema, **sizes), settings.seed))
    else:
        source = DocExtract.from_pretrained(args.model)
        config = dataclasses.replace(source.config, **schema)
        model = DocExtract(continue_parameters(source.parameters, config, settings.seed))
    examples = prepared_examples(pages, model.config)

    digests, development = {"prepared file": file_digest(args.prepared)}, None
    if args.development:
        other, held = read_prepared(args.development)
        if other["fields"] != head["fields"]:
            raise PreparedError(f"{args.development}: its fields are {', '.join(other['fields'])}: expected "
                                f"{', '.join(head['fields'])}")
        development = FieldF1(prepared_examples(held, model.config))
        digests["development file"] = file_digest(args.development)

    def run():
        return FineTune(settings).run(model, examples, folder=args.folder, progress=False if args.quiet else None,
                                      development=development, digests=digests, fresh=args.fresh,
                                      tell=(lambda text: None) if args.quiet else say)

    if args.threads is None:
        result = run()
    else:
        with degree(args.threads):
            result = run()
    if args.curve:
        loss_curve(args.folder, args.curve)
    answer = {"model": str(result.model_file), "sha256": result.digest, "steps": result.step, "examples": len(examples),
              "best_step": result.best_step, "best_score": result.best_score}
    best = "" if development is None else f", best F1 {result.best_score:.4f} at step {result.best_step}"
    print(json.dumps(answer) if args.json else f"{answer['model']}\nsha256 {answer['sha256']}, {result.step} steps, "
          f"{len(examples)} examples{best}", flush=True)
    return OK
