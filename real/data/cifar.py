"""CIFAR-10, "python version" (A. Krizhevsky, 2009): a folder with data_batch_1 to data_batch_5 and test_batch.

The files are pickles, and pickles can run code: nothing is unpickled but arrays, numbers, text, lists and dicts.
"""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np

from real.data.pictures import Raw

TRAIN = tuple(f"data_batch_{i}" for i in range(1, 6))
TEST = ("test_batch",)
ALLOWED = {  # what an array is rebuilt with; the rest of a safe pickle needs no import
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.numeric", "_frombuffer"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("_codecs", "encode"),
}


def recognises(path: Path) -> bool:
    """Whether a folder holds a first training file."""
    return (path / TRAIN[0]).is_file()


def read(path: Path) -> Raw:
    """Pictures (samples, 32, 32, 3) and labels, unsigned bytes.

    Raises:
        OSError, ValueError: a file is missing, malformed or unsafe.
    """
    return Raw(*_joined(path, TRAIN), *_joined(path, TEST))


def _joined(folder: Path, names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    parts = [_batch(folder / name) for name in names]
    return np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts])


def _batch(path: Path) -> tuple[np.ndarray, np.ndarray]:
    content = _unpickled(path)
    try:
        x, y = np.asarray(content[b"data"], np.uint8), np.asarray(content[b"labels"], np.int64)
        return x.reshape(len(y), 3, 32, 32).transpose(0, 2, 3, 1), y
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path.name} is no CIFAR-10 batch: {error!r}") from error


def _unpickled(path: Path):
    with path.open("rb") as file:
        try:
            return _ArraysOnly(file, encoding="bytes").load()
        except pickle.UnpicklingError as error:
            raise ValueError(f"{path.name}: {error}") from error
        except Exception as error:  # a broken pickle may raise anything
            raise ValueError(f"{path.name} is no pickle: {error!r}") from error


class _ArraysOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str):
        module = module.replace("numpy.core.", "numpy._core.")  # renamed in NumPy 2
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"refuses to import {module}.{name}")
        return super().find_class(module, name)
