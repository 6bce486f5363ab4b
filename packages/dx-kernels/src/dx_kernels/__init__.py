"""dx-kernels: forward and backward kernels of document models, bit-equal on every path and thread count."""
from . import below as below  # first: it refuses a dx-numerics of another build
from .activations import gelu_erf_backward as gelu_erf_backward
from .activations import gelu_erf_forward as gelu_erf_forward
from .activations import gelu_tanh_backward as gelu_tanh_backward
from .activations import gelu_tanh_forward as gelu_tanh_forward
from .activations import relu_backward as relu_backward
from .activations import relu_forward as relu_forward
from .activations import tanh_backward as tanh_backward
from .activations import tanh_forward as tanh_forward
from .below import available_paths as available_paths
from .below import degree as degree
from .below import get_degree as get_degree
from .below import get_path as get_path
from .below import kernel_path as kernel_path
from .layer_norm import layer_norm_backward as layer_norm_backward
from .layer_norm import layer_norm_forward as layer_norm_forward
from .softmax import softmax_backward as softmax_backward
from .softmax import softmax_forward as softmax_forward

__version__ = "0.1.0"
