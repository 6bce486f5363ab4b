"""dx-numerics: arithmetic with the same bits on every kernel path and thread count."""
import os as _os

from ._core import INTERFACE as INTERFACE
from ._core import MAX_DEGREE as MAX_DEGREE
from ._core import PATHS as PATHS
from ._core import available_paths as available_paths
from ._core import degree as degree
from ._core import get_degree as get_degree
from ._core import get_path as get_path
from ._core import kernel_path as kernel_path
from ._core import set_degree as set_degree
from ._core import set_path as set_path
from . import ref as ref
from .functions import erf32 as erf32
from .functions import exp32 as exp32
from .functions import exp64 as exp64
from .functions import log1p64 as log1p64
from .functions import log64 as log64
from .functions import rsqrt32 as rsqrt32
from .functions import sigmoid32 as sigmoid32
from .functions import softplus64 as softplus64
from .functions import tanh32 as tanh32
from .reduce import dot16 as dot16

__version__ = "0.1.0"


def get_include():
    """Folder of the C headers, for `#include <dx_numerics/dot.h>`; str."""
    return _os.path.join(_os.path.dirname(_os.path.abspath(__file__)), "include")
