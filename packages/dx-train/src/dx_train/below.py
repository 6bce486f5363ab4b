"""Everything that dx-train takes from dx-model, by name."""
from dx_model import available_paths as available_paths
from dx_model import degree as degree
from dx_model import get_degree as get_degree
from dx_model import get_path as get_path
from dx_model import kernel_path as kernel_path
