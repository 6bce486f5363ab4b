"""Everything that dx-kernels takes from dx-numerics, by name (docs: layering)."""
from dx_numerics import available_paths as available_paths
from dx_numerics import degree as degree
from dx_numerics import get_degree as get_degree
from dx_numerics import get_include as get_include
from dx_numerics import get_path as get_path
from dx_numerics import kernel_path as kernel_path
from dx_numerics import ref as ref
