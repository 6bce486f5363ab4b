"""Everything that dx-labels takes from dx-train, by name."""
from dx_train import available_paths as available_paths
from dx_train import degree as degree
from dx_train import get_degree as get_degree
from dx_train import get_path as get_path
from dx_train import kernel_path as kernel_path
