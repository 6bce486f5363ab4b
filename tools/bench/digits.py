"""A small vision transformer learns scikit-learn's digits from scratch; a torch twin takes the same starting weights
and batches.

Training 1,078, development 269 (settings were chosen there), held-out 450 images (read once, at the end), 8 x 8 with
patches of 2, and upscaled to 16 x 16 with patches of 4; depth 4, width 48, three heads, 40 epochs of batches of 32.

figures  accuracy_8, accuracy_16 (held-out, AdamW), accuracy_8_sgd (plain descent W - lr G), torch_accuracy_… of the
         twin; first_loss_difference (largest over the first ten steps of the AdamW runs, relative), seconds (training,
         wall, the AdamW run at 8 x 8, one thread)
rows     size, optimizer, steps, development, held_out, torch_held_out, mean loss of the last epoch of both, digest
"""
import time

import dx_train
from dx_train import Accuracy, FineTune, ViT, image_classification

from . import machine_notes, peer, progress, threads
from ._digits import ADAMW, DESCENT, SIZES, Twin, parts

PEERS = ("torch", "sklearn")
RUNS = ((8, ADAMW), (16, ADAMW), (8, DESCENT))


def one(size, settings, torch):
    """(row, first losses' relative difference or None, seconds) of one run and its twin."""
    training, development, held = parts(size)
    model, losses = ViT.initial(SIZES[size], 1), []
    began = time.perf_counter()
    with FineTune(settings, task=image_classification()).start(model, training) as run:
        for record in run:
            losses.append(record.loss)
        result = run.finish()
    seconds, trained = time.perf_counter() - began, ViT(result.parameters)
    epoch = -(-len(training) // settings.batch)
    row = {"size": size, "optimizer": settings.optimizer, "steps": result.step,
           "development": Accuracy(development)(trained), "held_out": Accuracy(held)(trained),
           "torch_held_out": None, "last_loss": sum(losses[-epoch:]) / epoch, "torch_last_loss": None,
           "digest": result.parameters.digest()[:16]}
    difference = None
    if torch is not None:
        twin = Twin(torch, model, settings, training)
        theirs = twin.train()
        row |= {"torch_held_out": twin.accuracy(held), "torch_last_loss": sum(theirs[-epoch:]) / epoch}
        difference = max(abs(a - b) / b for a, b in zip(losses[:10], theirs[:10]))
    progress(str(row))
    return row, difference, seconds


def run(quick):
    if peer("sklearn") is None:
        names = [f"{side}accuracy_{kind}" for side in ("", "torch_") for kind in ("8", "16", "8_sgd")]
        return {"figures": dict.fromkeys([*names, "first_loss_difference", "seconds"]), "rows": [],
                "notes": ["no scikit-learn: no figures"]}
    torch, figures, rows, differences = peer("torch"), {}, [], []
    with threads(1):
        for size, settings in RUNS:
            settings = dx_train.TrainSettings(**{**vars(settings), "epochs": 2}) if quick else settings
            row, difference, seconds = one(size, settings, torch)
            rows.append(row)
            kind = f"{size}_sgd" if settings.optimizer == "sgd" else str(size)
            figures[f"accuracy_{kind}"], figures[f"torch_accuracy_{kind}"] = row["held_out"], row["torch_held_out"]
            if settings.optimizer == "adamw":
                differences.append(difference)
                figures.setdefault("seconds", seconds)
    figures["first_loss_difference"] = None if None in differences else max(differences)
    return {"figures": figures, "rows": rows, "notes": machine_notes()}
