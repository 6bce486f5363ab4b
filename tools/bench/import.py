"""Reading files of pages: pages per second and peak memory of each reader, no peer.

figures  pages_per_second, peak_mib: a PDF file of 1,000 pages of about 150 words through `import_pages`
rows     reader, pages, pages per second, peak MiB above the process's own
The other readers read as many files of the tests' two lines (five words) each.
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from . import machine_notes, progress

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "packages" / "dx-labels" / "tests"))
import ocr_files  # noqa: E402

FIGURES = ("pages_per_second", "peak_mib")
CHILD = """
import json, resource, sys, time
from dx_labels import import_pages
import_pages([sys.argv[3]], sys.argv[2])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
answer = import_pages([sys.argv[1]], sys.argv[2])
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"pages": answer["pages"], "words": answer["words"], "seconds": seconds,
                  "peak_mib": (peak - before) / 1024}))
"""


def long_pdf(pages):
    """A PDF file of so many pages of 25 lines of six words; every page has other numbers."""
    made = []
    for number in range(pages):
        lines = [ocr_files.text(40, 780 - 28 * k, f"Line {number * 25 + k} of invoice {number}: {k * 37 % 101},50")
                 for k in range(25)]
        made.append(("".join(lines), "/MediaBox [0 0 595 842]"))
    return ocr_files.pdf(*made)


def measure(source, first, temp):
    """One run in a process of its own; `first` is a small file that loads everything before the clock starts."""
    command = [sys.executable, "-c", CHILD, str(source), str(Path(temp) / "out.jsonl"), str(first)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def run(quick):
    pages, rows = 20 if quick else 1000, []
    with tempfile.TemporaryDirectory() as temp:
        for name, make in ocr_files.FILES.items():
            progress(name)
            first, folder = Path(temp) / f"first.{name}", Path(temp) / name
            first.write_bytes(make())
            folder.mkdir()
            if name == "pdf":
                (folder / "long.pdf").write_bytes(long_pdf(pages))
            else:
                for number in range(pages):
                    (folder / f"{number:04}").write_bytes(make())
            found = measure(folder, first, temp)
            rows.append({"reader": name, "pages": found["pages"], "words": found["words"],
                         "pages_per_second": found["pages"] / found["seconds"], "peak_mib": found["peak_mib"]})
    figures = {name: rows[0][name] for name in FIGURES}
    return {"figures": figures, "rows": rows, "notes": ["one process, one thread; Tesseract's own speed is not dx's"]
            + machine_notes()}
