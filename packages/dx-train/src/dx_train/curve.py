"""The loss curve of a run as an image (extra `plot`)."""
from .runlog import read_log


def loss_curve(folder, path) -> None:
    """Draws loss, its running mean and the development scores of the run in `folder` into an image file.

    Raises ImportError without matplotlib (pip install dx-train[plot])."""
    from matplotlib.figure import Figure

    log = read_log(folder)
    steps, losses = [entry["step"] for entry in log], [entry["loss"] for entry in log]
    smooth, value = [], losses[0] if losses else 0.0
    for loss in losses:
        value += 0.1 * (loss - value)
        smooth.append(value)
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(steps, losses, color="0.75", linewidth=0.8, label="loss of the batch")
    axes.plot(steps, smooth, color="C0", label="running mean")
    axes.set_xlabel("step")
    axes.set_ylabel("loss")
    if losses and min(losses) > 0:
        axes.set_yscale("log")
    scored = [(entry["step"], entry["score"]) for entry in log if "score" in entry]
    if scored:
        other = axes.twinx()
        other.plot(*zip(*scored), "C1o-", markersize=3, label="development score")
        other.set_ylabel("development score")
    figure.legend(loc="outside upper right", ncols=3, fontsize="small")
    figure.savefig(path, dpi=120)
