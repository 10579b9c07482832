"""Arrays of what is answered."""

from __future__ import annotations

from typing import Any

import numpy as np


def read_only(answer: Any) -> None:
    """Make the arrays of an object such that nobody writes into them by mistake: later figures would follow."""
    for name, value in vars(answer).items():
        if isinstance(value, np.ndarray):
            vars(answer)[name] = value.view()
            vars(answer)[name].flags.writeable = False
