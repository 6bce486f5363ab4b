"""dx-model: document models over dx-kernels: pages, parameters, forward and adjoint, files."""
import typing as _typing
from importlib import import_module as _import_module

from .below import adamw_steps as adamw_steps
from .below import available_paths as available_paths
from .below import clip_gradients as clip_gradients
from .below import decode_tags as decode_tags
from .below import degree as degree
from .below import distinct_rows as distinct_rows
from .below import epoch_permutation as epoch_permutation
from .below import exp64 as exp64
from .below import get_degree as get_degree
from .below import get_path as get_path
from .below import ieee_mode as ieee_mode
from .below import kernel_path as kernel_path
from .below import log64 as log64
from .below import normal32 as normal32
from .below import NUMERICS_VERSION as NUMERICS_VERSION
from .below import positions as positions
from .below import products64 as products64
from .below import run_posteriors as run_posteriors
from .below import runs_of_tags as runs_of_tags
from .below import sgd_step as sgd_step
from .below import softmax64 as softmax64
from .below import softplus64 as softplus64
from .below import substream as substream
from .below import text_kinds as text_kinds
from .below import uniform64 as uniform64
from .canonical_json import canonical as canonical_bytes  # noqa: F401
from .container import ModelFileError as ModelFileError
from .container import read_container as read_container
from .container import write_container as write_container
from .cutting import Pieces as Pieces
from .cutting import cut_words as cut_words
from .cutting import piece_boxes as piece_boxes
from .docextract import DocExtract as DocExtract
from .docextract import DocExtractConfig as DocExtractConfig
from .docextract import DocumentResult as DocumentResult
from .docextract import extract_document as extract_document
from .docextract import extract_page as extract_page
from .docextract import FieldResult as FieldResult
from .docextract import Gradients as Gradients
from .docextract import HEAD_OF as HEAD_OF
from .docextract import initial_parameters as initial_parameters
from .docextract import Losses as Losses
from .docextract import LossPart as LossPart
from .docextract import Outputs as Outputs
from .docextract import PageResult as PageResult
from .docextract import Parameters as Parameters
from .docextract import Targets as Targets
from .docextract import Value as Value
from .docextract import word_labels as word_labels
from .docextract import Workspace as Workspace
from .encode import EncodedPage as EncodedPage
from .encode import Encoding as Encoding
from .encode import clean_text as clean_text
from .encode import encode_page as encode_page
from .files import write_atomic as write_atomic
from .model_files import load_model as load_model
from .model_files import save_model as save_model
from .page_files import json_line as json_line
from .files import replace_file as replace_file
from .joining import join_letters as join_letters
from .page_files import document_from_json as document_from_json
from .page_files import page_from_json as page_from_json
from .page_files import page_to_json as page_to_json
from .page_files import read_documents as read_documents
from .page_files import read_pages as read_pages
from .page_files import write_pages as write_pages
from .pages import Document as Document
from .pages import Page as Page
from .pages import PageError as PageError
from .pages import Word as Word
from .pages import crop_page as crop_page
from .reading import reading_order as reading_order
from .strict_json import loads as parse_json  # noqa: F401
from .strict_json import StrictJSONError as StrictJSONError
from .vit import ClassLoss as ClassLoss
from .vit import Gradients as ViTGradients  # noqa: F401
from .vit import initial_parameters as initial_vit_parameters  # noqa: F401
from .vit import Parameters as ViTParameters  # noqa: F401
from .vit import ViT as ViT
from .vit import ViTConfig as ViTConfig
from .windows import page_windows as page_windows
from .windows import window_id as window_id
from .windows import window_owners as window_owners
from .below import contrastive_backward as contrastive_backward
from .below import contrastive_forward as contrastive_forward
from .below import cross_entropy_backward as cross_entropy_backward
from .below import cross_entropy_forward as cross_entropy_forward
from .below import gelu_tanh_backward as gelu_tanh_backward
from .below import l2_normalize_backward as l2_normalize_backward
from .below import l2_normalize_forward as l2_normalize_forward
from .below import linear_backward as linear_backward
from .below import linear_forward as linear_forward
from .below import maxsim_backward as maxsim_backward
from .below import maxsim_forward as maxsim_forward
from .below import maxsim_lse_backward as maxsim_lse_backward
from .below import maxsim_lse_forward as maxsim_lse_forward
from .below import squared_distance_backward as squared_distance_backward
from .below import squared_distance_forward as squared_distance_forward
from .tensors import GradientSet as GradientSet
from .tensors import TensorSet as TensorSet
from .tensors import TensorSpec as TensorSpec

__version__ = "0.1.0"

# Readouts and the token encoder are loaded when one of their names is first asked for: the document models do without.
_LATER = {
    **dict.fromkeys(("Blocks", "CausalConfig", "CausalEncoder", "MixtureEncoder", "initial_tensors",
                    "language_loss", "masked_next_token_loss"), ".causal"),
    **dict.fromkeys(("CalibratorIdentity", "ConformalSets", "Isotonic", "Manifest", "MatrixScaling", "Platt",
                    "ReadoutError", "ScoreType", "Scores", "Temperature", "VectorScaling",
                    "admit_manifest"), ".readout"),
    **dict.fromkeys(("BertTensors", "TextClassifier", "TextClassifierConfig", "TextClassifierGradients",
                    "TextClassifierParameters", "TextHeadGradients"), ".bert"),
}
if _typing.TYPE_CHECKING:
    from .bert import BertTensors as BertTensors
    from .bert import TextClassifier as TextClassifier
    from .bert import TextClassifierConfig as TextClassifierConfig
    from .bert import TextClassifierGradients as TextClassifierGradients
    from .bert import TextClassifierParameters as TextClassifierParameters
    from .bert import TextHeadGradients as TextHeadGradients
    from .causal import Blocks as Blocks
    from .causal import CausalConfig as CausalConfig
    from .causal import CausalEncoder as CausalEncoder
    from .causal import MixtureEncoder as MixtureEncoder
    from .causal import initial_tensors as initial_tensors
    from .causal import language_loss as language_loss
    from .causal import masked_next_token_loss as masked_next_token_loss
    from .readout import CalibratorIdentity as CalibratorIdentity
    from .readout import ConformalSets as ConformalSets
    from .readout import Isotonic as Isotonic
    from .readout import Manifest as Manifest
    from .readout import MatrixScaling as MatrixScaling
    from .readout import Platt as Platt
    from .readout import ReadoutError as ReadoutError
    from .readout import ScoreType as ScoreType
    from .readout import Scores as Scores
    from .readout import Temperature as Temperature
    from .readout import VectorScaling as VectorScaling
    from .readout import admit_manifest as admit_manifest


def __getattr__(name):
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(_import_module(_LATER[name], __name__), name)
    return value


def __dir__():
    return sorted([*globals(), *_LATER])
