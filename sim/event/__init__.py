"""The event world: one text a rank, simulated time, contention for cores and ports. It can run everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.event.world import EventWorld, run, trace

__all__ = ["EventWorld", "run", "trace"]


def __getattr__(name: str):
    """SimPy is loaded when something is simulated."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sim.event import world

    globals()[name] = getattr(world, name)
    return globals()[name]
