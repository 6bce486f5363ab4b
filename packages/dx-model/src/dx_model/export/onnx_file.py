"""Exported files: ONNX whose one metadata entry `dx` says what the graph is; reading and running them checks it.

    {"abi": {…}, "kind": "readout" | "docextract", "numerics_version": n, "record": manifest or configuration,
     "weights": SHA-256 over the constants by name}
"""
import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .. import strict_json
from ..below import NUMERICS_VERSION
from ..canonical_json import canonical
from ..container import ModelFileError
from ..files import write_atomic
from ..readout.errors import ReadoutError, require
from ..readout.manifest import Manifest, admit_manifest
from .abi import ABI, abi_from_json
from .graph import Graph, library

KINDS = ("readout", "docextract")


def weights_digest(constants: dict[str, np.ndarray]) -> str:
    """SHA-256 (hex) over name, type, shape and little-endian bytes of every constant, by name."""
    found = hashlib.sha256()
    for name in sorted(constants):
        array = constants[name]
        found.update(canonical([name, array.dtype.name, list(array.shape)]))
        found.update(np.asarray(array, array.dtype.newbyteorder("<")).tobytes())
    return found.hexdigest()


@dataclass(frozen=True)
class Exported:
    """data : the file's bytes · abi · kind · record : JSON of the manifest (readout) or configuration (docextract)"""

    data: bytes
    abi: ABI
    kind: str
    record: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    def manifest(self) -> Manifest:
        """The admitted manifest; ReadoutError for a docextract file, which has a configuration instead."""
        require(self.kind == "readout", "export.kind", self.kind, "readout")
        return admit_manifest(self.record)

    def save(self, path) -> str:
        """Writes the file, whole or not at all; returns its SHA-256 (hex)."""
        write_atomic(path, self.data)
        return self.digest


def finished(graph: Graph, abi: ABI, kind: str, record: str) -> Exported:
    """The bytes of a graph with its metadata."""
    head = {"abi": abi.to_json(), "kind": kind, "numerics_version": NUMERICS_VERSION,
            "record": strict_json.loads(record), "weights": weights_digest(graph.constants)}
    model = graph.model(abi, {"dx": canonical(head).decode()})
    return Exported(model.SerializeToString(deterministic=True), abi, kind, record)


def read_exported(path, *, digest: str | None = None) -> Exported:
    """An exported file, checked: its metadata, its graph's names, types and axes against the ABI, its weights against
    their digest. digest : the SHA-256 (hex) that the file must have. ModelFileError names file and reason."""
    onnx, path = library(), Path(path)
    data = path.read_bytes()
    got = hashlib.sha256(data).hexdigest()
    if digest not in (None, got):
        raise ModelFileError(f"{path}: its SHA-256 is {got}: expected {digest}")
    try:
        model = onnx.load_from_string(data)
        onnx.checker.check_model(model)
    except Exception as error:  # the library raises several kinds for a file it cannot read
        raise ModelFileError(f"{path}: not an ONNX file: {str(error)[:200]}") from None
    props = {p.key: p.value for p in model.metadata_props}
    if set(props) != {"dx"}:
        raise ModelFileError(f"{path}: a bare graph: its metadata must have the one key dx, which says what it is")
    try:
        head = strict_json.loads(props["dx"])
        if set(head) != {"abi", "kind", "numerics_version", "record", "weights"} or head["kind"] not in KINDS:
            raise ReadoutError("export", sorted(head), "abi, kind, numerics_version, record, weights")
        abi = abi_from_json(head["abi"])
        record = canonical(head["record"]).decode()
        _check_graph(onnx, model.graph, abi)
        constants = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
        require(weights_digest(constants) == head["weights"], "export.weights", weights_digest(constants),
                head["weights"])
        if head["kind"] == "readout":
            admit_manifest(record)
    except (ValueError, TypeError) as error:
        raise ModelFileError(f"{path}: {error}") from None
    return Exported(data, abi, head["kind"], record)


def _check_graph(onnx, graph, abi):
    kinds = {"int64": onnx.TensorProto.INT64, "float32": onnx.TensorProto.FLOAT, "bool": onnx.TensorProto.BOOL}
    for part, given, declared in (("inputs", graph.input, abi.inputs), ("outputs", graph.output, abi.outputs)):
        require([v.name for v in given] == [t.name for t in declared], f"export.{part}", [v.name for v in given],
                str([t.name for t in declared]))
        for v, t in zip(given, declared, strict=True):
            shape = [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim]
            require(v.type.tensor_type.elem_type == kinds[t.dtype] and shape == [abi.sizes.get(a, a) for a in t.axes],
                    f"export.{t.name}", shape, f"{t.dtype} [{', '.join(t.axes)}]")


class Session:
    """An exported graph run by onnxruntime, for checking it against dx or for serving where dx is not.

    Its kernels add in their own order: results are near dx's, and can change with the batch and the machine.
    """

    def __init__(self, exported: Exported, *, threads: int = 1):
        try:
            import onnxruntime
        except ImportError:
            raise ModuleNotFoundError("running ONNX files needs onnxruntime: pip install 'dx-model[onnx]'") from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        self.exported = exported
        self._session = onnxruntime.InferenceSession(exported.data, options, providers=["CPUExecutionProvider"])

    def run(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Outputs by name. ReadoutError: an input that is missing, unknown, of another type or shape; an example whose
        readout has no row, on which a graph would say NaN."""
        abi, sizes = self.exported.abi, {}
        wanted = {t.name: t for t in abi.inputs}
        for name in (*wanted, *inputs):
            require(name in wanted and name in inputs, f"inputs.{name}", "missing" if name in wanted else "unknown",
                    f"exactly {', '.join(wanted)}")
        for name, t in wanted.items():
            array = np.asarray(inputs[name])
            require(array.dtype.name == t.dtype and array.ndim == len(t.axes), f"inputs.{name}",
                    (array.dtype.name, array.shape), f"{t.dtype} [{', '.join(t.axes)}]")
            for axis, size in zip(t.axes, array.shape, strict=True):
                want = abi.sizes.get(axis, sizes.setdefault(axis, size))
                require(size == want and size > 0, f"inputs.{name}.{axis}", size, str(want) if size else "1 or more")
        if "attention_mask" in wanted:
            seen = np.asarray(inputs["attention_mask"]) != 0
            read = seen & (np.asarray(inputs["row_mask"]) != 0) if "row_mask" in wanted else seen
            empty = np.flatnonzero(~read.any(axis=1))
            require(not len(empty), "inputs.row_mask" if "row_mask" in wanted else "inputs.attention_mask",
                    {"examples": empty[:3].tolist()}, "a row that the readout reads in every example")
        names = [t.name for t in abi.outputs]
        return dict(zip(names, self._session.run(names, inputs), strict=True))
