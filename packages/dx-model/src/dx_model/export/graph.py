"""A small builder of ONNX graphs: nodes in order, named constants, the layers that the models share."""
import numpy as np

INSTALL = "exporting needs the library onnx: pip install 'dx-model[onnx]'"
OPSET = 20  # the first with Gelu
IR_VERSION = 9  # the one that came with it
F32, I64 = np.float32, np.int64


def library():
    """The module onnx, or an error that says how to install it."""
    try:
        import onnx
    except ImportError:
        raise ModuleNotFoundError(INSTALL) from None
    return onnx


class Graph:
    """Nodes and constants; every method returns the name of a value."""

    def __init__(self):
        self._onnx = library()
        self.nodes, self.constants, self._count = [], {}, 0

    def op(self, kind: str, *inputs: str, out: str | None = None, **attributes) -> str:
        """One node with one output, called `out` or by a number."""
        self._count += 1
        out = f"{kind.lower()}_{self._count}" if out is None else out
        self.nodes.append(self._onnx.helper.make_node(kind, list(inputs), [out], **attributes))
        return out

    def constant(self, name: str, array) -> str:
        """A constant under this name; the same name again must hold the same bytes."""
        array = np.asarray(array, order="C")  # a number stays without axes
        if name in self.constants:
            old = self.constants[name]
            if old.dtype != array.dtype or old.shape != array.shape or old.tobytes() != array.tobytes():
                raise ValueError(f"constant {name} is there already, with another value")
        self.constants[name] = array
        return name

    def number(self, value, dtype=F32) -> str:
        return self.constant(f"{np.dtype(dtype).name}:{value!r}", np.array(value, dtype))

    def axes(self, *values: int) -> str:
        """A list of whole numbers: axes or a shape."""
        return self.constant("axes:" + ",".join(map(str, values)), np.array(values, I64))

    # --- layers ------------------------------------------------------------------------------------------------------

    def linear(self, x: str, name: str, weight, bias=None, out: str | None = None) -> str:
        """x @ weight.T + bias; weight (out, in)."""
        if bias is None:
            return self.op("MatMul", x, self.constant(f"{name}.weight.T", weight.T), out=out)
        y = self.op("MatMul", x, self.constant(f"{name}.weight.T", weight.T))
        return self.op("Add", y, self.constant(f"{name}.bias", bias), out=out)

    def layer_norm(self, x: str, name: str, weight, bias, eps: float) -> str:
        return self.op("LayerNormalization", x, self.constant(f"{name}.weight", weight),
                       self.constant(f"{name}.bias", bias), axis=-1, epsilon=float(eps))

    def gelu(self, x: str, kind: str) -> str:
        return self.op("Gelu", x, approximate={"gelu_erf": "none", "gelu_tanh": "tanh"}[kind])

    def cast(self, x: str, dtype: str, out: str | None = None) -> str:
        proto = self._onnx.TensorProto
        return self.op("Cast", x, to={"float32": proto.FLOAT, "int64": proto.INT64, "bool": proto.BOOL}[dtype], out=out)

    def masked_attention(self, q: str, k: str, v: str, size: int, *, add: str | None = None,
                         keep: str | None = None) -> str:
        """softmax(q kᵀ / sqrt(size) + add, where keep) v; q, k, v (…, rows, size)."""
        swap = self.op("Transpose", k, perm=[0, 1, 3, 2])
        s = self.op("Div", self.op("MatMul", q, swap), self.number(float(np.sqrt(F32(size)))))
        s = s if add is None else self.op("Add", s, add)
        s = s if keep is None else self.op("Where", keep, s, self.number(float("-inf")))
        return self.op("MatMul", self.op("Softmax", s, axis=-1), v)

    # --- the whole ---------------------------------------------------------------------------------------------------

    def model(self, abi, metadata: dict[str, str]):
        """The checked ModelProto of this graph under an ABI."""
        h, proto = self._onnx.helper, self._onnx.TensorProto
        kinds = {"int64": proto.INT64, "float32": proto.FLOAT, "bool": proto.BOOL}

        def info(t):
            return h.make_tensor_value_info(t.name, kinds[t.dtype], [abi.sizes.get(a, a) for a in t.axes])

        weights = [self._onnx.numpy_helper.from_array(array, name) for name, array in self.constants.items()]
        graph = h.make_graph(self.nodes, abi.family, [info(t) for t in abi.inputs], [info(t) for t in abi.outputs],
                             weights)
        model = h.make_model(graph, opset_imports=[h.make_opsetid("", OPSET)], ir_version=IR_VERSION,
                             producer_name="dx")
        for name, value in metadata.items():
            entry = model.metadata_props.add()
            entry.key, entry.value = name, value
        self._onnx.checker.check_model(model, full_check=True)
        return model
