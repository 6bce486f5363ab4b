"""dx-train: exact, resumable training of dx-model's models. This version: the shared settings, no training yet."""
from .below import available_paths as available_paths
from .below import canonical_bytes as canonical_bytes
from .below import clean_text as clean_text
from .below import crop_page as crop_page
from .below import cut_words as cut_words
from .below import degree as degree
from .below import Document as Document
from .below import document_from_json as document_from_json
from .below import encode_page as encode_page
from .below import EncodedPage as EncodedPage
from .below import Encoding as Encoding
from .below import get_degree as get_degree
from .below import get_path as get_path
from .below import join_letters as join_letters
from .below import kernel_path as kernel_path
from .below import Page as Page
from .below import page_from_json as page_from_json
from .below import page_to_json as page_to_json
from .below import page_windows as page_windows
from .below import PageError as PageError
from .below import parse_json as parse_json
from .below import read_documents as read_documents
from .below import read_pages as read_pages
from .below import reading_order as reading_order
from .below import StrictJSONError as StrictJSONError
from .below import Targets as Targets
from .below import window_id as window_id
from .below import window_owners as window_owners
from .below import Word as Word
from .below import write_atomic as write_atomic
from .below import write_pages as write_pages

__version__ = "0.1.0"
