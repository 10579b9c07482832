"""Today's protocols as texts of the language (sim.texts), with settings that mean the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sim import texts
from sim.language.text import Text
from sim.protocols.amb import AnytimeMinibatch
from sim.protocols.base import Protocol
from sim.protocols.horovod import Horovod
from sim.protocols.ps_sync import SynchronousServers


def text_of(protocol: Protocol, servers: int, workers: int, rows: bool = False) -> Text | None:
    """The text of a job's protocol; None if there is none.

    Args:
        servers: parameter servers.
        workers: 0 is one process alone.
        rows: whether rows of sparse variables travel between servers and workers (sim.job.traffic.Traffic.sends_rows).
    """
    if workers == 0:
        timed = (protocol.time_limit_s, protocol.partitions) if isinstance(protocol, AnytimeMinibatch) else ()
        return texts.Alone(*timed)
    if rows and type(protocol) is SynchronousServers and protocol.barrier:
        return texts.RowServers(servers, local_aggregation=False)
    way = WAYS.get(type(protocol).__name__)
    return way(protocol, servers) if way else None


def _synchronous(of: SynchronousServers, servers: int) -> Text:
    backup = getattr(of, "backup", 0)
    return texts.BarrierServers(servers, backup) if of.barrier else texts.SynchronousServers(servers, backup)


def _horovod(of: Horovod) -> Text:
    """Without a cycle time a background thread sums gradients as soon as all ranks have them: PyTorch's DDP."""
    if not of.cycle_s:
        return texts.Ddp(of.fusion_bytes / 2**20, algorithm=of.algorithm)
    return texts.Horovod(of.algorithm, of.fusion_bytes, of.cycle_s, of.order, of.by_name)


WAYS: dict[str, Callable[[Any, int], Text | None]] = {
    "AnytimeMinibatch": lambda of, _: texts.AnytimeMinibatch(of.time_limit_s, of.partitions),
    "AnytimeDelayedGradients": lambda of, _: texts.AnytimeDelayedGradients(
        of.delay_std_s, of.time_limit_s, of.partitions, of.window_s
    ),
    "Hybrid": lambda of, servers: texts.Hybrid(servers, of.algorithm, of.local_aggregation),
    "Allreduce": lambda of, _: texts.Allreduce(of.algorithm, of.fused, of.sparse_as_dense),
    "Horovod": lambda of, _: _horovod(of),
    "FixedMinibatch": lambda *_: texts.FixedMinibatch(),
    "KBatchAsynchronous": lambda of, _: texts.KBatchAsynchronous(of.delay_std_s, of.gradients),
    "AsynchronousServers": lambda _, servers: texts.AsynchronousServers(servers),
    "StaleSynchronousServers": lambda of, servers: texts.StaleSynchronousServers(servers, of.staleness),
    "SynchronousServers": _synchronous,
    "BackupWorkers": _synchronous,
    "LayerwiseServers": lambda of, servers: (
        None if of.barrier or of.local_aggregation else texts.LayerwiseServers(servers)
    ),
}
