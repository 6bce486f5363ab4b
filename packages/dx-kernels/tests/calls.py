"""The calls' machinery is dx_numerics.testing.calls; under its old name here."""
from dx_numerics.testing.calls import *  # noqa: F403
