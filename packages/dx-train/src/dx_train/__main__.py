"""python -m dx_train"""
import sys

from .command import main

sys.exit(main())
