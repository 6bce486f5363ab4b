"""Checkpoints and exact resume: killed anywhere, continued, the bytes of the straight run."""
import dataclasses
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import dx_train
import numpy as np
import pytest
import tiny
from dx_train import CheckpointError, FineTune, FolderInUse, Interrupted
from dx_train.checkpoint import checkpoint_files

CHILD = Path(__file__).with_name("train_tiny.py")
STEPS = 30


def loss_trace(folder):
    return [(e["step"], e["rate"], e["norm"], e["loss"], e.get("score")) for e in dx_train.read_log(folder)]


def stopped_after(steps, folder, settings=tiny.SETTINGS, **more):
    """A run that is left after some steps, with what its checkpoints hold."""
    with FineTune(settings).start(tiny.model(), tiny.examples(variants=True), folder=folder, tell=tiny.quiet,
                                  **more) as run:
        while run.step < steps:
            run.advance()


@pytest.mark.parametrize("stop, steps", [(1, 12), (2, 12), (5, 12), (7, 12), (11, 12), (24, 48), (50, 52)])
def test_tra_04_05_resumed_run_equals_the_straight_one(stop, steps, tmp_path):
    """Case tra-04, tra-05: same number of steps, rates, losses and bytes, wherever it stopped; batches of 3 from 7
    examples, so that it stops in the middle of epochs; between checkpoints the steps are done again."""
    settings = dataclasses.replace(tiny.SETTINGS, steps=steps)
    straight = tiny.train(tmp_path / "a", settings)
    stopped_after(stop, tmp_path / "b", settings)
    with dx_train.degree(2), dx_train.kernel_path(dx_train.available_paths()[0]):  # elsewhere, so to say
        resumed = tiny.train(tmp_path / "b", settings)
    assert resumed.digest == straight.digest and resumed.step == straight.step == steps
    assert loss_trace(tmp_path / "b") == loss_trace(tmp_path / "a")
    a, b = checkpoint_files(tmp_path / "a"), checkpoint_files(tmp_path / "b")
    assert a[0].name == b[0].name and a[0].read_bytes() == b[0].read_bytes()


def test_tra_01_resume_at_an_epoch_border_with_randomness(tmp_path):
    """Case tra-01: 20 examples, batch 4, 4 epochs, a checkpoint each epoch, augmentation as the random part."""
    settings = dataclasses.replace(tiny.SETTINGS, steps=0, epochs=4, batch=4, checkpoint_every=5)
    straight = tiny.train(tmp_path / "a", settings, count=20)
    with FineTune(settings).start(tiny.model(), tiny.examples(20, True), folder=tmp_path / "b", tell=tiny.quiet) as run:
        for record in run:
            if record.step == 10:
                break
    resumed = tiny.train(tmp_path / "b", settings, count=20)
    assert straight.step == 20 and resumed.digest == straight.digest


def test_tra_02_order_is_a_function_of_seed_and_epoch():
    """Case tra-02: the orders of epochs 0 to 3, straight and starting anew after each epoch."""
    straight = [dx_train.ExampleStream(20, 20, 9).step(epoch) for epoch in range(4)]
    assert [e for epoch in straight for e, _ in epoch] == [e for e in range(4) for _ in range(20)]
    orders = [[i for _, i in epoch] for epoch in straight]
    assert len({tuple(order) for order in orders}) == 4 and all(sorted(order) == list(range(20)) for order in orders)
    stream = dx_train.ExampleStream(20, 7, 9)
    running = [item for step in range(12) for item in stream.step(step)]
    assert running[:80] == [item for epoch in straight for item in epoch]
    assert [i for _, i in dx_train.ExampleStream(20, 7, 10).step(0)] != [i for _, i in stream.step(0)]


def test_state_beyond_weights_is_resumed(tmp_path):
    """Moving average, scores, best weights and early stop go on as they were."""
    settings = dataclasses.replace(tiny.SETTINGS, steps=40, ema_decay=0.8, evaluate_every=2, patience=3, augment=0.0)
    straight = tiny.train(tmp_path / "a", settings, development=tiny.score)
    assert straight.best_step is not None
    for stop in (4, 7):
        stopped_after(stop, tmp_path / f"b{stop}", settings, development=tiny.score)
        resumed = tiny.train(tmp_path / f"b{stop}", settings, development=tiny.score)
        assert (resumed.digest, resumed.step, resumed.best_step, resumed.best_score) == (
            straight.digest, straight.step, straight.best_step, straight.best_score)
        assert loss_trace(tmp_path / f"b{stop}") == loss_trace(tmp_path / "a")


def test_a_finished_run_gives_the_same_again(tmp_path):
    first = tiny.train(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    assert tiny.train(tmp_path).digest == first.digest


def child(folder, **more):
    return subprocess.Popen([sys.executable, str(CHILD), str(folder), str(STEPS)], stdout=subprocess.PIPE, text=True,
                            env=os.environ | {"PYTHONPATH": str(CHILD.parent)}, **more)


def finished(folder):
    """Runs it to the end; (digest of the model file, bytes of the last checkpoint, trace)."""
    done = child(folder)
    out, _ = done.communicate(timeout=120)
    assert done.returncode == 0
    return out.splitlines()[-1], checkpoint_files(folder)[0].read_bytes(), loss_trace(folder)


def kill_and_resume(tmp_path, kills, seed):
    """SIGKILL at random moments of the training, again and again in the same folder until it is through."""
    began = time.monotonic()
    straight = finished(tmp_path / "straight")
    seconds, rng, killed, round_ = time.monotonic() - began, random.Random(seed), 0, 0
    while killed < kills:
        folder, round_ = tmp_path / f"killed{round_}", round_ + 1
        for _ in range(6):
            with child(folder) as process:
                process.stdout.readline()  # it trains
                time.sleep(rng.random() * seconds * 0.5)
                process.send_signal(signal.SIGKILL)
            killed += process.returncode == -signal.SIGKILL
        assert finished(folder) == straight
        assert not [name for name in os.listdir(folder) if name.endswith(".tmp")]
    return killed


def test_killed_at_random_moments(tmp_path):
    assert kill_and_resume(tmp_path, 5, 1) >= 5


@pytest.mark.exhaustive
def test_killed_at_many_random_moments(tmp_path):
    assert kill_and_resume(tmp_path, 60, 2) >= 60


@pytest.mark.parametrize("moment", ["write", "fsync", "rename", "replaced"])
def test_killed_inside_checkpoint_writing(moment, tmp_path):
    """The process ends at each stage of a write; the run goes on from the checkpoint before or the new one."""
    code = f"""
import os, sys, tiny
import dx_model.files as files
count = 0
def dies_at_third(function, before):
    def wrapped(*a, **k):
        global count
        count += 1
        if count == 3 and before:
            os.kill(os.getpid(), 9)
        result = function(*a, **k)
        if count == 3:
            os.kill(os.getpid(), 9)
        return result
    return wrapped
moment = {moment!r}
if moment == "write":
    fdopen = os.fdopen
    class Half:
        def __init__(self, file): self.file = file
        def __enter__(self): return self
        def __exit__(self, *a): self.file.close()
        def fileno(self): return self.file.fileno()
        def flush(self): self.file.flush()
        def write(self, data):
            global count
            count += 1
            if count == 3:
                self.file.write(data[:len(data) // 2]); self.file.flush(); os.kill(os.getpid(), 9)
            return self.file.write(data)
    os.fdopen = lambda *a, **k: Half(fdopen(*a, **k))
elif moment == "fsync":
    os.fsync = dies_at_third(os.fsync, True)
else:
    os.replace = dies_at_third(os.replace, moment == "rename")
tiny.train(sys.argv[1])
"""
    straight = tiny.train(tmp_path / "a")
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "b")],
                          env=os.environ | {"PYTHONPATH": str(CHILD.parent)})
    assert done.returncode == -signal.SIGKILL
    assert tiny.train(tmp_path / "b").digest == straight.digest
    assert sorted(os.listdir(tmp_path / "b")) == sorted(os.listdir(tmp_path / "a"))


def test_a_damaged_newest_checkpoint_is_passed_over(tmp_path):
    """Every byte counts: a flipped bit anywhere, a cut file; the one before is used, with a message."""
    straight = tiny.train(tmp_path / "a")
    stopped_after(7, tmp_path / "b")
    newest, before = checkpoint_files(tmp_path / "b")
    whole = newest.read_bytes()
    for place in (0, 9, 300, len(whole) // 2, len(whole) - 1):
        damaged = bytearray(whole)
        damaged[place] ^= 4
        newest.write_bytes(damaged)
        told = []
        with FineTune(tiny.SETTINGS).start(tiny.model(), tiny.examples(variants=True), folder=tmp_path / "b",
                                           tell=told.append) as run:
            assert run.step == 3, place
        assert newest.name in told[0] and "not usable" in told[0]
    newest.write_bytes(whole[:1000])
    assert tiny.train(tmp_path / "b").digest == straight.digest
    last = checkpoint_files(tmp_path / "b")[0]
    whole = last.read_bytes()
    last.write_bytes(whole[:-1])
    assert tiny.train(tmp_path / "b").digest == straight.digest and last.read_bytes() == whole
    for path in checkpoint_files(tmp_path / "b"):
        path.write_bytes(b"")
    with pytest.raises(CheckpointError, match="no checkpoint in .* is usable"):
        tiny.train(tmp_path / "b")


@pytest.mark.parametrize("change, part", [
    ({"start": tiny.model(2)}, "starting model"), ({"count": 8}, "examples"),
    ({"settings": dataclasses.replace(tiny.SETTINGS, learning_rate=1e-4)}, "settings"),
    ({"digests": {"labels.jsonl": "00"}}, "labels.jsonl"),
    ({"start": tiny.model(1, dataclasses.replace(tiny.CONFIG, repeated=("total",)))}, "schema"),
    ({"scales": {"tag_head.weight": 1.0}}, "trainable set"), ({"development": tiny.score}, "development part")])
def test_a_checkpoint_of_another_run_is_refused(change, part, tmp_path):
    tiny.train(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.suffix == ".safetensors"}
    with pytest.raises(CheckpointError, match=f"belongs to another run: its .*{part}"):
        tiny.train(tmp_path, **change)
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.suffix == ".safetensors"}


def test_intervals_may_change(tmp_path):
    """Checkpoint and log intervals are no part of the fingerprint."""
    straight = tiny.train(tmp_path / "a")
    stopped_after(4, tmp_path / "b")
    other = dataclasses.replace(tiny.SETTINGS, checkpoint_every=5, digest_every=2)
    assert tiny.train(tmp_path / "b", other).digest == straight.digest
    assert "digest" in dx_train.read_log(tmp_path / "b")[-1]


def test_two_runs_in_one_folder(tmp_path):
    with FineTune(tiny.SETTINGS).start(tiny.model(), tiny.examples(), folder=tmp_path, tell=tiny.quiet):
        with pytest.raises(FolderInUse, match="in use by another run"):
            tiny.train(tmp_path)
        process = child(tmp_path)
        assert "in use by another run" in process.communicate(timeout=60)[0] and process.returncode == 1


def test_disk_full(tmp_path):
    """No file may grow beyond a few hundred bytes: the step's checkpoint fails, the one before stays."""
    straight = tiny.train(tmp_path / "a")
    stopped_after(4, tmp_path / "b")
    before = {p.name: p.read_bytes() for p in checkpoint_files(tmp_path / "b")}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with FineTune(tiny.SETTINGS).start(tiny.model(), tiny.examples(variants=True), folder=tmp_path / "b",
                                       tell=tiny.quiet) as run:
        run.advance()
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, hard))
        try:
            with pytest.raises(CheckpointError, match="could not be written .*the last good one is checkpoint-0000"):
                while True:
                    run.advance()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert {p.name: p.read_bytes() for p in checkpoint_files(tmp_path / "b")} == before
    assert not [name for name in os.listdir(tmp_path / "b") if name.endswith(".tmp")]
    assert tiny.train(tmp_path / "b").digest == straight.digest


def test_read_only_folder():
    """Root writes everywhere, so it becomes somebody else for the moment."""
    folder = Path(tempfile.mkdtemp())
    try:
        stopped_after(4, folder)
        before = {p.name: p.read_bytes() for p in checkpoint_files(folder)}
        with FineTune(tiny.SETTINGS).start(tiny.model(), tiny.examples(variants=True), folder=folder,
                                           tell=tiny.quiet) as run:
            folder.chmod(0o555)
            user = os.geteuid()
            if user == 0:
                os.seteuid(65534)
            try:
                with pytest.raises(CheckpointError, match="could not be written .*checkpoint-000000003"):
                    run.save()
            finally:
                os.seteuid(user)
                folder.chmod(0o755)
        assert {p.name: p.read_bytes() for p in checkpoint_files(folder)} == before
    finally:
        shutil.rmtree(folder)


def test_ctrl_c_writes_a_checkpoint_and_says_how_to_go_on(tmp_path):
    straight = finished(tmp_path / "a")
    process = child(tmp_path / "b")
    assert process.stdout.readline() == "training\n"
    while not (tmp_path / "b").is_dir() or not checkpoint_files(tmp_path / "b"):
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and "start the same run again to continue" in out
    assert finished(tmp_path / "b") == straight


def test_interrupted_without_a_folder():
    def development(model):
        signal.raise_signal(signal.SIGINT)
        return 0.0

    settings = dataclasses.replace(tiny.SETTINGS, evaluate_every=2)
    with pytest.raises(Interrupted, match="after step 2 of 12"):
        FineTune(settings).run(tiny.model(), tiny.examples(), development=development, tell=tiny.quiet)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_update_that_was_cut_short_is_never_saved(tmp_path, monkeypatch):
    with FineTune(tiny.SETTINGS).start(tiny.model(), tiny.examples(), folder=tmp_path, tell=tiny.quiet) as run:
        run.advance()
        monkeypatch.setattr(run.model, "repack", lambda: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            run.advance()
        with pytest.raises(CheckpointError, match="inside an update"):
            run.save()


def test_checkpoint_holds_what_the_seed_says(tmp_path):
    """Step, trainable weights, moments, stream position, tied to the named parts; frozen tensors are not in it."""
    stopped_after(6, tmp_path, dataclasses.replace(tiny.SETTINGS, backbone_scale=0.0))
    found = dx_train.read_checkpoint(checkpoint_files(tmp_path)[0])
    assert found.step == 6 and found.state["position"] == 18
    assert {name.split("/")[2] for name in found.tensors} == {"tag_head.weight", "tag_head.bias"}
    assert {name.split("/")[0] for name in found.tensors} == {"weight", "first", "second"}
    assert {"starting model", "schema", "settings", "examples", "numerics version"} <= set(found.parts)
    assert np.isfinite(found.tensors["first/0/tag_head.weight"]).all()


def test_killed_inside_a_batch(tmp_path):
    """Case tra-05: stopped inside the accumulation over a batch of 3, after its second example."""
    straight = tiny.train(tmp_path / "a")
    with FineTune(tiny.SETTINGS).start(tiny.model(), tiny.examples(variants=True), folder=tmp_path / "b",
                                       tell=tiny.quiet) as run:
        for _ in range(4):
            run.advance()
        seen, one = [], run.gradients.one

        def stops(example, *rest):
            if len(seen) == 2:
                raise KeyboardInterrupt
            seen.append(example.id)
            return one(example, *rest)

        run.gradients.one = stops
        with pytest.raises(KeyboardInterrupt):
            run.advance()
        run.gradients.one = one
        run.save()  # the step in progress is simply not there
    assert checkpoint_files(tmp_path / "b")[0].name == "checkpoint-000000004.safetensors"
    assert tiny.train(tmp_path / "b").digest == straight.digest


def test_progress_goes_to_stderr_when_asked_for(tmp_path, capsys):
    FineTune(tiny.SETTINGS).run(tiny.model(), tiny.examples(), progress=True, tell=tiny.quiet)
    shown = capsys.readouterr()
    assert "12/12" in shown.err and "step" in shown.err and "loss" in shown.err and not shown.out
    FineTune(tiny.SETTINGS).run(tiny.model(), tiny.examples(), tell=tiny.quiet)
    assert capsys.readouterr().err == ""  # not a terminal
