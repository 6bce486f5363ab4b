"""Everything that dx-model takes from dx-kernels, by name."""
from dx_kernels import adamw_steps as adamw_steps
from dx_kernels import allowance as allowance
from dx_kernels import AllowanceReport as AllowanceReport
from dx_kernels import attention_backward as attention_backward
from dx_kernels import attention_forward as attention_forward
from dx_kernels import available_paths as available_paths
from dx_kernels import char_conv_backward as char_conv_backward
from dx_kernels import char_conv_forward as char_conv_forward
from dx_kernels import character_ids as character_ids
from dx_kernels import clip_gradients as clip_gradients
from dx_kernels import cross_attention_backward as cross_attention_backward
from dx_kernels import cross_attention_forward as cross_attention_forward
from dx_kernels import cross_entropy_backward as cross_entropy_backward
from dx_kernels import cross_entropy_forward as cross_entropy_forward
from dx_kernels import decode_tags as decode_tags
from dx_kernels import degree as degree
from dx_kernels import distinct_rows as distinct_rows
from dx_kernels import embedding_backward as embedding_backward
from dx_kernels import embedding_forward as embedding_forward
from dx_kernels import embedding_sum_forward as embedding_sum_forward
from dx_kernels import encoder_backward as encoder_backward
from dx_kernels import encoder_forward as encoder_forward
from dx_kernels import encoder_saved_floats as encoder_saved_floats
from dx_kernels import EncoderWeights as EncoderWeights
from dx_kernels import epoch_permutation as epoch_permutation
from dx_kernels import gelu_erf_backward as gelu_erf_backward
from dx_kernels import gelu_erf_forward as gelu_erf_forward
from dx_kernels import gelu_tanh_backward as gelu_tanh_backward
from dx_kernels import get_degree as get_degree
from dx_kernels import get_path as get_path
from dx_kernels import gradient_norm as gradient_norm
from dx_kernels import groups_of_pointers as groups_of_pointers
from dx_kernels import ieee_mode as ieee_mode
from dx_kernels import kernel_path as kernel_path
from dx_kernels import layer_norm_backward as layer_norm_backward
from dx_kernels import layer_norm_forward as layer_norm_forward
from dx_kernels import linear_backward as linear_backward
from dx_kernels import linear_forward as linear_forward
from dx_kernels import matmul as matmul
from dx_kernels import normal32 as normal32
from dx_kernels import numerics_ref as numerics_ref
from dx_kernels import NUMERICS_VERSION as NUMERICS_VERSION
from dx_kernels import PackedMatrix as PackedMatrix
from dx_kernels import page_geometry as page_geometry
from dx_kernels import pair_bias_backward as pair_bias_backward
from dx_kernels import pair_bias_forward as pair_bias_forward
from dx_kernels import PAIR_FEATURE_COUNT as PAIR_FEATURE_COUNT
from dx_kernels import pair_features as pair_features
from dx_kernels import pair_mlp_backward as pair_mlp_backward
from dx_kernels import pair_mlp_forward as pair_mlp_forward
from dx_kernels import PAIR_REALS as PAIR_REALS
from dx_kernels import PAIR_WHOLES as PAIR_WHOLES
from dx_kernels import patch_embed_backward as patch_embed_backward
from dx_kernels import patch_embed_forward as patch_embed_forward
from dx_kernels import pointer_backward as pointer_backward
from dx_kernels import pointer_forward as pointer_forward
from dx_kernels import pointers_of_scores as pointers_of_scores
from dx_kernels import pool_max_backward as pool_max_backward
from dx_kernels import pool_max_forward as pool_max_forward
from dx_kernels import pool_softmax_backward as pool_softmax_backward
from dx_kernels import pool_softmax_forward as pool_softmax_forward
from dx_kernels import pool_sum_backward as pool_sum_backward
from dx_kernels import pool_sum_forward as pool_sum_forward
from dx_kernels import positions as positions
from dx_kernels import reading_order as reading_order
from dx_kernels import run_loss as run_loss
from dx_kernels import run_posteriors as run_posteriors
from dx_kernels import runs_of_tags as runs_of_tags
from dx_kernels import sgd_step as sgd_step
from dx_kernels import softmax_forward as softmax_forward
from dx_kernels import substream as substream
from dx_kernels import tanh_backward as tanh_backward
from dx_kernels import tanh_forward as tanh_forward
from dx_kernels import text_clean as text_clean
from dx_kernels import text_cuts as text_cuts
from dx_kernels import text_keys as text_keys
from dx_kernels import text_kinds as text_kinds
from dx_kernels import uniform64 as uniform64
from dx_kernels import WORD_FEATURE_COUNT as WORD_FEATURE_COUNT
from dx_kernels import word_features as word_features


def kernel_references():
    """The readable references of the kernels (activations, cross_entropy), loaded when asked for."""
    from dx_kernels import ref

    return ref
