"""Pooling of listed rows: sums, maxima and softmax over the rows of each segment, forward and backward."""
from dx_kernels._core cimport (degree_current, fp_enter, fp_leave, in1, in2, out1, out2, raise_status, shape1, shape2,
                               table)

cdef extern from "table.h" nogil:
    ctypedef struct dx_segments:
        Py_ssize_t segments, listed, x_rows, d
        const int *rows
        const long long *starts
    ctypedef struct pooling_table "dx_kernels_table":
        int (*pool_sum_forward)(int degree, const dx_segments *s, const float *x, const float *weights,
                                const float *divisors, float *y) noexcept nogil
        int (*pool_sum_backward)(int degree, const dx_segments *s, const float *dy, const float *x,
                                 const float *weights, const float *divisors, float *dx,
                                 float *dweights) noexcept nogil
        int (*pool_max_forward)(int degree, const dx_segments *s, const float *x, float *y, int *argmax) noexcept nogil
        int (*pool_max_backward)(int degree, Py_ssize_t segments, Py_ssize_t x_rows, Py_ssize_t d, const float *dy,
                                 const int *argmax, float *dx) noexcept nogil
        int (*pool_softmax_forward)(int degree, Py_ssize_t heads, const dx_segments *s, const float *scores,
                                    float *p) noexcept nogil
        int (*pool_softmax_backward)(int degree, Py_ssize_t heads, const dx_segments *s, const float *p,
                                     const float *dp, float *dscores) noexcept nogil


# Fills s and checks rows and starts. x_rows < 0: the listed rows need only agree with starts (rows is None then).
cdef int set_segments(dx_segments *s, const int[::1] rows, const long long[::1] starts, Py_ssize_t x_rows,
                      Py_ssize_t listed, Py_ssize_t d) except -1:
    cdef Py_ssize_t b, i, n = listed if rows is None else rows.shape[0]
    if starts.shape[0] < 1 or starts[0] != 0:
        raise ValueError("starts does not begin with 0: expected the border of every segment, (segments + 1,)")
    s.segments, s.listed, s.x_rows, s.d = starts.shape[0] - 1, n, x_rows, d
    for b in range(s.segments):
        if starts[b + 1] <= starts[b]:
            raise ValueError(f"starts[{b + 1}] = {starts[b + 1]}: expected more than {starts[b]}, a segment has at "
                             "least one row")
    if starts[s.segments] != n:
        raise ValueError(f"starts[{s.segments}] = {starts[s.segments]}: expected {n}, the number of listed rows")
    s.starts = &starts[0]
    s.rows = NULL
    if rows is not None and n:
        s.rows = &rows[0]
        for i in range(n):
            if not (rows[i - 1] if i else -1) < rows[i] < x_rows:
                raise ValueError(f"rows[{i}] = {rows[i]}: expected {rows[i - 1] + 1 if i else 0}..{x_rows - 1}, "
                                 "ascending")
    return 0


def list_rows(const unsigned char[:, ::1] mask not None, int[::1] rows not None, long long[::1] borders not None):
    """rows := b * length + s of every mask[b, s] that is not 0, ascending; borders[b] := how many stand before example b.

    Shapes    mask (batch, length) · rows (at least as many as are selected,) int32 · borders (batch + 1,) int64
    Returns   the number of rows listed; without empty examples, rows[:number] and borders are the lists of the pools
    Raises    ValueError: more than 2^31 - 1 places, rows too short, a shape that does not fit
    """
    cdef Py_ssize_t batch = mask.shape[0], length = mask.shape[1], b, s, n = 0, most = rows.shape[0]
    if borders.shape[0] != batch + 1:
        raise ValueError(f"borders has shape ({borders.shape[0]},): expected ({batch + 1},)")
    if batch * length > 0x7fffffff:
        raise ValueError(f"mask has {batch * length} places: expected at most {0x7fffffff}")
    for b in range(batch):
        borders[b] = n
        for s in range(length):
            if mask[b, s]:
                if n == most:
                    raise ValueError(f"rows has shape ({most},): expected at least one place for each selected row")
                rows[n] = <int>(b * length + s)
                n += 1
    borders[batch] = n
    return n


def pool_sum_forward(const float[:, ::1] x not None, const int[::1] rows, const long long[::1] starts not None,
                     float[:, ::1] y not None, *, const float[::1] weights=None, const float[::1] divisors=None):
    """y[b] := (sum over the listed rows r of segment b of weight * x[r]) / divisors[b].

    Shapes    x (x_rows, d) · rows (listed,) int32, ascending, or None: row i is i · starts (segments + 1,) int64: segment
              b is rows[starts[b]:starts[b + 1]], at least one · weights (listed,) or None: 1 · divisors (segments,) or
              None: not divided · y (segments, d)
    Order     dot16 of (weights, x[rows, j]) over the segment's rows in order, sum16 without weights; then one division
    Edges     no segment or d == 0 → nothing · a row that is not listed never matters, NaN included · divisor 0 → as
              IEEE division says
    Aliasing  none
    Raises    ValueError: rows outside x or not ascending, an empty segment, starts that do not end at listed, a shape
    Source    seed formulas (masked mean: divisor n; mean over root of length: sqrt(n); weighted mean: sum16 of the
              weights; attention: its probabilities as weights); bit-equal to dx_kernels.ref.pooling.pool_sum_forward
    """
    cdef const pooling_table *t = <const pooling_table *>table()
    cdef dx_segments s
    cdef unsigned long long saved
    cdef int status
    set_segments(&s, rows, starts, x.shape[0], x.shape[0], x.shape[1])
    shape2("y", y, s.segments, s.d)
    shape1("weights", weights, s.listed)
    shape1("divisors", divisors, s.segments)
    cdef const float *px = in2(x)
    cdef const float *pw = in1(weights)
    cdef const float *pd = in1(divisors)
    cdef float *py = out2(y)
    if s.segments == 0 or s.d == 0:
        return
    with nogil:
        saved = fp_enter()
        status = t.pool_sum_forward(degree_current(), &s, px, pw, pd, py)
        fp_leave(saved)
    raise_status(status)


def pool_sum_backward(const float[:, ::1] dy not None, const int[::1] rows, const long long[::1] starts not None,
                      float[:, ::1] dx=None, float[::1] dweights=None, *, const float[:, ::1] x=None,
                      const float[::1] weights=None, const float[::1] divisors=None):
    """t = dy[b] / divisors[b]; dx[r] := weight * t for the rows of segment b; dweights[i] := dot16(t, x[rows[i]]).

    Shapes    as pool_sum_forward; dy (segments, d) · dx (x_rows, d) · dweights (listed,): needs x; an output that is
              None is not computed
    Order     the division first, then one product an element; without weights t itself
    Edges     rows that are not listed → +0 · d == 0 → dweights of +0
    Writes    outputs assigned, every row            Aliasing  none
    Raises    ValueError: dweights without x; as pool_sum_forward
    Source    seed formulas; the divisor is taken as constant. Bit-equal to dx_kernels.ref.pooling.pool_sum_backward
    """
    cdef const pooling_table *t = <const pooling_table *>table()
    cdef dx_segments s
    cdef unsigned long long saved
    cdef int status
    cdef Py_ssize_t x_rows = 0
    if dx is not None:
        x_rows = dx.shape[0]
    elif x is not None:
        x_rows = x.shape[0]
    elif rows is not None and rows.shape[0]:
        x_rows = <Py_ssize_t>rows[rows.shape[0] - 1] + 1
    elif rows is None:
        x_rows = starts[starts.shape[0] - 1] if starts.shape[0] else 0
    if dweights is not None and x is None:
        raise ValueError("x = None: expected x, dweights needs it")
    set_segments(&s, rows, starts, x_rows, x_rows, dy.shape[1])
    shape2("dy", dy, s.segments, s.d)
    shape2("x", x, x_rows, s.d)
    shape2("dx", dx, x_rows, s.d)
    shape1("weights", weights, s.listed)
    shape1("divisors", divisors, s.segments)
    shape1("dweights", dweights, s.listed)
    cdef const float *pdy = in2(dy)
    cdef const float *px = in2(x)
    cdef const float *pw = in1(weights)
    cdef const float *pd = in1(divisors)
    cdef float *pdx = out2(dx)
    cdef float *pdw = out1(dweights)
    with nogil:
        saved = fp_enter()
        status = t.pool_sum_backward(degree_current(), &s, pdy, px, pw, pd, pdx, pdw)
        fp_leave(saved)
    raise_status(status)


def pool_max_forward(const float[:, ::1] x not None, const int[::1] rows, const long long[::1] starts not None,
                     float[:, ::1] y not None, int[:, ::1] argmax not None):
    """y[b, j] := the largest x[r, j] over the listed rows r of segment b; argmax[b, j] := its r.

    Shapes    x, rows, starts as pool_sum_forward · y, argmax (segments, d), argmax int32 rows of x
    Order     rows in order; a later row wins only when it is larger: of equal values, +0 and -0 among them, the first
    Edges     any NaN → NaN, argmax its first row · -inf is a value like others: nothing stands in for a missing row
    Aliasing  none
    Raises    ValueError: as pool_sum_forward
    Source    seed formulas; bit-equal to dx_kernels.ref.pooling.pool_max_forward
    """
    cdef const pooling_table *t = <const pooling_table *>table()
    cdef dx_segments s
    cdef unsigned long long saved
    cdef int status
    set_segments(&s, rows, starts, x.shape[0], x.shape[0], x.shape[1])
    shape2("y", y, s.segments, s.d)
    if argmax.shape[0] != s.segments or argmax.shape[1] != s.d:
        raise ValueError(f"argmax has shape ({argmax.shape[0]}, {argmax.shape[1]}): expected ({s.segments}, {s.d})")
    cdef const float *px = in2(x)
    cdef float *py = out2(y)
    if s.segments == 0 or s.d == 0:
        return
    cdef int *pa = &argmax[0, 0]
    with nogil:
        saved = fp_enter()
        status = t.pool_max_forward(degree_current(), &s, px, py, pa)
        fp_leave(saved)
    raise_status(status)


def pool_max_backward(const float[:, ::1] dy not None, const int[:, ::1] argmax not None, float[:, ::1] dx not None):
    """dx := +0; dx[argmax[b, j], j] += dy[b, j], b ascending.

    Shapes    dy, argmax (segments, d) · dx (x_rows, d)
    Order     plain additions from +0, so a gradient of -0 arrives as +0
    Writes    dx assigned            Aliasing  none
    Raises    ValueError: an argmax outside 0..x_rows - 1, a shape that does not fit
    Source    seed formulas; bit-equal to dx_kernels.ref.pooling.pool_max_backward
    """
    cdef Py_ssize_t segments = dy.shape[0], d = dy.shape[1], x_rows = dx.shape[0], b, j
    cdef const pooling_table *t = <const pooling_table *>table()
    cdef unsigned long long saved
    cdef int status
    cdef const int *pa = NULL
    if argmax.shape[0] != segments or argmax.shape[1] != d:
        raise ValueError(f"argmax has shape ({argmax.shape[0]}, {argmax.shape[1]}): expected ({segments}, {d})")
    shape2("dx", dx, x_rows, d)
    if segments and d:
        pa = &argmax[0, 0]
    for b in range(segments * d):
        if not 0 <= pa[b] < x_rows:
            raise ValueError(f"argmax[{b // d}, {b % d}] = {pa[b]}: expected a row of dx, 0..{x_rows - 1}")
    cdef const float *pdy = in2(dy)
    cdef float *pdx = out2(dx)
    if pdx == NULL:
        return
    with nogil:
        saved = fp_enter()
        status = t.pool_max_backward(degree_current(), segments, x_rows, d, pdy, pa, pdx)
        fp_leave(saved)
    raise_status(status)


def pool_softmax_forward(const float[:, ::1] scores not None, const long long[::1] starts not None,
                         float[:, ::1] p not None):
    """p[h, i] := softmax of scores[h] over the segment that holds i.

    Shapes    scores, p (heads, listed) · starts (segments + 1,) int64, as pool_sum_forward
    Order     the segment's maximum is subtracted; exp32; sum16; one division each; below 2^-126 → +0
    Edges     only -inf in a segment → zeros · NaN or +inf → NaN in the whole segment
    Aliasing  p may be scores
    Raises    ValueError: an empty segment, starts that do not end at listed, a shape
    Source    seed formulas; bit-equal to dx_kernels.ref.pooling.pool_softmax_forward
    """
    cdef const pooling_table *t = <const pooling_table *>table()
    cdef dx_segments s
    cdef unsigned long long saved
    cdef int status
    cdef Py_ssize_t heads = scores.shape[0]
    set_segments(&s, None, starts, -1, scores.shape[1], 0)
    shape2("p", p, heads, s.listed)
    cdef const float *ps = in2(scores)
    cdef float *pp = out2(p)
    if pp == NULL:
        return
    with nogil:
        saved = fp_enter()
        status = t.pool_softmax_forward(degree_current(), heads, &s, ps, pp)
        fp_leave(saved)
    raise_status(status)


def pool_softmax_backward(const float[:, ::1] p not None, const float[:, ::1] dp not None,
                          const long long[::1] starts not None, float[:, ::1] dscores not None):
    """dscores[h, i] := p * (dp - dot16(p, dp) over the segment).

    Shapes    p (pool_softmax_forward's), dp, dscores (heads, listed) · starts (segments + 1,) int64
    Aliasing  dscores may be dp            Writes  dscores assigned
    Raises    ValueError: an empty segment, starts that do not end at listed, a shape
    Source    seed formulas; bit-equal to dx_kernels.ref.pooling.pool_softmax_backward
    """
    cdef const pooling_table *t = <const pooling_table *>table()
    cdef dx_segments s
    cdef unsigned long long saved
    cdef int status
    cdef Py_ssize_t heads = p.shape[0]
    set_segments(&s, None, starts, -1, p.shape[1], 0)
    shape2("dp", dp, heads, s.listed)
    shape2("dscores", dscores, heads, s.listed)
    cdef const float *pp = in2(p)
    cdef const float *pdp = in2(dp)
    cdef float *pds = out2(dscores)
    if pds == NULL:
        return
    with nogil:
        saved = fp_enter()
        status = t.pool_softmax_backward(degree_current(), heads, &s, pp, pdp, pds)
        fp_leave(saved)
    raise_status(status)
