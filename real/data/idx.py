"""MNIST as Y. LeCun's idx files, plain or gzipped: a folder of the four, or the path of one of them."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import numpy as np

from real.data.pictures import Raw

NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
UNSIGNED_BYTE = 8  # the third byte of the magic number; the fourth counts dimensions


def recognises(path: Path) -> bool:
    """Whether a folder holds any of the four files, or a path is one of them."""
    if path.is_file():
        return path.name.removesuffix(".gz") in NAMES
    return any(path.glob("*-ubyte")) or any(path.glob("*-ubyte.gz"))


def read(path: Path) -> Raw:
    """Pictures (samples, 28, 28) and labels, unsigned bytes.

    Raises:
        OSError, ValueError: a file is missing or malformed.
    """
    folder = path.parent if path.is_file() else path
    return Raw(*(_array(_file(folder, name)) for name in NAMES))


def _file(folder: Path, name: str) -> Path:
    plain, zipped = folder / name, folder / f"{name}.gz"
    return zipped if zipped.exists() and not plain.exists() else plain


def _array(path: Path) -> np.ndarray:
    content = _content(path)
    if len(content) < 4 or content[:3] != bytes((0, 0, UNSIGNED_BYTE)):
        raise ValueError(f"{path.name} is no idx file of unsigned bytes")
    start = 4 + 4 * content[3]
    shape = np.frombuffer(content[4:start], ">u4").astype(int)
    if len(content) != start + shape.prod():
        raise ValueError(f"{path.name} is cut short, or too long")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def _content(path: Path) -> bytes:
    try:
        return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path.name} is no gzip file: {error}") from error
