"""docextract-v0: a word-level layout transformer that pulls fields out of pages (docs/docextract-v0.md)."""
from ..container import ModelFileError as ModelFileError
from .config import DocExtractConfig as DocExtractConfig
from .config import TensorSpec as TensorSpec
from .config import tensor_table as tensor_table
from .initial import initial_parameters as initial_parameters
from .losses import HEAD_OF as HEAD_OF
from .losses import Losses as Losses
from .losses import LossPart as LossPart
from .losses import Targets as Targets
from .model import DocExtract as DocExtract
from .model import Outputs as Outputs
from .parameters import Gradients as Gradients
from .parameters import Parameters as Parameters
from .workspace import Workspace as Workspace
