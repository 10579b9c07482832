"""The text of a job's protocol: its own, or for one of today's the one of sim.texts with settings that mean the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sim import texts
from sim.base.errors import WrongSetting
from sim.language.text import Text
from sim.protocols import PROTOCOLS
from sim.protocols.amb import AnytimeMinibatch
from sim.protocols.horovod import Horovod
from sim.protocols.in_language import InLanguage
from sim.protocols.ps_sync import SynchronousServers


def text_of(scenario) -> Text:
    """What the ranks of a scenario (sim.job.scenario.Scenario) follow.

    Raises:
        WrongSetting: the protocol has no text in the language.
    """
    protocol, servers = scenario.protocol, scenario.servers
    if isinstance(protocol, InLanguage):
        return protocol.text(servers)
    if not scenario.workers:  # one process alone
        timed = (protocol.time_limit_s, protocol.partitions) if isinstance(protocol, AnytimeMinibatch) else ()
        return texts.Alone(*timed)
    if type(protocol) is SynchronousServers and protocol.barrier and scenario.traffic.sends_rows:
        return texts.RowServers(servers, local_aggregation=False)
    is_ours = PROTOCOLS.get(protocol.name) is type(protocol)
    found = WAYS[protocol.name](protocol, servers) if is_ours else None
    if found is None:
        raise WrongSetting("--protocol", str(protocol), "a protocol that has a text in the language of named vectors")
    return found


def _synchronous(of: SynchronousServers, servers: int) -> Text:
    backup = getattr(of, "backup", 0)
    return texts.BarrierServers(servers, backup) if of.barrier else texts.SynchronousServers(servers, backup)


def _horovod(of: Horovod) -> Text:
    """Without a cycle time a background thread sums gradients as soon as all ranks have them: PyTorch's DDP."""
    if not of.cycle_s:
        return texts.Ddp(of.fusion_bytes / 2**20, algorithm=of.algorithm)
    return texts.Horovod(of.algorithm, of.fusion_bytes, of.cycle_s, of.order, of.by_name)


WAYS: dict[str, Callable[[Any, int], Text | None]] = {
    "amb": lambda of, _: texts.AnytimeMinibatch(of.time_limit_s, of.partitions),
    "amb-dg": lambda of, _: texts.AnytimeDelayedGradients(of.delay_std_s, of.time_limit_s, of.partitions, of.window_s),
    "hybrid": lambda of, servers: texts.Hybrid(servers, of.algorithm, of.local_aggregation),
    "allreduce": lambda of, _: texts.Allreduce(of.algorithm, of.fused, of.sparse_as_dense),
    "horovod": lambda of, _: _horovod(of),
    "fmb": lambda *_: texts.FixedMinibatch(),
    "kbatch-async": lambda of, _: texts.KBatchAsynchronous(of.delay_std_s, of.gradients),
    "ps-async": lambda _, servers: texts.AsynchronousServers(servers),
    "ps-ssp": lambda of, servers: texts.StaleSynchronousServers(servers, of.staleness),
    "ps-sync": _synchronous,
    "ps-backup": _synchronous,
    "ps-layers": lambda of, servers: texts.LayerwiseServers(servers, of.barrier, of.local_aggregation),
}
