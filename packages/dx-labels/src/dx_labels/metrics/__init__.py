"""Metrics of each kind of output, exactly summed: classes, labels, values, tags, answers, rankings."""
from .answers import answer_scores as answer_scores
from .answers import normalize_answer as normalize_answer
from .answers import token_f1 as token_f1
from .classes import class_scores as class_scores
from .classes import confusion as confusion
from .multilabel import average_precision as average_precision
from .multilabel import label_scores as label_scores
from .regression import pearson as pearson
from .regression import ranks as ranks
from .regression import spearman as spearman
from .regression import value_scores as value_scores
from .retrieval import ranking_scores as ranking_scores
from .tags import span_errors as span_errors
from .tags import illegal_tags as illegal_tags
from .tags import tag_scores as tag_scores
