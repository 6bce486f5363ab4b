"""The version of dx's bits.

NUMERICS_VERSION rises by one whenever a bit of any public result moves, on any input, and enters every fingerprint of
a training run and every file that holds results. Equal numbers mean equal bytes.

    1   the first set of rules: docs/numerics.md and docs/backward-numerics.md as first released
"""
NUMERICS_VERSION = 1
