"""`python -m dx_model`."""
import sys

from .command import main

sys.exit(main())
