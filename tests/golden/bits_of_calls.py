"""Committed digests of the calls of every public function: `python tests/golden/bits_of_calls.py` writes
bits_of_calls.json beside this file anew. They change with NUMERICS_VERSION, or with a call in a registry."""
import json
import sys
from pathlib import Path

FILE = Path(__file__).with_suffix(".json")
SWEEP = {"sizes": (1, 17, 100), "kinds": ("plain", "wild"), "large": False}


def digests():
    """name → digest of the calls of that function, on the calling thread's path."""
    packages = Path(__file__).resolve().parents[2] / "packages"
    sys.path[:0] = [str(packages / package / "tests") for package in ("dx-numerics", "dx-kernels")]
    import numerics_calls
    import page_calls
    from dx_numerics.testing import calls

    registry = {**numerics_calls.REGISTRY, **page_calls.REGISTRY}
    return {name: calls.total({name: registry[name]}, **SWEEP)[0] for name in sorted(registry)}


if __name__ == "__main__":
    sys.path.pop(0)  # this folder, whose files are named like the packages
    import dx_numerics

    content = {"numerics_version": dx_numerics.NUMERICS_VERSION, "digests": digests()}
    FILE.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(f"{len(content['digests'])} digests in {FILE.name}")
