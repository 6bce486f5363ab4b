"""Export to ONNX: a graph with named axes and one declared kind of output, the manifest inside (docs/encoder.md)."""
from .abi import ABI as ABI
from .abi import FAMILIES as FAMILIES
from .abi import Semantics as Semantics
from .abi import Tensor as Tensor
from .abi import abi_from_json as abi_from_json
from .abi import readout_abi as readout_abi
from .docextract import export_docextract as export_docextract
from .docextract import page_inputs as page_inputs
from .embedder import embedder_manifest as embedder_manifest
from .embedder import export_embedder as export_embedder
from .onnx_file import Exported as Exported
from .onnx_file import Session as Session
from .onnx_file import read_exported as read_exported
from .readouts import export_readout as export_readout
