"""Seconds of a core that a row took, where ranks shared the cores of their host."""

from __future__ import annotations

import numpy as np

from calibration.placement import Placement
from sim.cpu import rate

BUSY = ("input", "compute", "pack", "reduce", "update", "evaluate")


def core_seconds(rows, place: Placement, contention: float = 0.0) -> np.ndarray:
    """Seconds of a core, shape (rows,); the seconds elapsed where no more ranks were busy than the host has cores.

    As the event world has it (sim.cpu.rate): n busy ranks on c cores each get min(1, c / n) of one, less contention. A
    profile holds what work costs a core, and the simulator shares the cores; without this the sharing would count twice.

    Args:
        rows: a trace's.
        place: where the ranks sat.
        contention: of the hosts' cores, see sim.cluster.Host.
    """
    seconds = (rows["end_s"] - rows["start_s"]).to_numpy(float, copy=True)
    hosts, ranks = np.asarray(place.of_rank), rows["rank"].to_numpy(int)
    host, (cores, machine_of_rank) = hosts[ranks], place.pools()
    machine = np.asarray(machine_of_rank)[ranks]
    busy = rows["activity"].isin(BUSY).to_numpy() | _copies(rows, host, hosts)
    for index, count in enumerate(cores):
        here = busy & (machine == index)
        if here.any() and machine_of_rank.count(index) > 1:
            seconds[here] = _shared(
                rows["start_s"].to_numpy(float)[here], rows["end_s"].to_numpy(float)[here], count, contention
            )
    return seconds


def _copies(rows, host: np.ndarray, hosts: np.ndarray) -> np.ndarray:
    """Which rows receive from a rank of the same host: a core copies the bytes, no port moves them."""
    return (rows["activity"] == "receive").to_numpy() & (host == hosts[rows["peer"].to_numpy(int)])


def _shared(start_s: np.ndarray, end_s: np.ndarray, cores: int, contention: float) -> np.ndarray:
    """The integral of sim.cpu.rate over each row, exact, for `busy` is constant between starts and ends."""
    times_s = np.concatenate([start_s, end_s])
    order = np.argsort(times_s, kind="stable")
    change = np.repeat([1, -1], len(start_s))[order]
    busy = np.maximum(np.cumsum(change)[:-1], 1)
    virtual_s = np.concatenate([[0.0], np.cumsum(np.diff(times_s[order]) * rate(busy, cores, contention))])
    at_s = np.empty(len(times_s))
    at_s[order] = virtual_s
    return at_s[len(start_s) :] - at_s[: len(start_s)]
