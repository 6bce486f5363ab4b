"""Optimizer steps: AdamW and plain gradient descent, for one tensor and for a list of tensors."""
from dx_kernels._core cimport degree_current, flat, fp_enter, fp_leave, in1, out1, raise_status, shape1, table

cdef extern from "table.h" nogil:
    ctypedef struct dx_adamw:
        float eps
    ctypedef struct dx_power:
        double beta, power
        Py_ssize_t step
    ctypedef struct adamw_table "dx_kernels_table":
        int (*adamw_prepare)(Py_ssize_t step, double rate, double beta1, double beta2, double eps, double decay,
                             dx_power *last, dx_adamw *settings) noexcept nogil
        int (*adamw_step)(int degree, Py_ssize_t n, const dx_adamw *settings, double scale, int decay_on, float *w,
                          const float *g, float *m, float *v) noexcept nogil
        int (*sgd_step)(int degree, Py_ssize_t n, double rate, double scale, float *w, const float *g) noexcept nogil

cdef double INFINITY = float("inf")
cdef dx_power[2] powers  # where the last step's powers of beta1 and beta2 ended; under the GIL


cdef int at_least_zero(str name, double value) except -1:
    if not 0 <= value < INFINITY:
        raise ValueError(f"{name} = {value}: expected a finite number >= 0")
    return 0


cdef dx_adamw prepare(Py_ssize_t step, double rate, double beta1, double beta2, double eps, double decay) except *:
    cdef const adamw_table *t = <const adamw_table *>table()
    cdef unsigned long long saved
    cdef dx_power[2] last
    cdef dx_adamw settings
    last[0], last[1] = powers[0], powers[1]
    if step < 1:
        raise ValueError(f"step = {step}: expected at least 1 (the first update is step 1)")
    at_least_zero("rate", rate)
    at_least_zero("weight_decay", decay)
    if not 0 <= beta1 < 1:
        raise ValueError(f"beta1 = {beta1}: expected 0 <= beta1 < 1")
    if not 0 <= beta2 < 1:
        raise ValueError(f"beta2 = {beta2}: expected 0 <= beta2 < 1")
    with nogil:
        saved = fp_enter()
        t.adamw_prepare(step, rate, beta1, beta2, eps, decay, last, &settings)
        fp_leave(saved)
    powers[0], powers[1] = last[0], last[1]
    if not 0 < settings.eps < INFINITY:
        raise ValueError(f"eps = {eps}: expected a binary32 number > 0")
    return settings


cdef int apply(const dx_adamw *settings, float[::1] w, const float[::1] g, float[::1] m, float[::1] v, double scale,
               bint decay) except -1:
    cdef const adamw_table *t = <const adamw_table *>table()
    cdef Py_ssize_t n = w.shape[0]
    cdef unsigned long long saved
    cdef int status
    cdef float *pw = out1(w)
    cdef const float *pg = in1(g)
    cdef float *pm = out1(m)
    cdef float *pv = out1(v)
    with nogil:
        saved = fp_enter()
        status = t.adamw_step(degree_current(), n, settings, scale, decay, pw, pg, pm, pv)
        fp_leave(saved)
    return raise_status(status)


def adamw_step(float[::1] w not None, const float[::1] g not None, float[::1] m not None, float[::1] v not None, *,
               Py_ssize_t step, double rate, double scale=1.0, double beta1=0.9, double beta2=0.999, double eps=1e-8,
               double weight_decay=0.01, bint decay=True):
    """One AdamW update of a tensor w with gradient g and moments m, v, in place.

    m := beta1 m + (1 - beta1) g; v := beta2 v + (1 - beta2) g^2; w := w (1 - rate scale weight_decay)
    - rate scale (m / (1 - beta1^step)) / (sqrt(v / (1 - beta2^step)) + eps).

    Shapes    w, g, m, v (n,): reshape(-1) of a tensor. step counts from 1; decay False (biases, layer-norm
              parameters): no weight decay; scale: the tensor's factor on the rate
    Order     docs/backward-numerics.md: the constants in binary64, each rounded to binary32 once; then every operation
              rounded
    Edges     a moment below 2^-126 becomes +0 · a zero gradient still moves moments and weights · NaN spreads
    Writes    w, m, v in place            Aliasing  none
    Raises    ValueError: step < 1, a beta outside [0, 1), eps not > 0, rate, scale or weight_decay negative or not
              finite, a shape that does not fit
    Source    seed formulas; bit-equal to dx_kernels.ref.adamw_step
    """
    cdef dx_adamw settings = prepare(step, rate, beta1, beta2, eps, weight_decay)
    at_least_zero("scale", scale)
    shape1("g", g, w.shape[0])
    shape1("m", m, w.shape[0])
    shape1("v", v, w.shape[0])
    apply(&settings, w, g, m, v, scale, decay)


def adamw_steps(weights, gradients, first, second, *, Py_ssize_t step, double rate, scales=None, decays=None,
                double beta1=0.9, double beta2=0.999, double eps=1e-8, double weight_decay=0.01):
    """adamw_step of every tensor of a list, in order; tensors are C-contiguous float32 arrays of any shape.

    Shapes    weights, gradients, first (m), second (v): sequences of equal length, and equal sizes tensor by tensor ·
              scales: floats or None (ones) · decays: bools or None (all decay)
    Raises    as adamw_step, naming the tensor, before anything is changed
    Source    bit-equal to adamw_step of each
    """
    cdef dx_adamw settings = prepare(step, rate, beta1, beta2, eps, weight_decay)
    cdef Py_ssize_t i, count = len(weights)
    cdef float[::1] w, m, v
    cdef const float[::1] g
    scales = [1.0] * count if scales is None else [float(s) for s in scales]
    decays = [True] * count if decays is None else list(decays)
    for name, values in (("gradients", gradients), ("first", first), ("second", second), ("scales", scales),
                         ("decays", decays)):
        if len(values) != count:
            raise ValueError(f"{name} has {len(values)} entries: expected {count}")
    tensors = [[flat(a) for a in group] for group in zip(weights, gradients, first, second)]
    for i in range(count):
        w, g, m, v = tensors[i]
        at_least_zero(f"scales[{i}]", scales[i])
        shape1(f"gradients[{i}]", g, w.shape[0])
        shape1(f"first[{i}]", m, w.shape[0])
        shape1(f"second[{i}]", v, w.shape[0])
    for i in range(count):
        w, g, m, v = tensors[i]
        apply(&settings, w, g, m, v, scales[i], decays[i])


def sgd_step(float[::1] w not None, const float[::1] g not None, *, double rate, double scale=1.0):
    """w := w - round(rate * scale) * g, in place.

    Shapes    w, g (n,)
    Order     the rate in binary64, rounded to binary32 once; product and difference each rounded
    Writes    w in place                  Aliasing  none
    Raises    ValueError: rate or scale negative or not finite, a shape that does not fit
    Source    bit-equal to dx_kernels.ref.sgd_step
    """
    cdef const adamw_table *t = <const adamw_table *>table()
    cdef Py_ssize_t n = w.shape[0]
    cdef unsigned long long saved
    cdef int status
    at_least_zero("rate", rate)
    at_least_zero("scale", scale)
    shape1("g", g, n)
    cdef float *pw = out1(w)
    cdef const float *pg = in1(g)
    with nogil:
        saved = fp_enter()
        status = t.sgd_step(degree_current(), n, rate, scale, pw, pg)
        fp_leave(saved)
    raise_status(status)
