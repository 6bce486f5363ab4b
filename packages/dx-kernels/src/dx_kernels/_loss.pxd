# Argument checks that the local losses share (inline: no module of its own).

cdef inline int check_factor(double scale, double denominator) except -1:
    """ValueError for a scale that is not finite, a denominator that is negative or not finite."""
    if not scale - scale == 0:
        raise ValueError(f"scale = {scale}: expected a finite number")
    if not (denominator >= 0 and denominator - denominator == 0):
        raise ValueError(f"denominator = {denominator}: expected a finite number >= 0")
    return 0


cdef inline int check_weights(str name, const double[::1] weight, Py_ssize_t columns) except -1:
    """ValueError for a shape that does not fit or a weight that is negative or not finite; None is right."""
    cdef Py_ssize_t j
    if weight is None:
        return 0
    if weight.shape[0] != columns:
        raise ValueError(f"{name} has shape ({weight.shape[0]},): expected ({columns},)")
    for j in range(columns):
        if not (weight[j] >= 0 and weight[j] - weight[j] == 0):
            raise ValueError(f"{name}[{j}] = {weight[j]}: expected a finite number >= 0")
    return 0
