"""The event world: one text a rank, simulated time, contention for cores and ports. It can run everything."""

from __future__ import annotations

from sim.event.world import EventWorld, run, trace

__all__ = ["EventWorld", "run", "trace"]
