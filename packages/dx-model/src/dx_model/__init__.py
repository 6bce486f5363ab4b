"""dx-model: document models over dx-kernels: pages, parameters, forward and adjoint, files."""
from .below import adamw_steps as adamw_steps
from .below import available_paths as available_paths
from .below import clip_gradients as clip_gradients
from .below import decode_tags as decode_tags
from .below import degree as degree
from .below import distinct_rows as distinct_rows
from .below import epoch_permutation as epoch_permutation
from .below import get_degree as get_degree
from .below import get_path as get_path
from .below import ieee_mode as ieee_mode
from .below import kernel_path as kernel_path
from .below import normal32 as normal32
from .below import NUMERICS_VERSION as NUMERICS_VERSION
from .below import positions as positions
from .below import run_posteriors as run_posteriors
from .below import runs_of_tags as runs_of_tags
from .below import sgd_step as sgd_step
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
from .docextract import Workspace as Workspace
from .encode import EncodedPage as EncodedPage
from .encode import Encoding as Encoding
from .encode import clean_text as clean_text
from .encode import encode_page as encode_page
from .files import write_atomic as write_atomic
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

__version__ = "0.1.0"
