"""Examples on threads, their gradient sets added in example order."""
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from .below import degree, get_degree, get_path, ieee_mode, kernel_path


class OrderedSum:
    """Runs work on examples and adds the gradient sets it fills, in example order with plain additions, starting as the
    first set. Examples run on `degree` threads, each with serial kernels: no reduction crosses a thread, so the degree
    never shows in a bit.

    new_gradients, new_workspace : callables that make an empty gradient set (with `add(other)` and `flat`) and a
        workspace (with `nbytes`)

    Memory (`nbytes`), kept between batches: a workspace for each thread and, at degree N, 2 N gradient sets, `total`
    among them: into half of them threads write, the others wait for their turn in the sum.
    """

    def __init__(self, new_gradients, new_workspace):
        self._new_gradients, self._new_workspace = new_gradients, new_workspace
        self.total = new_gradients()
        self.free: list = []
        self.spaces: list = []
        self._pool: ThreadPoolExecutor | None = None
        self._threads = 0

    @property
    def nbytes(self) -> int:
        sets = self.total.flat.nbytes * (1 + len(self.free))
        return sets + sum(space.nbytes for space in self.spaces)  # exact: whole numbers

    def close(self) -> None:
        """Ends the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool, self._threads = None, 0

    def each(self, items, work) -> list:
        """work(item, workspace) of every item, in their order. Of several errors the first item's is raised."""
        threads = self._room(len(items), 0)
        with np.errstate(all="ignore"):  # what is not finite is looked for, and named, by the caller
            if threads == 1:
                return [work(item, self.spaces[0]) for item in items]
            run, waiting = self._runner(threads, work), []
            try:
                waiting = [self._pool.submit(run, item) for item in items]
                return [future.result() for future in waiting]
            finally:
                _settle(waiting)

    def add_up(self, items, work, adds: bool = False) -> list:
        """work(item, workspace, gradients) of every item, in their order; `total` is the sum of the sets.

        adds: work takes a set as a fourth argument, to which it adds its gradients itself; that is how the sum is made
        on one thread, where it saves writing and reading them once more."""
        threads = self._room(len(items), 2)
        with np.errstate(all="ignore"):
            return self._serial(items, work, adds) if threads == 1 else self._parallel(items, work, threads)

    def _room(self, items, sets):
        threads = max(1, min(get_degree(), items))
        while len(self.spaces) < threads:
            self.spaces.append(self._new_workspace())
        while len(self.free) < sets * threads - 1:
            self.free.append(self._new_gradients())
        if threads > 1 and self._threads != threads:
            self.close()
            self._pool, self._threads = ThreadPoolExecutor(threads, "dx-train"), threads
        return threads

    def _serial(self, items, work, adds):
        results = []
        for item in items:
            if not results:  # the sum starts as the first example's set
                results.append(work(item, self.spaces[0], self.total))
            elif adds:
                results.append(work(item, self.spaces[0], self.free[0], self.total))
            else:
                results.append(work(item, self.spaces[0], self.free[0]))
                self.total.add(self.free[0])
        return results

    def _runner(self, threads, work):
        """work as the threads run it: what belongs to a thread is set, and it has a workspace to itself."""
        path, spaces = get_path(), deque(self.spaces[:threads])

        def run(item, *more):
            space = spaces.popleft()  # at most `threads` run at once, so one is always there
            try:
                with degree(1), kernel_path(path), ieee_mode(), np.errstate(all="ignore"):
                    return work(item, space, *more)
            finally:
                spaces.append(space)

        return run

    def _parallel(self, items, work, threads):
        run, sets = self._runner(threads, work), deque([self.total, *self.free])
        results, waiting, todo = [], deque(), deque(items)
        try:
            while todo or waiting:
                while todo and sets:
                    gradients = sets.popleft()
                    waiting.append((self._pool.submit(run, todo.popleft(), gradients), gradients))
                future, gradients = waiting[0]
                results.append(future.result())
                waiting.popleft()
                if gradients is not self.total:  # the first example's set, which the sum starts as
                    self.total.add(gradients)
                    sets.append(gradients)
        finally:
            _settle([future for future, _ in waiting])
        return results


def _settle(futures):
    """After an error or Ctrl-C no thread may go on writing into what the next batch will use."""
    for future in futures:
        future.cancel()
    for future in futures:
        if not future.cancelled():
            future.exception()
