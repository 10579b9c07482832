"""The vector world: all ranks and all replications at once, as arrays."""

from __future__ import annotations

from sim.vector.at_once import run
from sim.vector.together import Refused
from sim.vector.world import VectorWorld, refusal

__all__ = ["Refused", "VectorWorld", "refusal", "run"]
