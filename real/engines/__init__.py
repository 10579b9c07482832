"""The registry of engines: what computes gradients and updates parameters in a rank. A new engine is a file here, and a line."""

from __future__ import annotations

from real.engines.engine import Engine
from real.engines.jax_engine import ByJax
from real.engines.numpy_engine import ByNumpy
from real.engines.tensorflow_engine import ByTensorFlow
from sim.base.errors import WrongSetting

ENGINES: dict[str, Engine] = {"tensorflow": ByTensorFlow(), "jax": ByJax(), "numpy": ByNumpy()}
DEFAULT = "tensorflow"


def engine_of(name: str) -> Engine:
    """An engine by its name.

    Raises:
        WrongSetting: there is none.
    """
    if name not in ENGINES:
        raise WrongSetting("--engine", name, ", ".join(ENGINES))
    return ENGINES[name]
