"""The names of our modules: `sim.run` in the source tree, `trainsim.sim.run` where a wheel has put all packages into `trainsim`."""

from __future__ import annotations

OUTER = "trainsim"
PACKAGE = __name__.removesuffix("sim.base.home")  # "trainsim." in a wheel


def installed(name: str) -> str:
    """The name by which a module is imported here, of its name in the source tree; the start of a name may be given, too.

    >>> installed("sim.run"), installed("trainsim.main")
    ('sim.run', 'trainsim.main')
    """
    return name if name.partition(".")[0] == OUTER else PACKAGE + name
