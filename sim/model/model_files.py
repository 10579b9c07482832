"""The variables of a model in a file of another library: names and shapes in the file's order; weights are not kept.

The readers of formats are in `sim/model/files/`. What is no floating point is no parameter, and left out; so are masks and other buffers
that a name gives away. Statistics of batch normalisation and layers that the file says are frozen are not trained. All of that is said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sim.base.errors import WrongSetting
from sim.base.files import reading
from sim.model.files import configuration, keras, onnx, safetensors
from sim.model.files.tensors import Tensor, refuse_pointer, said

CONSTANT = "a model with floating-point variables that are trained"
READERS: dict[str, Callable[[str], tuple[list[Tensor], list[str]]]] = {
    ".safetensors": safetensors.read,
    ".safetensors.index.json": safetensors.read_index,
    ".keras": keras.read,
    ".h5": keras.read_h5,
    ".hdf5": keras.read_h5,
    ".onnx": onnx.read,
}
KERAS = {b"\x89HDF\r\n\x1a\n": keras.read_h5, b"PK\x03\x04": keras.read}  # Keras 2 wrote HDF5 to a file of any name
CONFIGURATION = ".json"
TORCH = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".bin.index.json")
CONVERTED = (
    "no pickle, which could run anything: in Python, "
    'safetensors.torch.save_model(model, "model.safetensors"), or model.save_pretrained(".") of transformers'
)


class Contents(NamedTuple):
    """What a model's file has.

    Args:
        variables: as a workload's file says them.
        notes: what was counted as something else, or left out, with numbers; a line each.
        keys: the others of a workload's file, from which computing follows; none, if the file does not say them.
    """

    variables: list[dict]
    notes: list[str]
    keys: dict[str, Any] | None = None


def read(path: str) -> Contents:
    """The contents of a file.

    Raises:
        WrongSetting: no such file, of no format that is known, or damaged.
    """
    name = path.lower()
    if name.endswith(TORCH):
        raise WrongSetting("from", path, CONVERTED)
    ending = next((ending for ending in READERS if name.endswith(ending)), None)
    if ending is None and name.endswith(CONFIGURATION):
        keys, notes = configuration.read(path)
        return Contents(keys.pop("variables"), notes, keys)
    if ending is None:
        raise WrongSetting("from", path, f"a name that ends in {', '.join(READERS)}, or config.json")
    with reading("from", path), open(path, "rb") as file:
        start = file.read(8)
    refuse_pointer(path, start)
    of_keras = READERS[ending] in KERAS.values()
    reader = next((one for begins, one in KERAS.items() if of_keras and start.startswith(begins)), READERS[ending])
    tensors, notes = reader(path)
    notes = [*notes, *said(tensors)]
    if not any(one.status == "trained" for one in tensors):
        raise WrongSetting("from", path, "; ".join([CONSTANT, *notes]))
    return Contents([one.variable for one in tensors if one.status != "left out"], notes)
