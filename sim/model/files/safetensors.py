"""Files of safetensors: eight bytes that say how long the header is, and the header in JSON, which needs no library.

Libraries that write such files sort by size and name: the order of creation is lost. A large model is several files, and an index in JSON
says which tensor is where (Hugging Face: model.safetensors.index.json).
"""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sim.base.errors import WrongSetting, printable
from sim.base.files import reading
from sim.model.files import buffers
from sim.model.files.tensors import Status, Tensor, refuse_pointer

MOST_HEADER_BYTES = 32 * 2**20
BLOCK_BYTES = 2**20
SHARD = re.compile(r"(.+)-(\d+)-of-(\d+)\.safetensors")
PART = re.compile(r"consolidated\.\d+\.safetensors|.*mp_rank_\d+.*")
ADAPTER = re.compile(r"(?:^|[._])lora|(?:^|\.)(?:modules_to_save|ia3_l|prompt_embeddings)", re.IGNORECASE)
ADAPTER_ALONE = "adapters alone: the model below them, which is not trained, is in another file"
HEADS = (
    "lm_head.weight",
    "embed_out.weight",
    "output.weight",
    "lm_head.decoder.weight",
    "cls.predictions.decoder.weight",
)
EMBEDDINGS = re.compile(r"(?:^|\.)(?:embed_tokens|wte|word_embeddings|embed_in|tok_embeddings|shared|embed)\.weight$")


class Held(NamedTuple):
    """A tensor as a header has it.

    Args:
        kind: F32, BF16, I64 and so on.
        start, stop: bytes of the file `path`.
    """

    name: str
    shape: tuple[int, ...]
    kind: str
    path: str
    start: int
    stop: int

    @property
    def is_float(self) -> bool:
        """Whether it is of floating point; F8_E8M0 are exponents that blocks of weights share."""
        return self.kind.startswith(("F", "BF")) and self.kind != "F8_E8M0"

    @property
    def is_quantised(self) -> bool:
        """Whether it has weights in few bits: floating point of 8 bits or less, or a matrix of integers."""
        if self.is_float:
            return self.kind.startswith(("F8", "F6", "F4"))
        few_bits = self.kind not in ("BOOL", "I64", "F8_E8M0") and not buffers.kind(self.name, self.shape)
        return few_bits and len(self.shape) > 1 and buffers.last(self.name) != "qzeros"


def read(path: str) -> tuple[list[Tensor], list[str]]:
    """The tensors of one file, and notes."""
    metadata, held = _header(path)
    there = {one.name for one in held}
    tied = [f"tied: {name} is {one}" for name, one in metadata.items() if one in there and name not in there]
    shard = SHARD.fullmatch(Path(path).name)
    several = []
    if shard and int(shard[3]) > 1:
        whole = f"{shard[1]}.safetensors.index.json"
        several = [f"one of {int(shard[3])} files of a model: the others are left out, {whole} names them all"]
    elif PART.fullmatch(Path(path).name):
        several = ["perhaps one of several files of a model: the others are left out"]
    adapter = [ADAPTER_ALONE] if any(ADAPTER.search(name) for name in there) and not _adapted(there) else []
    return list(_tensors(held)), several + [printable(one) for one in tied] + adapter


def read_index(path: str) -> tuple[list[Tensor], list[str]]:
    """The tensors of all files that an index names.

    Raises:
        WrongSetting: it is no index, a file is missing, or does not have what the index says.
    """
    places = _places(path)
    held = []
    for file in sorted(set(places.values())):
        there = _header(str(Path(path).parent / file))[1]
        held += [one for one in there if places.get(one.name) == file]
    found = {one.name for one in held}
    for name, file in places.items():
        if name not in found:
            raise WrongSetting("from", path, f"an index of what its files have: {printable(name)} is not in {file}")
    return list(_tensors(held)), []


def _places(path: str) -> dict[str, str]:
    """The file of each tensor, by an index."""
    wrong = WrongSetting("from", path, "an index of .safetensors files beside it: a weight_map of tensors and files")
    try:
        with reading("from", path), open(path, "rb") as file:
            found = json.loads(file.read(MOST_HEADER_BYTES))["weight_map"]
    except (ValueError, RecursionError, TypeError, KeyError) as error:
        raise wrong from error
    if not isinstance(found, dict) or not found:
        raise wrong
    for file in found.values():
        if not isinstance(file, str) or Path(file).name != file or not file.endswith(".safetensors"):
            raise wrong
    return found


def _header(path: str) -> tuple[dict[str, str], list[Held]]:
    """The metadata and the tensors of a file, which has all bytes that its header says."""
    whole = WrongSetting("from", path, "a whole .safetensors file, with a header in JSON")
    with reading("from", path), open(path, "rb") as file:
        size, start = os.fstat(file.fileno()).st_size, file.read(8)
        refuse_pointer(path, start)
        if len(start) < 8 or not 2 <= struct.unpack("<Q", start)[0] <= min(size - 8, MOST_HEADER_BYTES):
            raise whole
        length = struct.unpack("<Q", start)[0]
        try:
            header = json.loads(file.read(length))
        except (ValueError, RecursionError) as error:
            raise whole from error
    if not isinstance(header, dict):
        raise whole
    metadata = header.pop("__metadata__", {})
    if not all(map(_is_tensor, header.values())):
        raise whole
    data = 8 + length
    if max((tensor["data_offsets"][1] for tensor in header.values()), default=0) + data != size:
        raise whole
    texts = {name: one for name, one in metadata.items() if isinstance(one, str)} if isinstance(metadata, dict) else {}
    return texts, [_held(name, tensor, path, data) for name, tensor in header.items()]


def _held(name: str, tensor: dict, path: str, data: int) -> Held:
    start, stop = tensor["data_offsets"]
    return Held(name, tuple(tensor["shape"]), tensor["dtype"], path, data + start, data + stop)


def _is_tensor(given) -> bool:
    if not isinstance(given, dict) or not isinstance(given.get("dtype"), str):
        return False
    numbers = (given.get("shape"), given.get("data_offsets"))
    if not all(isinstance(each, list) and all(type(n) is int and n >= 0 for n in each) for each in numbers):
        return False
    return len(given["data_offsets"]) == 2


def _tensors(held: list[Held]) -> Iterator[Tensor]:
    """What each is taken for."""
    quantised = {name for one in held if one.is_quantised for name in (one.name, buffers.before(one.name))}
    adapted = _adapted({one.name for one in held})
    tied = _tied(held)
    for one in held:
        yield _tensor(one, quantised, adapted, tied.get(one.name, ""))


def _tensor(one: Held, quantised: set[str], adapted: bool, tied_to: str) -> Tensor:
    """What one is taken for, by its name and its numbers' format: the first of these that holds."""
    last, buffer = buffers.last(one.name), buffers.kind(one.name, one.shape)
    of_weights = buffers.before(one.name) in quantised and not one.is_quantised
    adapts = bool(ADAPTER.search(one.name))
    cases: list[tuple[object, Status, str]] = [
        (of_weights and buffers.SCALES.fullmatch(last), "left out", "scales and zeros of quantised weights"),
        (buffer, "left out", buffer),
        (not one.is_float and one.is_quantised, "left out", "integers, weights that are quantised"),
        (not one.is_float, "left out", "integers"),
        (buffers.is_statistic(one.name), "not trained", buffers.MOVING),
        (adapts and last == "alpha", "left out", "factors of adapters"),
        (tied_to, "left out", f"the same numbers as {printable(tied_to)}"),
        (adapted and not adapts, "not trained", "as adapters alone are trained"),
        (True, "trained", f"floating point of {one.kind[1:2]} bits" if one.is_quantised else ""),
    ]
    return Tensor(one.name, one.shape, *next((status, why) for holds, status, why in cases if holds))


def _adapted(names: set[str]) -> bool:
    """Whether adapters stand beside the layers that they adapt: as peft writes a whole model, and loralib."""
    before = {name[: found.start()] for name in names if (found := ADAPTER.search(name))}
    return any(f"{name}.base_layer.weight" in names or f"{name}.weight" in names for name in before)


def _tied(held: list[Held]) -> dict[str, str]:
    """The heads and embeddings that have the same numbers as an embedding before, and which: most libraries write tied weights once."""
    tables = [one for one in held if EMBEDDINGS.search(one.name)]
    found: dict[str, str] = {}
    for place, one in enumerate([*tables, *(one for one in held if one.name.endswith(HEADS))]):
        before = [other for other in tables[:place] if other.name not in found]
        if first := next((other for other in before if _alike(one, other)), None):
            found[one.name] = first.name
    return found


def _alike(one: Held, other: Held) -> bool:
    """Whether two tensors have the same bytes, and any that is not zero."""
    if (one.shape, one.kind) != (other.shape, other.kind):
        return False
    with open(one.path, "rb") as first, open(other.path, "rb") as second:
        first.seek(one.start), second.seek(other.start)
        left, any_bits = one.stop - one.start, False
        while left > 0:
            block = first.read(min(left, BLOCK_BYTES))
            if not block or block != second.read(len(block)):
                return False
            any_bits, left = any_bits or any(block), left - len(block)
    return any_bits
