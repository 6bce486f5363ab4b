"""Pictures of the HTML report and the review page, of a project the demonstration makes; for people to look at.

python tools/screenshots.py FOLDER    needs Chromium on PATH; the folder is made where it is missing
"""
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import demo
import dx_labels
from dx_labels.review import ReviewServer, Session

NAMES = ("chromium", "chromium-browser", "google-chrome")
SIZES = {"report": (1100, 4200), "review": (1366, 768), "review-small": (900, 700)}


def take(browser, address, path, size):
    """One picture; the page may load and compute for eight seconds of its own time."""
    subprocess.run([browser, "--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={size[0]},{size[1]}",
                    "--virtual-time-budget=8000", f"--screenshot={path}", address], check=True, capture_output=True)


def main(arguments):
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    if browser is None or len(arguments) != 1:
        print(__doc__ if browser else "there is no Chromium on PATH", file=sys.stderr)
        return 2
    out = Path(arguments[0])
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        demo.demo(Path(temporary))
        project = dx_labels.Project(temporary)
        take(browser, project.path("report.html").as_uri(), out / "report.png", SIZES["report"])
        session = Session(project)
        session.predict_all()
        with ReviewServer(session) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            for name in ("review", "review-small"):
                take(browser, server.url, out / f"{name}.png", SIZES[name])
            server.shutdown()
    for name in SIZES:
        print(out / f"{name}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
