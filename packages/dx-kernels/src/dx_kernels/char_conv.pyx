"""The character encoder: convolution over a word's characters, bias, ReLU, maximum over the word."""
from dx_kernels._core cimport (degree_current, fp_enter, fp_leave, in1, in2, in3, out1, out2, out3, raise_status,
                               shape1, shape2, shape3)
from dx_kernels._core cimport table as table_current

cdef extern from "table.h" nogil:
    ctypedef struct char_conv_table "dx_kernels_table":
        int (*char_conv_forward)(int degree, Py_ssize_t words, Py_ssize_t length, Py_ssize_t channels,
                                 Py_ssize_t taps, Py_ssize_t out, const float *table, const int *ids,
                                 const float *weight, const float *bias, float *y, int *argmax) noexcept nogil
        int (*char_conv_backward)(int degree, Py_ssize_t words, Py_ssize_t length, Py_ssize_t channels,
                                  Py_ssize_t taps, Py_ssize_t out, Py_ssize_t vocabulary, const float *dy,
                                  const float *y, const int *argmax, const float *table, const int *ids,
                                  const float *weight, float *dtable, float *dweight, float *dbias) noexcept nogil


cdef int check(const float[:, ::1] table, const int[:, ::1] ids, const float[:, :, ::1] weight) except -1:
    cdef Py_ssize_t w, p, rows = table.shape[0]
    if weight.shape[1] < 1 or weight.shape[2] < 1:
        raise ValueError(f"weight has {weight.shape[1]} taps and {weight.shape[2]} channels: expected at least 1 of each")
    shape3("weight", weight, weight.shape[0], weight.shape[1], table.shape[1])
    for w in range(ids.shape[0]):
        for p in range(ids.shape[1]):
            if ids[w, p] < 0 or ids[w, p] >= rows:
                raise ValueError(f"ids[{w}, {p}] = {ids[w, p]}: expected an id in 0..{rows - 1}")
    return 0


cdef int check_argmax(const int[:, ::1] argmax, Py_ssize_t words, Py_ssize_t out) except -1:
    if argmax is not None and (argmax.shape[0] != words or argmax.shape[1] != out):
        raise ValueError(f"argmax has shape ({argmax.shape[0]}, {argmax.shape[1]}): expected ({words}, {out})")
    return 0


def char_conv_forward(const float[:, ::1] table not None, const int[:, ::1] ids not None,
                      const float[:, :, ::1] weight not None, const float[::1] bias, float[:, ::1] y not None,
                      int[:, ::1] argmax=None):
    """y[w, o] := max over the characters p of relu(sum over (tap, channel) of row(p - left + tap) weight[o] + bias[o]).

    row(q) is the table's row of the word's id at q; outside the word, and for id 0 (padding), it is zeros.

    Shapes    table (vocabulary, channels) · ids (words, length) int32, 0 = padding · weight (out, taps, channels) ·
              bias (out,) or None · y (words, out) · argmax (words, out) int32: position of the maximum, for backward
    Order     one dot16 over (tap, channel), bias, relu; left = (taps - 1) // 2
    Edges     the first of equal maxima · positions of id 0 never win · a word of padding only → zeros, argmax -1 ·
              NaN at a position → NaN, the first NaN position
    Aliasing  none
    Raises    ValueError: an id outside the table (place and value), no taps or channels, a shape that does not fit
    Source    seed formulas; bit-equal to dx_kernels.ref.char_conv_forward
    """
    cdef Py_ssize_t words = ids.shape[0], length = ids.shape[1]
    cdef Py_ssize_t out = weight.shape[0], taps = weight.shape[1], channels = table.shape[1]
    cdef const char_conv_table *t = <const char_conv_table *>table_current()
    cdef unsigned long long saved
    cdef int status
    check(table, ids, weight)
    shape1("bias", bias, out)
    shape2("y", y, words, out)
    check_argmax(argmax, words, out)
    if words == 0 or out == 0:
        return
    cdef const int *pi = NULL if length == 0 else &ids[0, 0]
    cdef int *pa = NULL if argmax is None else &argmax[0, 0]
    cdef const float *pt = in2(table)
    cdef const float *pw = in3(weight)
    cdef const float *pb = in1(bias)
    cdef float *py = out2(y)
    with nogil:
        saved = fp_enter()
        status = t.char_conv_forward(degree_current(), words, length, channels, taps, out, pt, pi, pw, pb, py, pa)
        fp_leave(saved)
    raise_status(status)


def char_conv_backward(const float[:, ::1] dy not None, const float[:, ::1] y not None,
                       const int[:, ::1] argmax not None, const float[:, ::1] table not None,
                       const int[:, ::1] ids not None, const float[:, :, ::1] weight not None,
                       float[:, ::1] dtable=None, float[:, :, ::1] dweight=None, float[::1] dbias=None):
    """The gradients of char_conv_forward's table, weight and bias; y and argmax are its outputs.

    dz[w, o] = dy[w, o], +0 where y <= 0 and for a word without characters.

    Shapes    dy, y, argmax (words, out) · table, ids, weight as forward · dtable, dweight, dbias like table, weight,
              bias; outputs that are None are not computed
    Order     dweight: dot16 over words of dz and the rows under the maximum; dbias: sum16 over words; the gradient of a
              character's row: dot16 over (position ascending, out) of dz and the flipped weight, then added to dtable
              by id in word and position order, plain additions on one thread
    Edges     words == 0 → zeros · row 0 of dtable is exactly 0
    Writes    outputs assigned            Aliasing  none
    Raises    ValueError: an id outside the table, an argmax that is no position (place and value), no taps or channels, a shape
              that does not fit
    Source    seed formulas; bit-equal to dx_kernels.ref.char_conv_backward
    """
    cdef Py_ssize_t words = ids.shape[0], length = ids.shape[1], w, o
    cdef Py_ssize_t out = weight.shape[0], taps = weight.shape[1], channels = table.shape[1]
    cdef const char_conv_table *t = <const char_conv_table *>table_current()
    cdef unsigned long long saved
    cdef int status
    check(table, ids, weight)
    shape2("dy", dy, words, out)
    shape2("y", y, words, out)
    check_argmax(argmax, words, out)
    shape2("dtable", dtable, table.shape[0], channels)
    shape3("dweight", dweight, out, taps, channels)
    shape1("dbias", dbias, out)
    for w in range(words):
        for o in range(out):
            if argmax[w, o] < -1 or argmax[w, o] >= length or (argmax[w, o] >= 0 and ids[w, argmax[w, o]] == 0):
                raise ValueError(f"argmax[{w}, {o}] = {argmax[w, o]}: expected the position of a character, or -1")
    cdef const int *pi = NULL if words == 0 or length == 0 else &ids[0, 0]
    cdef const int *pa = NULL if words == 0 or out == 0 else &argmax[0, 0]
    cdef const float *pdy = in2(dy)
    cdef const float *py = in2(y)
    cdef const float *pt = in2(table)
    cdef const float *pw = in3(weight)
    cdef float *pdt = out2(dtable)
    cdef float *pdw = out3(dweight)
    cdef float *pdb = out1(dbias)
    with nogil:
        saved = fp_enter()
        status = t.char_conv_backward(degree_current(), words, length, channels, taps, out, table.shape[0], pdy, py, pa,
                                      pt, pi, pw, pdt, pdw, pdb)
        fp_leave(saved)
    raise_status(status)


def char_conv_weight_to_container(const float[:, :, ::1] weight not None, float[:, :, ::1] container not None):
    """container[o, channel, tap] := weight[o, tap, channel]: the runtime layout to that of a model file.

    Shapes    weight (out, taps, channels) · container (out, channels, taps)
    Raises    ValueError: a shape that does not fit
    """
    cdef Py_ssize_t o, k, c
    shape3("container", container, weight.shape[0], weight.shape[2], weight.shape[1])
    for o in range(weight.shape[0]):
        for k in range(weight.shape[1]):
            for c in range(weight.shape[2]):
                container[o, c, k] = weight[o, k, c]


def char_conv_weight_from_container(const float[:, :, ::1] container not None, float[:, :, ::1] weight not None):
    """weight[o, tap, channel] := container[o, channel, tap]: the layout of a model file to the runtime's.

    Shapes    container (out, channels, taps) · weight (out, taps, channels)
    Raises    ValueError: a shape that does not fit
    """
    cdef Py_ssize_t o, k, c
    shape3("weight", weight, container.shape[0], container.shape[2], container.shape[1])
    for o in range(container.shape[0]):
        for c in range(container.shape[1]):
            for k in range(container.shape[2]):
                weight[o, k, c] = container[o, c, k]
