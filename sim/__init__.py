"""Simulate distributed training: ranks on the hosts of a cluster run a protocol; a trace records what they did.

From Python:

>>> from sim import Scenario, protocols, read_workload, simulate
>>> job = Scenario(protocols.make("amb", ["time_limit_s=0.1"]), read_workload("mnist"), workers=4, steps=50)
>>> found = simulate(job, replications=5)
>>> found.world, found.step_s.shape, found.idle_fraction.shape
('vector', (5, 50), (5, 5))
>>> list(found.to_frame().columns)
['replication', 'step', 'step_s', 'samples']

Many scenarios at once, on all cores: `sim.sweep`. A name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from sim.version import VERSION

__version__ = VERSION

if TYPE_CHECKING:
    from sim import laws, protocols
    from sim.cluster import Cluster, Host, Link
    from sim.cluster import read as read_cluster
    from sim.costs import Costs, Line
    from sim.errors import RunFailed, WrongSetting
    from sim.result import Result
    from sim.scenario import Scenario
    from sim.simulation import simulate
    from sim.stragglers import read as read_stragglers
    from sim.traces import Trace
    from sim.traces import read as read_trace
    from sim.workload import Variable, Workload
    from sim.workload import read as read_workload

__all__ = [
    "Cluster",
    "Costs",
    "Host",
    "Line",
    "Link",
    "Result",
    "RunFailed",
    "Scenario",
    "Trace",
    "Variable",
    "Workload",
    "WrongSetting",
    "laws",
    "protocols",
    "read_cluster",
    "read_stragglers",
    "read_trace",
    "read_workload",
    "simulate",
]

_HOMES = {  # module:name; without a name the module itself
    **{name: f"cluster:{name}" for name in ("Cluster", "Host", "Link")},
    **{name: f"costs:{name}" for name in ("Costs", "Line")},
    **{name: f"errors:{name}" for name in ("RunFailed", "WrongSetting")},
    **{name: f"workload:{name}" for name in ("Variable", "Workload")},
    **{name: f"{name}:" for name in ("laws", "protocols")},
    **{f"read_{name}": f"{name}:read" for name in ("cluster", "stragglers", "workload")},
    "Result": "result:Result",
    "Scenario": "scenario:Scenario",
    "Trace": "traces:Trace",
    "read_trace": "traces:read",
    "simulate": "simulation:simulate",
}


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'sim' has no attribute {name!r}")
    module, _, there = _HOMES[name].partition(":")
    home = import_module(f"sim.{module}")
    globals()[name] = getattr(home, there) if there else home
    return globals()[name]


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
