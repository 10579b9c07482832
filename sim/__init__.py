"""Simulate distributed training: ranks on the hosts of a cluster run a protocol; a trace records their activities.

From Python:

>>> from sim import Scenario, protocols, read_workload, simulate
>>> job = Scenario(protocols.make("amb", ["time_limit_s=0.1"]), read_workload("mnist"), workers=4, steps=50)
>>> found = simulate(job, replications=5)
>>> found.world, found.step_s.shape, found.idle_fraction.shape
('event', (5, 50), (5, 5))
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
    from sim.answers.result import Result
    from sim.base.errors import RunFailed, WrongSetting
    from sim.job.scenario import Scenario
    from sim.model.costs import Costs, Line
    from sim.model.workload import Variable, Workload
    from sim.model.workload import read as read_workload
    from sim.platform.cluster import Cluster, Host, Link
    from sim.platform.cluster import read as read_cluster
    from sim.recording.traces import Trace
    from sim.recording.traces import read as read_trace
    from sim.simulation import simulate
    from sim.stragglers import read as read_stragglers

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
    "Cluster": "platform.cluster:Cluster",
    "Host": "platform.cluster:Host",
    "Link": "platform.cluster:Link",
    "Costs": "model.costs:Costs",
    "Line": "model.costs:Line",
    "RunFailed": "base.errors:RunFailed",
    "WrongSetting": "base.errors:WrongSetting",
    "Variable": "model.workload:Variable",
    "Workload": "model.workload:Workload",
    "laws": "laws:",
    "protocols": "protocols:",
    "read_cluster": "platform.cluster:read",
    "read_stragglers": "stragglers:read",
    "read_workload": "model.workload:read",
    "Result": "answers.result:Result",
    "Scenario": "job.scenario:Scenario",
    "Trace": "recording.traces:Trace",
    "read_trace": "recording.traces:read",
    "simulate": "simulation:simulate",
}


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, there = _HOMES[name].partition(":")
    home = import_module(f"{__name__}.{module}")
    globals()[name] = getattr(home, there) if there else home
    return globals()[name]


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
