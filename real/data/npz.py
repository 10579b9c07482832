"""One NumPy archive with x_train, y_train, x_test and y_test, as Keras names them."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from real.data.pictures import Raw

KEYS = ("x_train", "y_train", "x_test", "y_test")


def recognises(path: Path) -> bool:
    """Whether it is a file that ends in .npz."""
    return path.is_file() and path.suffix == ".npz"


def read(path: Path) -> Raw:
    """Pictures and labels; (samples, 1) labels are flattened. Pickled objects are refused.

    Raises:
        OSError, ValueError: no archive, or one without the four arrays.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            train_x, train_y, test_x, test_y = (archive[key] for key in KEYS)
    except (KeyError, EOFError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path.name} is no archive of four plain arrays: {type(error).__name__}") from error
    return Raw(train_x, train_y.reshape(-1), test_x, test_y.reshape(-1))
