"""The thread pool: partition, worker indices, several callers, fork, interpreter exit, signals, degree changes."""
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import dx_numerics
import numpy as np
import pytest
from dx_numerics import _core

HEAVY = 20_000  # busy steps an item: long enough for workers to wake


def region(count, grain, degree, spin=0, nested=0):
    """Runs one probe region, checks that every item ran once and alone on its worker; worker of each item."""
    worker, visits = np.full(count, -1, np.int32), np.zeros(count, np.int32)
    clashes, bad_mode, nested_items = _core._parallel_probe(worker, visits, grain, degree, spin, nested)
    assert (visits == 1).all()
    assert clashes == 0 and bad_mode == 0
    if count:
        assert 0 <= worker.min() and worker.max() < degree
    assert nested_items == nested * -(-count // max(grain, 1))
    return worker


def run_python(code, timeout=60, **environment):
    """Runs code in a fresh interpreter with warnings as errors; CompletedProcess."""
    return subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=timeout,
                          env={**os.environ, **environment})


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5, 6, 7, dx_numerics.MAX_DEGREE])
@pytest.mark.parametrize("count, grain", [(0, 1), (1, 1), (1, 100), (7, 2), (100, 1), (1000, 7), (64, 64), (65, 64)])
def test_every_item_runs_once(count, grain, degree):
    worker = region(count, grain, degree)
    for begin in range(0, count, grain):  # a piece is one call
        assert len(set(worker[begin:begin + grain])) == 1


@pytest.mark.parametrize("grain", [0, -5, sys.maxsize])
def test_extreme_grains(grain):
    region(10, grain, 3)


def test_small_and_serial_work_stays_with_the_caller():
    assert (region(50, 50, 7) == 0).all()
    assert (region(50, 1, 1) == 0).all()


def test_workers_join_in():
    if _core._processors() < 2:
        pytest.skip("one processor")
    deadline = time.monotonic() + 60  # on a busy machine a worker may have to wait for its processor
    while time.monotonic() < deadline:
        if len(set(region(200, 1, 2, 10 * HEAVY))) == 2:
            return
    pytest.fail("a second worker never took a piece in a minute")


def test_nested_regions_run_serially_in_their_worker():
    region(40, 1, 3, 500, nested=5)


def test_many_callers_at_once():
    """Python threads that all go parallel: nobody deadlocks, every region is whole."""
    errors = []

    def hammer(seed):
        try:
            for k in range(150):
                region(1 + (seed * 7 + k) % 40, 1 + k % 3, 1 + (seed + k) % 7, 200)
        except BaseException as error:  # reported below, in the main thread
            errors.append(error)

    threads = [threading.Thread(target=hammer, args=(s,)) for s in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert not errors and not any(t.is_alive() for t in threads)


def test_degree_changes_between_regions():
    for k in range(300):
        region(20, 1, 1 + k % 7, 50)


def test_degree_of_the_thread_changes_while_another_computes():
    stop = threading.Event()

    def flip():
        while not stop.is_set():
            dx_numerics.set_degree(3)
            dx_numerics.set_degree(1)

    before = dx_numerics.get_degree()
    t = threading.Thread(target=flip)
    t.start()
    try:
        for _ in range(100):
            region(30, 1, 3, 200)
    finally:
        stop.set()
        t.join()
        dx_numerics.set_degree(before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12+ warns about fork in a process with threads
def test_after_fork_the_child_makes_its_own_workers():
    region(100, 1, 3, HEAVY)
    for _ in range(5):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                if _core._pool_workers() == 0:
                    region(100, 1, 3, HEAVY)
                    code = 0 if _core._pool_workers() == 2 else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        region(100, 1, 3, HEAVY)  # the parent's workers are still there


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork_while_other_threads_are_in_regions():
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            region(50, 1, 3, 2000)

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for t in threads:
        t.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    region(50, 1, 3, 2000)
                    code = 0
                finally:
                    os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        for t in threads:
            t.join()


FORK_POOL = """
import multiprocessing, numpy, warnings
warnings.simplefilter("ignore", DeprecationWarning)
from dx_numerics import _core
def work(seed):
    w, v = numpy.zeros(64, numpy.int32), numpy.zeros(64, numpy.int32)
    assert _core._parallel_probe(w, v, 1, 3, 2000) == (0, 0, 0)
    return int(v.sum())
if __name__ == "__main__":
    work(0)
    with multiprocessing.get_context("fork").Pool(3) as p:
        assert p.map(work, range(30)) == [64] * 30
    print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_multiprocessing_by_fork(tmp_path):
    script = tmp_path / "fork_pool.py"
    script.write_text(FORK_POOL)
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")


PREAMBLE = """
import numpy, threading, time, atexit, sys
from dx_numerics import _core
def go(degree=3, items=100, spin=5000):
    w, v = numpy.zeros(items, numpy.int32), numpy.zeros(items, numpy.int32)
    assert _core._parallel_probe(w, v, 1, degree, spin) == (0, 0, 0) and (v == 1).all()
"""


@pytest.mark.parametrize("code, output", [
    ("pass", ""),  # imported, never used
    ("go()", ""),
    ("atexit.register(lambda: (go(), print('late', _core._pool_workers())))\ngo()", "late 2\n"),  # before ours
    # after the workers have been joined (handlers registered before the import of dx run then): serially
    ("go()\n_core._stop_pool()\ngo()\nprint(_core._pool_workers())", "0\n"),
    # daemon threads still inside regions when the interpreter ends
    ("def loop():\n    while True: go()\n"
     "for _ in range(3): threading.Thread(target=loop, daemon=True).start()\ntime.sleep(.1)", ""),
    # ordinary threads still running when the main thread is done
    ("def loop():\n    for _ in range(50): go()\n"
     "for _ in range(3): threading.Thread(target=loop).start()", ""),
    ("go()\nsys.exit(0)", ""),
    ("del _core\nimport dx_numerics\nfor m in [m for m in sys.modules if m.startswith('dx_')]: del sys.modules[m]", ""),
])
def test_the_interpreter_ends_cleanly(code, output):
    result = run_python(PREAMBLE + code)
    assert (result.returncode, result.stdout, result.stderr) == (0, output, "")


def test_no_worker_exists_before_the_first_region():
    result = run_python(PREAMBLE + "print(_core._pool_workers()); go(1); print(_core._pool_workers()); go(3); "
                        "print(_core._pool_workers())")
    assert result.stdout == "0\n0\n2\n"


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_an_interrupt_arrives_after_the_region():
    """Ctrl-C during a region: the region completes, then KeyboardInterrupt; the pool goes on working."""
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job starts with it ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline:
                region(50, 1, 3, HEAVY)
        timer.join()
        region(50, 1, 3, HEAVY)
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_workers_take_no_signals():
    """Every signal is blocked in the workers, so handlers run in the host program's threads."""
    code = PREAMBLE + """
import os
own = set(os.listdir('/proc/self/task'))
go()
for task in set(os.listdir('/proc/self/task')) - own:
    mask = next(l for l in open(f'/proc/self/task/{task}/status') if l.startswith('SigBlk')).split()[1]
    print(int(mask, 16) >> 1 & 1, int(mask, 16) >> 14 & 1)  # SIGINT, SIGTERM
"""
    result = run_python(code)
    assert result.stdout == "1 1\n" * 2, result.stderr


@pytest.mark.parametrize("mode", ["up", "down", "zero", "flush"])
def test_floating_point_mode_in_every_worker(mode):
    """Workers made by a thread in a foreign mode compute in IEEE mode; the caller's own mode is given back."""
    code = PREAMBLE + f"""
assert _core._is_ieee()
_core._disturb({mode!r})
assert not _core._is_ieee()
for degree in (2, 3, 7, 20, 64): go(degree)
assert not _core._is_ieee()
"""
    result = run_python(code)
    assert (result.returncode, result.stderr) == (0, "")


def test_another_library_flushes_denormals():
    torch = pytest.importorskip("torch")
    if not torch.set_flush_denormal(True):
        pytest.skip("this machine cannot flush denormals")
    try:
        assert not _core._is_ieee()
        region(100, 1, 7, 2000)  # checks the mode of every piece
        assert not _core._is_ieee()
    finally:
        torch.set_flush_denormal(False)
    assert _core._is_ieee()


DRIVER = Path(__file__).parents[1] / "driver" / "pool_hammer.c"


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_no_data_race(tmp_path, compiler):
    """The pool's C code under ThreadSanitizer: several callers, forks, a stop in the middle."""
    root = DRIVER.parents[1]
    if not (root / "csrc").is_dir() or shutil.which(compiler) is None:
        pytest.skip(f"needs the sources and {compiler}")
    program = tmp_path / "hammer"
    sources = [DRIVER, *(root / "csrc" / f"{name}.c" for name in ("pool", "probe", "cpu"))]
    build = subprocess.run([compiler, "-std=gnu11", "-O1", "-g", "-ffp-contract=off", "-fsanitize=thread", "-pthread",
                            f"-I{root / 'csrc'}", f"-I{dx_numerics.get_include()}", *map(str, sources),
                            "-o", str(program)], capture_output=True, text=True)
    if build.returncode and "tsan" in build.stderr:
        pytest.skip(f"{compiler} has no ThreadSanitizer here")
    assert build.returncode == 0, build.stderr
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}  # another sanitizer's runtime
    result = subprocess.run([str(program)], capture_output=True, text=True, timeout=120,
                            env={**env, "TSAN_OPTIONS": "die_after_fork=0"})
    if "unexpected memory mapping" in result.stderr:
        pytest.skip("this kernel's address layout does not suit ThreadSanitizer")
    assert (result.returncode, result.stdout, result.stderr) == (0, "0\n", "")


def test_the_probe_checks_its_arguments():
    a, b = np.zeros(3, np.int32), np.zeros(2, np.int32)
    with pytest.raises(ValueError, match=r"visits has shape \(2,\): expected \(3,\)"):
        _core._parallel_probe(a, b, 1, 1)
    with pytest.raises(ValueError, match="degree = 0: expected a whole number from 1 to 64"):
        _core._parallel_probe(a, a, 1, 0)
