#!/usr/bin/env python3
"""The one entry for work on dx: `python tools/dev.py demo`, `python tools/dev.py test`, and more (--help).

Needs Python 3.11 or newer and a C compiler (gcc or clang); everything else it fetches with pip into .venv.
"""
import sys

if sys.version_info < (3, 11):
    sys.exit(f"dx needs Python 3.11 or newer; this is {sys.version.split()[0]} ({sys.executable})")

from devtools.cli import main

if __name__ == "__main__":
    sys.exit(main())
