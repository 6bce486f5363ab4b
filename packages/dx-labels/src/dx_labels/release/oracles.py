"""Local oracles and source markers of a release: run when it is made, their outcomes in the bundle."""
import hashlib
import tempfile
from pathlib import Path

from .. import below
from ..metrics.classes import class_scores

MARKERS = ("DocExtract", "extract_page", "extract_document", "page_windows", "reading_order", "write_atomic")


def code_sources(version: str) -> list[dict]:
    """The pinned sources of what answers: this package's Python files, by digest, and the names it takes from below."""
    folder, whole = Path(__file__).parent.parent, hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        whole.update(f"{digest}  {path.relative_to(folder).as_posix()}\n".encode())
    return [{"name": "dx-labels", "revision": version, "sha256": whole.hexdigest(),
             "markers": {name: hasattr(below, name) for name in MARKERS}}]


def model_oracles(model, pages) -> list[dict]:
    """Oracles of a docextract model on a few pages: the answers are the same on the portable kernels, with two threads,
    in the other order, and from the saved file."""
    pages = list(pages)[:3]
    wanted = [below.extract_page(model, page) for page in pages]
    found = []

    def told(name, answers):
        found.append({"name": name, "passed": answers == wanted, "seen": f"{len(pages)} pages"})

    with below.kernel_path("portable"):
        told("portable kernels give the same answers", [below.extract_page(model, p) for p in pages])
    with below.degree(2):
        told("two threads give the same answers", [below.extract_page(model, p) for p in pages])
    told("the order of pages does not matter", [below.extract_page(model, p) for p in reversed(pages)][::-1])
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        again = below.DocExtract.from_pretrained(folder)
        told("the saved model gives the same answers", [below.extract_page(again, p) for p in pages])
    return [*found, worked_figures()]


def worked_figures() -> dict:
    """Six examples whose classes have F1 1, 1/2 and 1/2: macro 2/3, micro = accuracy = 4/6."""
    scores = class_scores(list("aabbcc"), list("aabccb"), list("abc"))
    seen = [scores["macro"]["f1"], scores["micro"]["f1"], scores["accuracy"]["value"]]
    return {"name": "macro and micro F1 of the worked example", "passed": seen == [2 / 3, 4 / 6, 4 / 6],
            "seen": " ".join(repr(v) for v in seen)}
