"""The demonstration: 60 synthetic documents, labelled, trained on, scored and read, with digests equal everywhere.

python tools/demo.py [FOLDER]    the project is left in FOLDER (default: a temporary one that goes)
"""
import hashlib
import json
import sys
import tempfile
import time
from pathlib import Path

import dx_labels
import synthetic

COUNT, SEED = 60, 2
SETTINGS = {"held_out": "0.25", "development": "0.1", "share": "0.95",
            "train": {"epochs": 30, "learning_rate": 0.002, "warmup": 30, "augment": 0.5}}


def say(text):
    print(text, flush=True)


def short(data):
    return hashlib.sha256(data).hexdigest()[:16]


def write_project(folder):
    """A project folder with pages, schema and settings."""
    lines = [json.dumps(d, ensure_ascii=False) for d in synthetic.documents(COUNT, SEED)]
    (folder / "pages.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    for name, value in (("schema.json", synthetic.SCHEMA), ("settings.json", SETTINGS)):
        (folder / name).write_text(json.dumps(value, ensure_ascii=False, indent=1), encoding="utf-8", newline="\n")
    return dx_labels.Project(folder)


def demo(folder):
    project, digests = write_project(folder), {}
    digests["pages"] = short(project.path("pages.jsonl").read_bytes())
    labelled = dx_labels.label_project(project, tell=say)
    counts = {}
    for own in labelled["outcomes"].values():
        for outcome, n in own.items():
            counts[outcome] = counts.get(outcome, 0) + n
    digests["labels"] = short(project.path("labels.jsonl").read_bytes())
    say(f"{labelled['documents']} documents labelled: " + ", ".join(f"{n} {k}" for k, n in sorted(counts.items())))
    answer = dx_labels.train_project(project, tell=say, progress=False)
    digests["model"] = answer["model"]["sha256"][:16]
    for name, s in answer["scores"]["fields"].items():
        t = answer["thresholds"][name]["threshold"]
        low, high = s["correct"]["interval"]
        say(f"{name:8} {s['correct']['k']} of {s['correct']['n']} right (95 %: {low:.2f} to {high:.2f}), "
            + (f"accept from {t:.6f}" if t is not None else "no threshold"))
    fresh = [dx_labels.document_from_json(d) for d in synthetic.documents(COUNT + 3, SEED)[COUNT:]]
    found = [dx_labels.extract(project.local_first(), document) for document in fresh]
    digests["extraction"] = short(json.dumps(found, sort_keys=True).encode())
    for one in found:
        say(one["id"] + ": " + ", ".join(f"{name} {(f.get('normalised') or f['value'])!r}"
                                         for name, f in one["fields"].items()))
    digests["scores"] = short(json.dumps([answer["scores"], answer["thresholds"]], sort_keys=True).encode())
    return digests


def main(arguments):
    if len(arguments) > 1 or any(a.startswith("-") for a in arguments):
        print(__doc__, file=sys.stderr)
        return 0 if arguments[0] in ("-h", "--help") else 2
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(arguments[0] if arguments else temporary)
        folder.mkdir(parents=True, exist_ok=True)
        digests = demo(folder)
        if arguments:
            say(f"the report is {folder / 'report.html'}")
    for name in sorted(digests):
        say(f"digest {name:10} {digests[name]}")
    print(f"{time.perf_counter() - began:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
