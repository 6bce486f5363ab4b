"""dx-numerics: arithmetic with the same bits on every kernel path and thread count."""
import os as _os

from ._core import INTERFACE as INTERFACE
from ._core import MAX_DEGREE as MAX_DEGREE
from ._core import PATHS as PATHS
from ._core import available_paths as available_paths
from ._core import degree as degree
from ._core import get_degree as get_degree
from ._core import get_path as get_path
from ._core import ieee_mode as ieee_mode
from ._core import kernel_path as kernel_path
from ._core import set_degree as set_degree
from ._core import set_path as set_path
from . import ref as ref
from .bits import AllowanceReport as AllowanceReport
from .bits import allowance as allowance
from .bits import canonical_bytes as canonical_bytes
from .bits import digest as digest
from .bits import digest_named as digest_named
from .bits import ulp_distance as ulp_distance
from .checks import Check as Check
from .checks import SelfCheckReport as SelfCheckReport
from .checks import selfcheck as selfcheck
from .functions import erf32 as erf32
from .functions import exp32 as exp32
from .functions import exp64 as exp64
from .functions import log1p64 as log1p64
from .functions import log64 as log64
from .functions import rsqrt32 as rsqrt32
from .functions import sigmoid32 as sigmoid32
from .functions import softplus64 as softplus64
from .functions import tanh32 as tanh32
from .half import narrow_bfloat16 as narrow_bfloat16
from .half import narrow_float16 as narrow_float16
from .half import widen_bfloat16 as widen_bfloat16
from .half import widen_float16 as widen_float16
from .random import SplitMix64 as SplitMix64
from .random import epoch_permutation as epoch_permutation
from .random import normal32 as normal32
from .random import permutation as permutation
from .random import random_at as random_at
from .random import random_u64 as random_u64
from .random import substream as substream
from .random import uniform32 as uniform32
from .random import uniform64 as uniform64
from .reduce import dot16 as dot16
from .reduce import dot16_rows as dot16_rows
from .reduce import mean16 as mean16
from .reduce import squared_norm16 as squared_norm16
from .reduce import sum16 as sum16
from .version import NUMERICS_VERSION as NUMERICS_VERSION

__version__ = "0.1.0"


def get_include():
    """Folder of the C headers, for `#include <dx_numerics/dot.h>`; str."""
    return _os.path.join(_os.path.dirname(_os.path.abspath(__file__)), "include")


selfcheck().require()
