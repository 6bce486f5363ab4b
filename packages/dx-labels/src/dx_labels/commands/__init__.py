"""The commands of `dx`, a module each: add(commands) makes the parser, run(arguments) does the work and gives the exit
code. Each is a thin shell over plain functions."""
from . import (check, choosing, diff, exporting, extract, importing, inspect, label, release, review, rollback, score,
               train, verify)

ALL = (importing, exporting, check, label, train, score, extract, review, choosing, inspect, release, verify, diff,
       rollback)
