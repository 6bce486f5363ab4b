"""`python -m dx_model.vit`."""
import sys

from .command import main

sys.exit(main())
