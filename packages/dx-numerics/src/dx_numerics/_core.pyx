"""The C heart of dx-numerics: kernel path, degree, floating-point environment, thread pool."""
import atexit
import contextlib
import os

cdef extern from "runtime_impl.h" nogil:
    int dx_path_supported(int path)
    int dx_path_best()
    unsigned long long dx_fp_enter()
    void dx_fp_leave(unsigned long long saved)
    void dx_parallel(void (*task)(void *, Py_ssize_t, Py_ssize_t, int) noexcept nogil, void *context,
                     Py_ssize_t count, Py_ssize_t grain, int degree)
    int dx_fp_is_ieee()
    void dx_fp_disturb(int mode)
    int dx_selfcheck(int path)
    int DX_MAX_DEGREE
    void dx_pool_start()
    void dx_pool_stop()
    int dx_pool_workers()
    void dx_parallel_probe(int *worker, int *visits, Py_ssize_t count, Py_ssize_t grain, int degree, int spin,
                           int nested, int *report)

cdef extern from "table.h" nogil:
    const void *dx_numerics_tables[4]

cdef extern from *:
    """
    #include <stdatomic.h>
    /* The calling thread's own choice; -1 (path) or 0 (degree): none, the process default holds. The defaults are
       atomic so that one thread may set them while others compute (also without the GIL). */
    static _Thread_local int dx_thread_path = -1;
    static _Thread_local int dx_thread_degree = 0;
    static atomic_int dx_default_path = 0;
    static atomic_int dx_default_degree = 1;
    static inline int dx_load(atomic_int *p) { return atomic_load_explicit(p, memory_order_relaxed); }
    static inline void dx_store(atomic_int *p, int v) { atomic_store_explicit(p, v, memory_order_relaxed); }
    """
    ctypedef int atomic_int
    int dx_thread_path, dx_thread_degree
    atomic_int dx_default_path, dx_default_degree
    int dx_load(atomic_int *p) nogil
    void dx_store(atomic_int *p, int value) nogil

cdef extern from *:
    const char *DX_INTERFACE

INTERFACE = DX_INTERFACE.decode()  # SHA-256 of the installed headers and .pxd files; dx-kernels compares it at import
PATHS = ("portable", "avx2", "avx512", "neon")
MAX_DEGREE = DX_MAX_DEGREE

cdef int path_current() noexcept nogil:
    return dx_load(&dx_default_path) if dx_thread_path < 0 else dx_thread_path

cdef int degree_current() noexcept nogil:
    return dx_load(&dx_default_degree) if dx_thread_degree == 0 else dx_thread_degree

cdef unsigned long long fp_enter() noexcept nogil:
    return dx_fp_enter()

cdef void fp_leave(unsigned long long saved) noexcept nogil:
    dx_fp_leave(saved)

cdef void parallel(void (*task)(void *, Py_ssize_t, Py_ssize_t, int) noexcept nogil, void *context,
                   Py_ssize_t count, Py_ssize_t grain, int degree) noexcept nogil:
    dx_parallel(task, context, count, grain, degree)

cdef const void *table_current() noexcept nogil:
    return dx_numerics_tables[path_current()]


def _path_number(name, where):
    if name not in PATHS:
        raise ValueError(f"{where} = {name!r}: expected one of {', '.join(PATHS)}")
    number = PATHS.index(name)
    if dx_numerics_tables[number] == NULL or not dx_path_supported(number):
        raise RuntimeError(f"{where} = {name!r}: this CPU or this build cannot run that path; "
                           f"available: {', '.join(available_paths())}")
    return number


def _degree_number(value, where):
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_DEGREE:
        raise ValueError(f"{where} = {value!r}: expected a whole number from 1 to {MAX_DEGREE}")
    return value


def available_paths():
    """The kernel paths that this build holds and this CPU can run, as a tuple of names."""
    return tuple(name for number, name in enumerate(PATHS)
                 if dx_numerics_tables[number] != NULL and dx_path_supported(number))


def get_path():
    """Name of the kernel path that calls of this thread use now."""
    return PATHS[path_current()]


def get_degree():
    """Number of threads that calls of this thread use now (the "degree"); it never shows in a result."""
    return degree_current()


def set_path(name):
    """Makes `name` the kernel path of the process: of every thread that is not inside `kernel_path`.

    Raises    ValueError: no such path · RuntimeError: this CPU or this build cannot run it
    """
    dx_store(&dx_default_path, _path_number(name, "path"))


def set_degree(value):
    """Makes `value` the degree of the process: of every thread that is not inside `degree`.

    Raises    ValueError: not a whole number from 1 to MAX_DEGREE
    """
    dx_store(&dx_default_degree, _degree_number(value, "degree"))


@contextlib.contextmanager
def kernel_path(name):
    """Context manager: calls of this thread use the kernel path `name` inside.

    Other threads, and threads started inside, are not affected: they follow `set_path`. Managers nest, and must be
    left in the thread that entered them.

    Raises    as `set_path`
    """
    global dx_thread_path
    number = _path_number(name, "path")
    saved = dx_thread_path
    dx_thread_path = number
    try:
        yield
    finally:
        dx_thread_path = saved


@contextlib.contextmanager
def degree(value):
    """Context manager: calls of this thread use `value` threads inside (itself among them); as `kernel_path`.

    Raises    as `set_degree`
    """
    global dx_thread_degree
    number = _degree_number(value, "degree")
    saved = dx_thread_degree
    dx_thread_degree = number
    try:
        yield
    finally:
        dx_thread_degree = saved


@contextlib.contextmanager
def ieee_mode():
    """Context manager: this thread rounds to nearest and keeps subnormals inside, whatever mode it is in.

    dx's own calls do so by themselves; this is for the plain arithmetic (Python's, numpy's) between them. Managers
    nest, and must be left in the thread that entered them. Also a decorator: `@ieee_mode()`.
    """
    cdef unsigned long long saved = dx_fp_enter()
    try:
        yield
    finally:
        dx_fp_leave(saved)


def _processors():
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _from_environment():
    """The defaults at import: DX_KERNEL_PATH and DX_DEGREE where set, else the fastest path and every processor."""
    wanted = os.environ.get("DX_KERNEL_PATH", "")
    number = _path_number(wanted, "environment variable DX_KERNEL_PATH") if wanted else dx_path_best()
    dx_store(&dx_default_path, number)
    wanted = os.environ.get("DX_DEGREE", "")
    if wanted:
        number = int(wanted) if wanted.isascii() and wanted.isdecimal() and len(wanted) < 4 else wanted
        dx_store(&dx_default_degree, _degree_number(number, "environment variable DX_DEGREE"))
    else:
        dx_store(&dx_default_degree, min(MAX_DEGREE, _processors()))


def _is_ieee():
    """Whether the calling thread rounds to nearest and keeps subnormals now (outside of dx's calls); bool."""
    return bool(dx_fp_is_ieee())


def _disturb(mode):
    """Leaves the calling thread in a foreign floating-point mode, as another library might; for tests.

    mode: "ieee", "up", "down", "zero" (rounding) or "flush" (subnormals to zero).
    """
    modes = ("ieee", "up", "down", "zero", "flush")
    if mode not in modes:
        raise ValueError(f"mode = {mode!r}: expected one of {', '.join(modes)}")
    dx_fp_disturb(modes.index(mode))


def _selfcheck(name):
    """The cheap self-check of an available path: its failures as bits (runtime_impl.h), 0 for none."""
    return dx_selfcheck(_path_number(name, "path"))


def _pool_workers():
    """Threads of the pool that exist now; for tests."""
    return dx_pool_workers()


def _parallel_probe(int[::1] worker not None, int[::1] visits not None, Py_ssize_t grain, int degree, int spin=0,
                    int nested=0):
    """Runs a region over the items of `worker` and writes who ran each item and how often; for tests.

    spin: busy steps an item; nested: items of a region started inside every piece. Returns (pieces that met another
    piece with the same worker index, pieces outside IEEE mode, nested items run).
    """
    cdef int report[3]
    cdef Py_ssize_t count = worker.shape[0]
    if visits.shape[0] != count:
        raise ValueError(f"visits has shape ({visits.shape[0]},): expected ({count},)")
    if not 1 <= degree <= DX_MAX_DEGREE:
        raise ValueError(f"degree = {degree}: expected a whole number from 1 to {DX_MAX_DEGREE}")
    cdef int *pw = &worker[0] if count else NULL
    cdef int *pv = &visits[0] if count else NULL
    with nogil:
        dx_parallel_probe(pw, pv, count, grain, degree, spin, nested, report)
    return report[0], report[1], report[2]


def _stop_pool():
    with nogil:
        dx_pool_stop()


_from_environment()
dx_pool_start()
atexit.register(_stop_pool)
