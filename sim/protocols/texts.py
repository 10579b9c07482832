"""Today's protocols as texts of the language (sim.texts), with settings that mean the same."""

from __future__ import annotations

from sim.language.text import Text
from sim.protocols.amb import AnytimeMinibatch
from sim.protocols.base import Protocol
from sim.protocols.ps_layers import LayerwiseServers
from sim.protocols.ps_sync import BackupWorkers, SynchronousServers
from sim.texts import TEXTS


def text_of(protocol: Protocol, servers: int, workers: int, rows: bool = False) -> Text | None:
    """The text of a job's protocol; None if there is none.

    Args:
        servers: parameter servers.
        workers: 0 is one process alone.
        rows: whether rows of sparse variables travel between servers and workers (sim.job.traffic.Traffic.sends_rows).
    """
    way = WAYS.get(type(protocol).__name__)
    if workers == 0:
        timed = (protocol.time_limit_s, protocol.partitions) if isinstance(protocol, AnytimeMinibatch) else ()
        return TEXTS["alone"](*timed)
    if rows and type(protocol) is SynchronousServers and protocol.barrier:
        return TEXTS["ps-rows"](servers, local_aggregation=False)
    return way(protocol, servers) if way else None


def _synchronous(of: SynchronousServers, servers: int) -> Text:
    backup = of.backup if isinstance(of, BackupWorkers) else 0
    return TEXTS["ps-barrier" if of.barrier else "ps-sync"](servers, backup)


def _layerwise(of: LayerwiseServers, servers: int) -> Text | None:
    return None if of.barrier or of.local_aggregation else TEXTS["ps-layers"](servers)


WAYS = {
    "AnytimeMinibatch": lambda of, _: TEXTS["amb"](of.time_limit_s, of.partitions),
    "AnytimeDelayedGradients": lambda of, _: TEXTS["amb-dg"](
        of.delay_std_s, of.time_limit_s, of.partitions, of.window_s
    ),
    "Hybrid": lambda of, servers: TEXTS["hybrid"](servers, of.local_aggregation),
    "FixedMinibatch": lambda of, _: TEXTS["fmb"](),
    "KBatchAsynchronous": lambda of, _: TEXTS["kbatch-async"](of.delay_std_s, of.gradients),
    "AsynchronousServers": lambda _, servers: TEXTS["ps-async"](servers),
    "StaleSynchronousServers": lambda of, servers: TEXTS["ps-ssp"](servers, of.staleness),
    "SynchronousServers": _synchronous,
    "BackupWorkers": _synchronous,
    "LayerwiseServers": _layerwise,
}
