"""BERT-family encoders: checkpoints, tokenizers, contextual rows, sentence embeddings (docs/encoder.md)."""
from .config import BertConfig as BertConfig
from .embedder import Embedder as Embedder
from .model import Bert as Bert
from .parameters import Gradients, Parameters
from .tokenizer import Tokenizer as Tokenizer

BertParameters, BertGradients = Parameters, Gradients
