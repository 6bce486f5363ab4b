"""Readouts: contextual rows to pooled vectors, predictions, spans and scores, all typed (docs/readout.md)."""
from .errors import ReadoutError as ReadoutError
from .rows import RowTable as RowTable
from .rows import admit_content_mask as admit_content_mask
from .rows import boundary_index as boundary_index
from .rows import first_piece_mask as first_piece_mask
from .rows import from_encoding as from_encoding
from .rows import normalize_absent_offsets as normalize_absent_offsets
from .rows import prompt_policy as prompt_policy
from .rows import row_table as row_table
from .spans import rows_overlapping_span as rows_overlapping_span
from .spans import span_of_rows as span_of_rows
from .spans import span_target as span_target
