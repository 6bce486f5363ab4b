"""Readouts as widely used implementations make them, by name, pinned to revisions (docs/readout.md, 0x09).

Where an implementation guesses, clamps or ignores, these say so in their record (`stricter`) and refuse.
"""
from .bert_heads import PROBLEM_TYPES as PROBLEM_TYPES
from .bert_heads import bert_pooler as bert_pooler
from .bert_heads import bert_question_answering as bert_question_answering
from .bert_heads import bert_sequence_classification as bert_sequence_classification
from .bert_heads import bert_token_classification as bert_token_classification
from .bert_heads import guessed_problem_type as guessed_problem_type
from .pair_prediction import default_activation as default_activation
from .pair_prediction import predict_pairs as predict_pairs
from .pins import PRESETS as PRESETS
from .pins import REVISIONS as REVISIONS
from .pins import Preset as Preset
from .pins import preset as preset
from .sentence_modules import POOLING_MODES as POOLING_MODES
from .sentence_modules import sentence_embedding as sentence_embedding
from .sentence_modules import sentence_normalize as sentence_normalize
from .sentence_modules import sentence_pooling as sentence_pooling
