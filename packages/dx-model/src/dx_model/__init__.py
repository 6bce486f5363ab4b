"""dx-model: document models over dx-kernels: pages, parameters, forward and adjoint, files."""
from .below import available_paths as available_paths
from .below import degree as degree
from .below import get_degree as get_degree
from .below import get_path as get_path
from .below import kernel_path as kernel_path
from .canonical_json import canonical as canonical_bytes  # noqa: F401
from .container import ModelFileError as ModelFileError
from .cutting import Pieces as Pieces
from .cutting import cut_words as cut_words
from .cutting import piece_boxes as piece_boxes
from .docextract import DocExtract as DocExtract
from .docextract import DocExtractConfig as DocExtractConfig
from .docextract import Targets as Targets
from .encode import EncodedPage as EncodedPage
from .encode import Encoding as Encoding
from .encode import clean_text as clean_text
from .encode import encode_page as encode_page
from .files import write_atomic as write_atomic
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
from .windows import page_windows as page_windows
from .windows import window_id as window_id
from .windows import window_owners as window_owners

__version__ = "0.1.0"
