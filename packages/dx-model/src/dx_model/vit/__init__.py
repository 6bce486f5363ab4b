"""A vision transformer: the model, its wiring over operation tables, certificates of every gradient (docs/vit.md)."""
from .checkpoints import from_checkpoint as from_checkpoint
from .checkpoints import to_checkpoint as to_checkpoint
from .config import ViTConfig as ViTConfig
from .config import tensor_table as tensor_table
from .losses import ClassLoss as ClassLoss
from .model import Saved as Saved
from .model import ViT as ViT
from .parameters import Gradients as Gradients
from .parameters import initial_parameters as initial_parameters
from .parameters import Parameters as Parameters
