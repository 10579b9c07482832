"""Imports that leave out packages which the imported one can do without, and which take longer to load than itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

OF_TENSORFLOW = ("keras", "jax")
OF_KERAS = ("jax", "sklearn", "pandas", "matplotlib")


@contextmanager
def without(*packages: str) -> Iterator[None]:
    """Within, these packages seem not to be installed, unless this process has loaded them; afterwards they can be imported.

    TensorFlow and Keras import each of `OF_TENSORFLOW` and `OF_KERAS` if it is installed. No model of this project needs them, and
    they take more than half of the processor time of a rank's imports.
    """
    absent = [name for name in packages if name not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]  # None: Python raises ModuleNotFoundError
    try:
        yield
    finally:
        for name in absent:
            sys.modules.pop(name, None)
