"""Everything that dx-kernels takes from dx-numerics, by name (docs: layering)."""
from dx_numerics import INTERFACE as INTERFACE
from dx_numerics import NUMERICS_VERSION as NUMERICS_VERSION
from dx_numerics import AllowanceReport as AllowanceReport
from dx_numerics import SplitMix64 as SplitMix64
from dx_numerics import allowance as allowance
from dx_numerics import available_paths as available_paths
from dx_numerics import degree as degree
from dx_numerics import digest as digest
from dx_numerics import digest_named as digest_named
from dx_numerics import epoch_permutation as epoch_permutation
from dx_numerics import exp32 as exp32
from dx_numerics import exp64 as exp64
from dx_numerics import get_degree as get_degree
from dx_numerics import get_include as get_include
from dx_numerics import get_path as get_path
from dx_numerics import ieee_mode as ieee_mode
from dx_numerics import kernel_path as kernel_path
from dx_numerics import log1p64 as log1p64
from dx_numerics import log64 as log64
from dx_numerics import normal32 as normal32
from dx_numerics import permutation as permutation
from dx_numerics import random_at as random_at
from dx_numerics import ref as ref
from dx_numerics import selfcheck as selfcheck
from dx_numerics import sigmoid32 as sigmoid32
from dx_numerics import softplus64 as softplus64
from dx_numerics import substream as substream
from dx_numerics import tanh32 as tanh32
from dx_numerics import ulp_distance as ulp_distance
from dx_numerics import uniform32 as uniform32
from dx_numerics import uniform64 as uniform64

_OTHER = ("dx-kernels was built against other headers than those of the installed dx-numerics ({}): "
          "install the two from the same build")
try:
    from ._core import BUILT_AGAINST
except TypeError as error:  # an exported C function has another signature now
    raise ImportError(_OTHER.format(error)) from error
if BUILT_AGAINST != INTERFACE:
    raise ImportError(_OTHER.format(f"{BUILT_AGAINST[:12]} and {INTERFACE[:12]}"))
