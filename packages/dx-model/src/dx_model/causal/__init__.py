"""A small token encoder, causal or with full visibility: what the representation families are shown on."""
from .config import CausalConfig as CausalConfig
from .model import CausalEncoder as CausalEncoder
from .model import initial_tensors as initial_tensors
from .next_token import language_loss as language_loss
from .next_token import masked_next_token_loss as masked_next_token_loss
from .router import MixtureEncoder as MixtureEncoder
from .router import routing_weights as routing_weights
from .rows import Blocks as Blocks
