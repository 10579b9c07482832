"""Texts that train in simulated time: what they compute is compared with their definitions."""

from __future__ import annotations

from sim.language.learning.chain import Chain
from sim.language.learning.values import Values

__all__ = ["Chain", "Values"]
