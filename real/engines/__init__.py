"""The registry of engines: what computes gradients and updates parameters in a rank. A new engine is a class of `entries`, and a line."""

from __future__ import annotations

from real.engines.entries import ByNumpy, ByTensorFlow, Engine
from sim.base.errors import WrongSetting

ENGINES: dict[str, Engine] = {"tensorflow": ByTensorFlow(), "numpy": ByNumpy()}
DEFAULT = "tensorflow"


def engine_of(name: str) -> Engine:
    """An engine by its name.

    Raises:
        WrongSetting: there is none.
    """
    if name not in ENGINES:
        raise WrongSetting("--engine", name, ", ".join(ENGINES))
    return ENGINES[name]
