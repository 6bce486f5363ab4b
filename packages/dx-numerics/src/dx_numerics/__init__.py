"""dx-numerics: arithmetic with the same bits on every kernel path and thread count."""
from pathlib import Path as _Path

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
from .reduce import dot16 as dot16

__version__ = "0.1.0"


def get_include():
    """Folder of the C headers, for `#include <dx_numerics/dot.h>`; str."""
    return str(_Path(__file__).parent / "include")
