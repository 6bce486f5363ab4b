"""A run in its own process, for tests that kill it: python train_tiny.py FOLDER [steps]. Says when it starts."""
import dataclasses
import sys

import tiny

if __name__ == "__main__":
    from dx_train import FolderInUse, Interrupted

    steps = int(sys.argv[2]) if len(sys.argv) > 2 else tiny.SETTINGS.steps
    settings = dataclasses.replace(tiny.SETTINGS, steps=steps, checkpoint_every=1, ema_decay=0.9, evaluate_every=4)
    print("training", flush=True)
    try:
        result = tiny.train(sys.argv[1], settings, development=tiny.score)
    except Interrupted as stop:
        print(stop, flush=True)
        sys.exit(130)
    except FolderInUse as stop:
        print(stop, flush=True)
        sys.exit(1)
    print(result.digest, flush=True)
