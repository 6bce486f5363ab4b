"""`python -m dx_labels`: the same command as `dx` and `dx-labels`."""
import sys

from .command import main

sys.exit(main())
