"""Files of Keras, which h5py reads.

- .keras: a zip with config.json, whose layers are in order, and model.weights.h5. Files have no names of variables: those of layers, or of
  the attributes of a model that is a class of its own, and numbers.
- .weights.h5 is the second of these alone; .h5 as Keras 2 wrote it has names of variables, and the configuration if it is a whole model.

A layer below one that is not trained is not trained either, whatever its own configuration says (keras.Layer.trainable_variables).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from sim.base.errors import WrongSetting
from sim.base.extras import need
from sim.base.files import reading
from sim.model.files import buffers
from sim.model.files.tensors import Status, Tensor

MOST_CONFIG_BYTES = 32 * 2**20
MOST_PACKED_BYTES = 256 * 2**20  # of a file that is packed within another
NO_LAYERS = ("optimizer", "metrics", "_metrics", "compile_metrics", "loss_tracker")  # of a whole model
FROZEN = "of layers that are not trainable"
UNSAID = "the file does not say which layers are trainable: all are taken as trained"


def read(path: str) -> tuple[list[Tensor], list[str]]:
    """The tensors of a .keras file, and notes."""
    import zipfile

    need("h5py")
    import h5py

    try:
        with reading("from", path), zipfile.ZipFile(path) as packed:
            config, weights = packed.getinfo("config.json"), packed.getinfo("model.weights.h5")
            kept = weights.compress_type == zipfile.ZIP_STORED
            if config.file_size > MOST_CONFIG_BYTES or not (kept or weights.file_size <= MOST_PACKED_BYTES):
                most = f"config.json of at most {MOST_CONFIG_BYTES // 2**20} MiB, weights not packed"
                raise WrongSetting("from", path, most)
            whole = json.loads(packed.read(config))
            with packed.open(weights) as inner, h5py.File(inner, "r") as tree:
                return list(_tree(tree, whole["config"])), [] if "layers" in whole["config"] else [UNSAID]
    except WrongSetting:
        raise
    except Exception as error:  # whatever zipfile, json and h5py make of bytes that are no model
        raise WrongSetting("from", path, f"a whole .keras file ({type(error).__name__})") from error


def read_h5(path: str) -> tuple[list[Tensor], list[str]]:
    """The tensors of an .h5 file, and notes."""
    need("h5py")
    import h5py

    try:
        with reading("from", path), open(path, "rb") as file, h5py.File(file, "r") as tree:
            weights = tree.get("model_weights", tree)
            if not _names(weights, "layer_names"):
                return list(_tree(tree, {})), [UNSAID]
            config = json.loads(tree.attrs["model_config"])["config"] if "model_config" in tree.attrs else {}
            layers = config if isinstance(config, list) else config.get("layers", [])  # Keras 2.2 had a list
            named = {_name(layer): layer for layer in layers}
            return list(_legacy(weights, named)), [] if layers else [UNSAID]
    except WrongSetting:
        raise
    except Exception as error:  # whatever json and h5py make of bytes that are no model
        raise WrongSetting("from", path, f"a whole .h5 file of Keras ({type(error).__name__})") from error


def _name(layer: dict) -> str:
    return layer["config"].get("name") or layer.get("name", "")


def _tree(group, config: dict, before: str = "", frozen: bool = False, kind: str = "") -> Iterator[Tensor]:
    """The variables of a layer, and of all layers below it in their order in its configuration.

    Args:
        config: the layer's; empty if it is not known.
        before: the names of the layers above, each with a slash.
        frozen: whether a layer above is not trained.
        kind: the layer's class, or what its name says.
    """
    frozen = frozen or config.get("trainable") is False
    yield from _own(group.get("vars", {}), before, frozen, kind)
    layers = {_name(layer): layer for layer in config.get("layers", []) if isinstance(layer, dict)}
    places = {name: place for place, name in enumerate(layers)}
    by_key = _keys(layers)
    named = {key: _called(by_key.get(key, key), part) for key, part in group.get("layers", {}).items()}
    for key in sorted(named, key=lambda key: places.get(named[key], len(places))):
        layer = layers.get(named[key], {})
        below = f"{before}{named[key]}/"
        yield from _tree(group["layers"][key], layer.get("config", {}), below, frozen, layer.get("class_name", key))
    for key in group:
        of_training = key.startswith("seed_generator") or (not before and key in NO_LAYERS)
        if key not in ("vars", "layers") and not of_training and hasattr(group[key], "items"):
            part = _part(config, key)
            kind = part.get("class_name", _called(key, group[key]))
            yield from _tree(group[key], part.get("config", {}), f"{before}{key}/", frozen, kind)


def _keys(layers: dict[str, dict]) -> dict[str, str]:
    """The names of layers by their keys in a file: the class in snake case, numbered (keras.src.saving.saving_lib)."""
    found, times = {}, Counter[str]()
    for name, layer in layers.items():
        words = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", layer.get("class_name", "").rpartition(">")[2])
        key = re.sub("([a-z])([A-Z])", r"\1_\2", words).lower()
        found[f"{key}_{times[key]}" if times[key] else key] = name
        times[key] += 1
    return found


def _part(config: dict, key: str) -> dict[str, Any]:
    """The configuration of a part that is no layer of a list: a cell, what a wrapper wraps."""
    named = config.get(key, config.get("layer") if key == "forward_layer" else None)
    return named if isinstance(named, dict) and isinstance(named.get("config"), dict) else {}


def _called(key: str, group) -> str:
    return str(group["vars"].attrs.get("name", key)) if "vars" in group else key


def _own(group, before: str, frozen: bool, kind: str) -> Iterator[Tensor]:
    """The variables of a layer itself, numbered."""
    numbers = sorted(group, key=int)
    shapes = [tuple(map(int, group[number].shape)) for number in numbers]
    moving = _moving(shapes, kind)
    for number, shape in zip(numbers, shapes, strict=True):
        is_float = group[number].dtype.kind == "f" or group[number].attrs.get("dtype") == "bfloat16"
        if not is_float:
            yield Tensor(f"{before}{number}", shape, "left out", "integers")
            continue
        name = moving.get(len(shapes) - int(number), number)
        why = buffers.MOVING if name != number or kind == "Normalization" else FROZEN * frozen
        yield Tensor(f"{before}{name}", shape, "not trained" if why else "trained", why)


def _moving(shapes: list[tuple[int, ...]], kind: str) -> dict[int, str]:
    """The names of batch normalisation's last variables, counted from the end; no other layer has four equal vectors."""
    four = len(shapes) == 4 and len(set(shapes)) == 1 and len(shapes[0]) == 1
    batch = kind.lower().replace("_", "").startswith(("batchnormalization", "syncbatchnormalization"))
    return {2: "moving_mean", 1: "moving_variance"} if batch or four else {}


def _legacy(weights, layers: dict[str, dict]) -> Iterator[Tensor]:
    """The variables of a file as Keras 2 wrote it: layers have lists of names."""
    own = "top_level_model_weights"
    for layer in [*_names(weights, "layer_names"), *([own] if own in weights else [])]:
        group, frozen = weights[layer], _frozen(layers.get(layer, {}))
        for name in _names(group, "weight_names"):
            yield _of_name(name.removesuffix(":0"), group[name], bool(frozen.intersection((layer, *name.split("/")))))


def _names(group, attribute: str) -> list[str]:
    """A list of names; a long one is in several attributes, numbered."""
    parts = (
        [attribute]
        if attribute in group.attrs
        else sorted(
            (name for name in group.attrs if name.removeprefix(attribute).isdecimal()),
            key=lambda name: int(name.removeprefix(attribute)),
        )
    )
    return [one.decode() if isinstance(one, bytes) else str(one) for part in parts for one in group.attrs[part]]


def _frozen(layer: dict) -> set[str]:
    """The names of the layers that are not trained, of one and those below it; a wrapper is as the layer that it wraps."""
    config = layer.get("config", {})
    wrapped = [_frozen(one) for one in (config.get("layer"),) if isinstance(one, dict)]
    below = [_frozen(one) for one in config.get("layers", []) if isinstance(one, dict)]
    inner = config["layer"]["config"].get("name") if wrapped else None
    itself = config.get("trainable") is False or any(inner in names for names in wrapped)
    return set().union(*wrapped, *below, [config.get("name", "")] if itself else [])


def _of_name(name: str, values, frozen: bool) -> Tensor:
    shape = tuple(map(int, values.shape))
    if values.dtype.kind != "f":
        return Tensor(name, shape, "left out", "integers")
    why = buffers.MOVING if buffers.is_statistic(name) else FROZEN * frozen
    status: Status = "not trained" if why else "trained"
    return Tensor(name, shape, status, why)
