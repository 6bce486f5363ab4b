"""Learning rate of a step: linear warm-up to the peak, then linear decay to a share of it (seed 000 "Batches")."""


def learning_rate(step: int, total: int, peak: float, warmup: int, final_rate: float) -> float:
    """Rate of `step` (from 0 to total - 1), in binary64, in the written order of operations.

        step < warmup:   peak * (step + 1) / warmup                    (the peak is reached at step warmup - 1)
        otherwise:       peak * (1 - (1 - final_rate) * ((step - warmup + 1) / (total - warmup)))

    The last step has peak * final_rate. A warm-up of 0 starts with the decay; one that is as long as the run or longer
    never reaches it. It is rounded to binary32 once per tensor, after the tensor's scale (numerics.md).
    """
    if not 0 <= step < total:
        raise ValueError(f"step = {step}: expected 0 to {total - 1}")
    if step < warmup:
        return peak * (step + 1) / warmup
    done = (step - warmup + 1) / (total - warmup)
    return peak * (1.0 - (1.0 - final_rate) * done)
