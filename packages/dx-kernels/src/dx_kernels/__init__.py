"""dx-kernels: forward and backward kernels of document models, bit-equal on every path and thread count."""
from . import below as below  # first: it refuses a dx-numerics of another build
from .activations import gelu_erf_backward as gelu_erf_backward
from .activations import gelu_erf_forward as gelu_erf_forward
from .activations import gelu_tanh_backward as gelu_tanh_backward
from .activations import gelu_tanh_forward as gelu_tanh_forward
from .activations import relu_backward as relu_backward
from .activations import relu_forward as relu_forward
from .activations import sigmoid_backward as sigmoid_backward
from .activations import sigmoid_forward as sigmoid_forward
from .activations import tanh_backward as tanh_backward
from .activations import tanh_forward as tanh_forward
from .adamw import adamw_step as adamw_step
from .adamw import adamw_steps as adamw_steps
from .adamw import sgd_step as sgd_step
from .below import available_paths as available_paths
from .below import degree as degree
from .below import get_degree as get_degree
from .below import get_path as get_path
from .below import kernel_path as kernel_path
from .cross_entropy import cross_entropy_backward as cross_entropy_backward
from .cross_entropy import cross_entropy_forward as cross_entropy_forward
from .decode import check_tags as check_tags
from .decode import decode_tags as decode_tags
from .decode import groups_of_pointers as groups_of_pointers
from .decode import pairs_of_pointers as pairs_of_pointers
from .decode import pointers_of_scores as pointers_of_scores
from .decode import runs_of_tags as runs_of_tags
from .decode import tags_of_runs as tags_of_runs
from .embedding import embedding_backward as embedding_backward
from .embedding import embedding_forward as embedding_forward
from .embedding import embedding_sum_forward as embedding_sum_forward
from .layer_norm import layer_norm_backward as layer_norm_backward
from .layer_norm import layer_norm_forward as layer_norm_forward
from .linear import linear_backward as linear_backward
from .linear import linear_forward as linear_forward
from .matmul import PackedMatrix as PackedMatrix
from .matmul import matmul as matmul
from .norm import clip_factor as clip_factor
from .norm import clip_gradients as clip_gradients
from .norm import gradient_norm as gradient_norm
from .norm import squared_norm as squared_norm
from .posteriors import page_model as page_model
from .posteriors import run_posteriors as run_posteriors
from .softmax import softmax_backward as softmax_backward
from .softmax import softmax_forward as softmax_forward

__version__ = "0.1.0"
