"""Independent items on threads."""
from concurrent.futures import ThreadPoolExecutor

from .below import degree, get_degree, get_path, ieee_mode, kernel_path


def on_threads(work, items) -> None:
    """work(item) of every item: with at least as many items as threads of the present degree on that many threads, each
    with serial kernels; otherwise one after the other, with the degree inside the kernels. The bits are the same.

    Of several errors the first item's is raised.
    """
    threads, path = get_degree(), get_path()
    if threads < 2 or len(items) < threads:
        for item in items:
            work(item)
        return

    def run(item):
        with degree(1), kernel_path(path), ieee_mode():  # all three belong to a thread
            work(item)

    with ThreadPoolExecutor(threads, "dx-model") as pool:
        for done in [pool.submit(run, item) for item in items]:
            done.result()
