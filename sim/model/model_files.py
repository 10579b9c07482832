"""The variables of a model in a file of another library: names and shapes in the file's order; weights are not read.

- .safetensors: eight bytes that say how long the header is, and the header in JSON, which needs no library. Libraries
  that write such files sort by size and name: the order of creation is lost.
- .keras: a zip with config.json, whose layers are in order, and model.weights.h5, which h5py reads. Files have no names of variables:
  those of layers, and numbers.
- .onnx: the initializers of the graph, which the package onnx reads. An exported graph may have normalisation folded into kernels.

Numbers that are no floating point are no parameters, and left out. The statistics of batch normalisation are not trained.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

from sim.base.errors import WrongSetting
from sim.base.files import reading
from sim.zoo.layers import variable

MOST_HEADER_BYTES = 32 * 2**20
MOST_PACKED_BYTES = 256 * 2**20  # of a file that is packed within another
MOST_ONNX_BYTES = 2**31  # more than Protocol Buffers take
STATISTICS = ("running_mean", "running_var", "moving_mean", "moving_variance", "moving_var")
CONSTANT = "a model with floating-point variables"


def variables(path: str) -> list[dict]:
    """The variables in a file, as a workload's file says them.

    Raises:
        WrongSetting: no such file, of no format that is known, or damaged.
    """
    ending = Path(path).suffix.lower()
    if ending not in READERS:
        raise WrongSetting("from", path, f"a name that ends in {', '.join(READERS)}")
    with reading("from", path), open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        found = [_of(name, shape) for name, shape in READERS[ending](file, size, path)]
    if not any(one.get("trained", True) for one in found):
        raise WrongSetting("from", path, CONSTANT)
    return found


def _of(name: str, shape: list[int]) -> dict:
    """A number alone is a variable of one."""
    made = variable(name, *(shape or [1]))
    last = name.replace("/", ".").rpartition(".")[2]
    return {**made, "trained": False} if last in STATISTICS else made


def _safetensors(file, size: int, path: str) -> Iterator[tuple[str, list[int]]]:
    whole = WrongSetting("from", path, "a whole .safetensors file, with a header in JSON")
    start = file.read(8)
    if len(start) < 8 or not 2 <= struct.unpack("<Q", start)[0] <= min(size - 8, MOST_HEADER_BYTES):
        raise whole
    length = struct.unpack("<Q", start)[0]
    try:
        header = json.loads(file.read(length))
    except (ValueError, RecursionError) as error:
        raise whole from error
    if not isinstance(header, dict):
        raise whole
    tensors = {name: tensor for name, tensor in header.items() if name != "__metadata__"}
    if not all(map(_is_tensor, tensors.values())):
        raise whole
    if max((tensor["data_offsets"][1] for tensor in tensors.values()), default=0) + 8 + length != size:
        raise whole
    for name, tensor in tensors.items():
        if tensor["dtype"].startswith(("F", "BF")):
            yield name, tensor["shape"]


def _is_tensor(given) -> bool:
    if not isinstance(given, dict) or not isinstance(given.get("dtype"), str):
        return False
    numbers = (given.get("shape"), given.get("data_offsets"))
    if not all(isinstance(each, list) and all(type(n) is int and n >= 0 for n in each) for each in numbers):
        return False
    return len(given["data_offsets"]) == 2


def _keras(file, size: int, path: str) -> Iterator[tuple[str, list[int]]]:
    import zipfile

    h5py = _library("h5py", path)
    try:
        with zipfile.ZipFile(file) as packed:
            config, weights = packed.getinfo("config.json"), packed.getinfo("model.weights.h5")
            kept = weights.compress_type == zipfile.ZIP_STORED
            if config.file_size > MOST_HEADER_BYTES or not (kept or weights.file_size <= MOST_PACKED_BYTES):
                raise WrongSetting(
                    "from", path, f"config.json of at most {MOST_HEADER_BYTES // 2**20} MiB, weights not packed"
                )
            layers = json.loads(packed.read(config))["config"].get("layers", [])
            with packed.open(weights) as inner, h5py.File(inner, "r") as tree:
                yield from list(_of_layers(tree, layers, ""))
    except WrongSetting:
        raise
    except Exception as error:  # whatever zipfile, json and h5py make of bytes that are no model
        raise WrongSetting("from", path, f"a whole .keras file ({type(error).__name__})") from error


def _of_layers(tree, layers: list, before: str) -> Iterator[tuple[str, list[int]]]:
    """The variables of a model's layers in their order in its configuration; a layer may be a model."""
    places = {layer["config"]["name"]: place for place, layer in enumerate(layers)}
    groups = dict(tree.get("layers", {}))
    names = {
        key: str(group["vars"].attrs.get("name", key)) if "vars" in group else key for key, group in groups.items()
    }
    for key in sorted(groups, key=lambda key: places.get(names[key], len(places))):
        inner = layers[places[names[key]]]["config"].get("layers", []) if names[key] in places else []
        yield from _of_layer(groups[key], f"{before}{names[key]}/", key.startswith("batch_normalization"))
        yield from _of_layers(groups[key], inner, f"{before}{names[key]}/")


def _of_layer(group, before: str, has_statistics: bool) -> Iterator[tuple[str, list[int]]]:
    """The variables of a layer and of its parts, as the cell of an LSTM."""
    own = dict(group.get("vars", {}))
    for number in sorted(own, key=int):
        if own[number].dtype.kind == "f":
            left = len(own) - int(number)
            name = {2: "moving_mean", 1: "moving_variance"}.get(left, number) if has_statistics else number
            yield f"{before}{name}", [int(extent) for extent in own[number].shape]
    for key in group:
        if key not in ("vars", "layers") and not key.startswith("seed_generator"):
            yield from _of_layer(group[key], f"{before}{key}/", key.startswith("batch_normalization"))


def _onnx(file, size: int, path: str) -> Iterator[tuple[str, list[int]]]:
    onnx = _library("onnx", path)
    if size > MOST_ONNX_BYTES:
        raise WrongSetting(
            "from", path, f"a file of at most {MOST_ONNX_BYTES // 2**30} GiB, weights in files beside it"
        )
    try:
        model = onnx.load(file, load_external_data=False)
    except Exception as error:  # of Protocol Buffers, whose classes differ by version
        raise WrongSetting("from", path, f"a whole .onnx file ({type(error).__name__})") from error
    kinds = onnx.TensorProto
    floats = (kinds.FLOAT, kinds.FLOAT16, kinds.BFLOAT16, kinds.DOUBLE)
    for tensor in model.graph.initializer:
        if tensor.data_type in floats:
            yield tensor.name, [int(extent) for extent in tensor.dims]


def _library(name: str, path: str):
    """An optional package.

    Raises:
        WrongSetting: it is not installed.
    """
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise WrongSetting("from", path, f"with the Python package {name}: pip install {name}") from error


READERS: dict[str, Callable] = {".safetensors": _safetensors, ".keras": _keras, ".onnx": _onnx}
