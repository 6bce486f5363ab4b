"""BERT-family encoders: checkpoints, tokenizers, contextual rows, sentence embeddings (docs/encoder.md)."""
from .classifier import TextClassifierConfig as TextClassifierConfig
from .classifier import TextClassifierGradients as TextClassifierGradients
from .classifier import TextClassifierParameters as TextClassifierParameters
from .classifier import TextHeadGradients as TextHeadGradients
from .classifier import TextClassifier as TextClassifier
from .config import BertConfig as BertConfig
from .embedder import Embedder as Embedder
from .model import Bert as Bert
from .parameters import BertTensors as BertTensors
from .parameters import Gradients, Parameters
from .tokenizer import Tokenizer as Tokenizer

BertParameters, BertGradients = Parameters, Gradients
