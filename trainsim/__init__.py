"""All that programs use, each loaded when it is first used; and the command `trainsim`, which runs each command by a name.

>>> import trainsim
>>> job = trainsim.Scenario(trainsim.make_protocol("amb"), trainsim.read_workload("mnist"), workers=4, steps=50)
>>> found = trainsim.simulate(job, replications=5)
>>> found.step_s.shape
(5, 50)

A protocol or law of one's own imports from trainsim.language, trainsim.texts, trainsim.laws and trainsim.base (see trainsim.aliases).

Programs that train get the recorder from here: `from trainsim import Recorder`. It loads nothing but Python's own library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from trainsim import aliases

if TYPE_CHECKING:
    from real.learning.learning import learn
    from real.training.trainee import Training
    from sim import laws, protocols
    from sim.answers.result import Result
    from sim.base.errors import RunFailed, WrongSetting
    from sim.job.scenario import Scenario
    from sim.model.modules import model
    from sim.model.workload import Variable, Workload
    from sim.model.workload import read as read_workload
    from sim.plan import plan
    from sim.platform.cluster import Cluster, Host, Link
    from sim.platform.cluster import read as read_cluster
    from sim.protocols import make as make_protocol
    from sim.recording.traces import Trace
    from sim.recording.traces import read as read_trace
    from sim.simulation import simulate
    from sim.stragglers import read as read_stragglers
    from sim.studies.asking import what_if, why
    from sim.sweep import sweep
    from trainsim.profiles import Profile, check, fit
    from trainsim.recording.recorder import Recorder

_HOMES = {  # module, or module:name where the name there is another; module: of a module itself
    "Cluster": "sim.platform.cluster",
    "Host": "sim.platform.cluster",
    "Link": "sim.platform.cluster",
    "Profile": "trainsim.profiles",
    "Recorder": "trainsim.recording.recorder",
    "Result": "sim.answers.result",
    "RunFailed": "sim.base.errors",
    "Scenario": "sim.job.scenario",
    "Trace": "sim.recording.traces",
    "Training": "real.training.trainee",
    "Variable": "sim.model.workload",
    "Workload": "sim.model.workload",
    "WrongSetting": "sim.base.errors",
    "check": "trainsim.profiles",
    "fit": "trainsim.profiles",
    "laws": "sim.laws:",
    "learn": "real.learning.learning",
    "make_protocol": "sim.protocols:make",
    "model": "sim.model.modules",
    "plan": "sim.plan",
    "protocols": "sim.protocols:",
    "read_cluster": "sim.platform.cluster:read",
    "read_stragglers": "sim.stragglers:read",
    "read_trace": "sim.recording.traces:read",
    "read_workload": "sim.model.workload:read",
    "simulate": "sim.simulation",
    "sweep": "sim.sweep",
    "what_if": "sim.studies.asking",
    "why": "sim.studies.asking",
}

__all__ = [*_HOMES]  # noqa: PLE0604 all are names

aliases.add()


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sim.base.home import installed

    module, colon, there = _HOMES[name].partition(":")
    home = import_module(installed(module))
    globals()[name] = home if colon and not there else getattr(home, there or name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted(__all__)
