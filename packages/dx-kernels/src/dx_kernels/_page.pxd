# Argument checks that decoding, posteriors and the run loss share (inline: no module of its own).

cdef inline Py_ssize_t check_schema(const float[:, ::1] logits, const unsigned char[::1] repeated) except -1:
    """The number of fields; ValueError for a shape or a flag that is not allowed."""
    cdef Py_ssize_t fields = repeated.shape[0], j
    if logits.shape[1] != 1 + 2 * fields:
        raise ValueError(f"logits has shape ({logits.shape[0]}, {logits.shape[1]}): expected (n, {1 + 2 * fields}), "
                         f"O and B, I of {fields} fields")
    if fields > 16383:
        raise ValueError(f"repeated has {fields} fields: expected at most 16383")
    for j in range(fields):
        if repeated[j] > 1:
            raise ValueError(f"repeated[{j}] = {repeated[j]}: expected 0 or 1")
    return fields


cdef inline int check_finite(const float[:, ::1] logits) except -1:
    cdef Py_ssize_t t, j
    for t in range(logits.shape[0]):
        for j in range(logits.shape[1]):
            if not logits[t, j] - logits[t, j] == 0:
                raise ValueError(f"logits[{t}, {j}] = {logits[t, j]}: expected a finite number (word, tag)")
    return 0


cdef inline int check_runs(str name, const int[:, ::1] runs, Py_ssize_t n, Py_ssize_t fields) except -1:
    cdef Py_ssize_t x
    if runs.shape[1] != 3:
        raise ValueError(f"{name} has shape ({runs.shape[0]}, {runs.shape[1]}): expected (count, 3)")
    for x in range(runs.shape[0]):
        if not 0 <= runs[x, 0] < fields:
            raise ValueError(f"{name}[{x}] has field {runs[x, 0]}: expected 0..{fields - 1}")
        if not 0 <= runs[x, 1] <= runs[x, 2] < n:
            raise ValueError(f"{name}[{x}] has words {runs[x, 1]}..{runs[x, 2]}: expected 0 <= first <= last < {n}")
    return 0
