"""Files of ONNX, which the package onnx reads; weights in files beside it are not needed.

Weights are initializers, or constants: exporters write either. Others make them anew from a shape (ConstantOfShape), to keep a file small.
An exported graph may have normalisation folded into kernels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from sim.base.errors import WrongSetting
from sim.base.extras import need
from sim.base.files import reading
from sim.model.files import buffers
from sim.model.files.tensors import Status, Tensor, apart

MOST_BYTES = 2**31  # more than Protocol Buffers take
# The inputs of operators that are weights where a shape alone says what they are; of all others some may be masks, or states.
AFFINE, LEARNT, RECURRENT, EITHER = {1, 2}, {1, 2, 3, 4}, {1, 2, 3, 7}, {0, 1}
WEIGHTS = {
    **dict.fromkeys(("Conv", "ConvTranspose", "Gemm", "LayerNormalization", "InstanceNormalization"), AFFINE),
    **dict.fromkeys(("GroupNormalization", "BatchNormalization"), LEARNT),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), RECURRENT),
    **dict.fromkeys(("MatMul", "Add", "Mul", "PRelu"), EITHER),
}
STATISTICS = {("BatchNormalization", 3), ("BatchNormalization", 4)}
SCALES = {("QuantizeLinear", 1), ("DequantizeLinear", 1), ("MatMulNBits", 2)}
SIZES = {
    ("Resize", 1),
    ("Resize", 2),
    ("Upsample", 1),
    ("Clip", 1),
    ("Clip", 2),
    ("Pad", 2),
    ("OneHot", 2),
    ("Range", 0),
    ("Range", 1),
    ("Range", 2),
}
SCALED = ("QLinear", "QGemm", "QAttention", "DynamicQuantize", "MatMulInteger", "ConvInteger")
HOW = {
    "Constant": "of Constant nodes",
    "ConstantOfShape": "of ConstantOfShape nodes",
    "sparse": "of sparse initializers, their values",
}
SAME = ("Identity", "Unsqueeze", "Squeeze", "Reshape", "Transpose", "Cast", "Flatten")  # of its first input


class Found(NamedTuple):
    """A tensor of a graph.

    Args:
        how: initializer, Constant or ConstantOfShape.
    """

    name: str
    shape: tuple[int, ...]
    is_float: bool
    how: str


def read(path: str) -> tuple[list[Tensor], list[str]]:
    """The tensors of a file, and notes."""
    need("onnx")
    import onnx

    with reading("from", path), open(path, "rb") as file:
        if file.seek(0, 2) > MOST_BYTES:
            raise WrongSetting("from", path, f"a file of at most {MOST_BYTES // 2**30} GiB, weights in files beside it")
        file.seek(0)
        try:
            model = onnx.load(file, load_external_data=False)
        except Exception as error:  # of Protocol Buffers, whose classes differ by version
            raise WrongSetting("from", path, f"a whole .onnx file ({type(error).__name__})") from error
    found: list[Tensor] = []
    for graph in (*_graphs(model.graph), *model.functions):
        readers = _readers(graph)
        found += [_tensor(one, readers) for one in _found(graph, onnx)]
    return list(apart(found)), []


def _graphs(graph) -> Iterator[Any]:
    """A graph, and those within its nodes: branches and loops."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                if inner.node:
                    yield from _graphs(inner)


def _readers(graph) -> dict[str, list[tuple[str, int, str]]]:
    """The operators that read each tensor of a graph: their type, at which input, and the name of their first output."""
    readers: dict[str, list[tuple[str, int, str]]] = defaultdict(list)
    for inner in _graphs(graph):
        for node in inner.node:
            for place, name in enumerate(node.input):
                readers[name].append((node.op_type, place, node.output[0] if node.output else ""))
        for one in inner.output:
            readers[getattr(one, "name", one)].append(("output", 0, ""))
    return readers


def _uses(name: str, readers: dict[str, list[tuple[str, int, str]]], deep: int = 0) -> set[tuple[str, int]]:
    """The operators that read a tensor, itself or in another shape, and at which input."""
    found: set[tuple[str, int]] = set()
    for operator, place, output in readers.get(name, []):
        through = _uses(output, readers, deep + 1) if operator in SAME and not place and deep < len(SAME) else set()
        found |= through or {(operator, place)}
    return found


def _found(graph, onnx) -> Iterator[Found]:
    """The tensors that a graph has itself: initializers, and outputs of nodes that make constants."""
    kinds = onnx.TensorProto
    floats = {value for name, value in kinds.DataType.items() if name.startswith(("FLOAT", "BFLOAT", "DOUBLE"))}
    held = {tensor.name: tensor for tensor in getattr(graph, "initializer", ())}
    for tensor in held.values():
        yield Found(tensor.name, tuple(tensor.dims), tensor.data_type in floats, "initializer")
    for tensor in getattr(graph, "sparse_initializer", ()):
        yield Found(tensor.values.name, tuple(tensor.values.dims), tensor.values.data_type in floats, "sparse")
    for node in graph.node:
        values = {attribute.name: attribute for attribute in node.attribute}
        if node.op_type == "Constant":
            if "value" in values:
                held[node.output[0]] = tensor = values["value"].t
                yield Found(node.output[0], tuple(tensor.dims), tensor.data_type in floats, "Constant")
            for name in values.keys() & {"value_float", "value_floats"}:
                yield Found(node.output[0], (len(values[name].floats),) * (name[-1] == "s"), True, "Constant")
        elif node.op_type == "ConstantOfShape" and node.input[0] in held:
            shape = tuple(map(int, onnx.numpy_helper.to_array(held[node.input[0]])))
            is_float = "value" not in values or values["value"].t.data_type in floats
            yield Found(node.output[0], shape, is_float, "ConstantOfShape")


def _tensor(one: Found, readers: dict[str, list[tuple[str, int, str]]]) -> Tensor:
    """What one is taken for, by the operators that read it: the first of these that holds."""
    uses, made = _uses(one.name, readers), one.how == "ConstantOfShape"
    few_bits = len(one.shape) > 1 and not made
    scales = bool(uses) and all(use in SCALES or use[0].startswith(SCALED) for use in uses)
    buffer = buffers.kind(one.name, one.shape)
    weights = any(place in WEIGHTS.get(operator, ()) for operator, place in uses)
    cases: list[tuple[object, Status, str]] = [
        (not one.is_float, "left out", "integers, weights that are quantised" if few_bits else "integers"),
        (uses & STATISTICS or buffers.is_statistic(one.name), "not trained", buffers.MOVING),
        (readers and not uses, "left out", "read by no operator"),
        (scales, "left out", "scales of quantised weights"),
        (uses and uses <= SIZES, "left out", "sizes and limits of operators"),
        (buffer, "left out", buffer),
        (made and not weights, "left out", "of ConstantOfShape nodes that no layer reads as weights"),
        (True, "trained", HOW.get(one.how, "")),
    ]
    return Tensor(one.name, one.shape, *next((status, why) for holds, status, why in cases if holds))
