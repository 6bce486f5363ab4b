"""The C heart of dx-numerics: kernel path, degree, floating-point environment, thread pool."""
import contextlib
import os

cdef extern from "runtime_impl.h" nogil:
    int dx_path_supported(int path)
    int dx_path_best()
    unsigned long long dx_fp_enter()
    void dx_fp_leave(unsigned long long saved)
    void dx_parallel(void (*task)(void *, Py_ssize_t, Py_ssize_t, int) noexcept nogil, void *context,
                     Py_ssize_t count, Py_ssize_t grain, int degree)

cdef extern from "table.h" nogil:
    const void *dx_numerics_tables[4]

cdef extern from *:
    """
    /* The calling thread's own choice; -1 (path) or 0 (degree): none, the process default holds. */
    static _Thread_local int dx_thread_path = -1;
    static _Thread_local int dx_thread_degree = 0;
    static int dx_default_path = 0;
    static int dx_default_degree = 1;
    """
    int dx_thread_path, dx_thread_degree, dx_default_path, dx_default_degree

PATHS = ("portable", "avx2", "avx512", "neon")
MAX_DEGREE = 64

cdef int path_current() noexcept nogil:
    return dx_default_path if dx_thread_path < 0 else dx_thread_path

cdef int degree_current() noexcept nogil:
    return dx_default_degree if dx_thread_degree == 0 else dx_thread_degree

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
    """Makes `name` the process's default kernel path. ValueError: no such path. RuntimeError: not available here."""
    global dx_default_path
    dx_default_path = _path_number(name, "path")


def set_degree(value):
    """Makes `value` (1 to MAX_DEGREE) the process's default degree."""
    global dx_default_degree
    dx_default_degree = _degree_number(value, "degree")


@contextlib.contextmanager
def kernel_path(name):
    """Context manager: calls of this thread use the kernel path `name` inside. Errors as `set_path`."""
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
    """Context manager: calls of this thread use `value` threads inside. Errors as `set_degree`."""
    global dx_thread_degree
    number = _degree_number(value, "degree")
    saved = dx_thread_degree
    dx_thread_degree = number
    try:
        yield
    finally:
        dx_thread_degree = saved


def _from_environment():
    global dx_default_path, dx_default_degree
    wanted = os.environ.get("DX_KERNEL_PATH", "")
    dx_default_path = _path_number(wanted, "DX_KERNEL_PATH") if wanted else dx_path_best()
    wanted = os.environ.get("DX_DEGREE", "")
    if wanted:
        dx_default_degree = _degree_number(int(wanted) if wanted.isdecimal() else wanted, "DX_DEGREE")
    else:
        dx_default_degree = min(MAX_DEGREE, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity")
                                else os.cpu_count() or 1)


_from_environment()
