"""Collective calls of ranks that share hosts: they copy from one another, and take turns at the ports of their host."""

from __future__ import annotations

from sim.vector.shared.calls import SharedCalls
from sim.vector.shared.neighbours import Neighbours

__all__ = ["Neighbours", "SharedCalls"]
