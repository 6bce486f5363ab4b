"""Everything that dx-model takes from dx-kernels, by name."""
from dx_kernels import available_paths as available_paths
from dx_kernels import degree as degree
from dx_kernels import get_degree as get_degree
from dx_kernels import get_path as get_path
from dx_kernels import kernel_path as kernel_path
