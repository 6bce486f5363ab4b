"""dx-train: exact, resumable training of dx-model's models. This version: the shared settings, no training yet."""
from .below import available_paths as available_paths
from .below import degree as degree
from .below import get_degree as get_degree
from .below import get_path as get_path
from .below import kernel_path as kernel_path

__version__ = "0.1.0"
