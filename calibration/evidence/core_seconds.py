"""Seconds of a core that a row took, where ranks shared the cores of their host."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibration.evidence.seats import Placement
from sim.language.hosts import Device
from sim.model.costs import TO_DEVICE, TO_HOST
from sim.platform.polling import polls

BUSY = ("input", "compute", "pack", TO_DEVICE, TO_HOST, "reduce", "update", "evaluate")


def core_seconds(rows, place: Placement, contention: float = 0.0, switching: float = 0.0) -> np.ndarray:
    """Seconds of a core, shape (rows,); the seconds elapsed where no more ranks were busy than the host has cores.

    Tasks take turns (sim.language.hosts). On average n busy ranks on c cores each get min(1, c / n) of a core, less contention.
    A waiting rank counts for the share of its wait that its polls take. A profile holds the time of work on a core of its own,
    because the simulator shares the cores again: the sharing would otherwise count twice.

    Args:
        rows: a trace's.
        place: the hosts that the ranks were on.
        contention, switching: of the hosts' cores and GPUs, see sim.platform.cluster.Host. What GPUs compute takes no core.
    """
    lasted_s = (rows["end_s"] - rows["start_s"]).to_numpy(float)
    seconds = lasted_s.copy()
    on_gpus = (rows["activity"] == "compute").to_numpy() & bool(place.gpus)
    if on_gpus.any():
        seconds[on_gpus] = _gpu_seconds(rows[on_gpus], place, switching)
    hosts, ranks = np.asarray(place.of_rank), rows["rank"].to_numpy(int)
    host, (cores, machine_of_rank) = hosts[ranks], place.pools()
    machine = np.asarray(machine_of_rank)[ranks]
    # A core copies the bytes of a message within a host, and no port moves them.
    copies = (rows["activity"] == "receive").to_numpy() & (host == hosts[rows["peer"].to_numpy(int)])
    busy = rows["activity"].isin(BUSY).to_numpy() & ~on_gpus | copies
    polling = np.where(busy, 0.0, _polls(rows, seconds, place))
    for index, count in enumerate(cores):
        here = (busy | (polling > 0)) & (machine == index)
        if here.any() and machine_of_rank.count(index) > 1:
            times_s = rows["start_s"].to_numpy(float)[here], rows["end_s"].to_numpy(float)[here]
            weights = [busy[here].astype(int), polling[here]]
            seconds[here] = _integral(*times_s, weights, Device(count, 0.0, contention).pace)
    return np.where(busy | on_gpus, seconds, lasted_s)


def _gpu_seconds(rows, place: Placement, switching: float) -> np.ndarray:
    """Seconds that each computation would have taken alone on its GPU: the integral of its pace."""
    pace, hosts = Device(1, 0.0, switching=switching).pace, place.of_rank
    # Ranks of a host take its GPUs in turn.
    gpus = [(host, hosts[:rank].count(host) % place.gpus) for rank, host in enumerate(hosts)]
    gpu = np.array([gpus.index(of) for of in gpus])[rows["rank"].to_numpy(int)]
    start_s, end_s = rows["start_s"].to_numpy(), rows["end_s"].to_numpy()
    seconds = end_s - start_s
    for number in np.unique(gpu):
        here = gpu == number
        seconds[here] = _integral(start_s[here], end_s[here], [np.ones(here.sum(), int)], pace)
    return seconds


def _polls(rows, seconds: np.ndarray, place: Placement) -> np.ndarray:
    """The share of each row that polls take of a core, if it is a wait."""
    waits = rows["activity"].isin(("wait", "receive")).to_numpy() & (seconds > 0)
    share = np.zeros(len(rows))
    if place.poll_s:
        share[waits] = place.poll_s * polls(seconds[waits], place.oversleep_s) / seconds[waits]
    return np.minimum(1.0, share)


def _integral(start_s, end_s, weights: list[np.ndarray], pace: Callable[..., float]) -> np.ndarray:
    """The integral over each row of the pace of what is at once: sums of the rows' weights, of the first at least 1.

    It is exact, because these are constant between starts and ends.
    """
    times_s = np.concatenate([start_s, end_s])
    order = np.argsort(times_s, kind="stable")
    first, *others = (np.cumsum(np.concatenate([one, -one])[order])[:-1] for one in weights)
    rates = np.vectorize(pace, otypes=[float])(np.maximum(first, 1), *(np.maximum(other, 0.0) for other in others))
    virtual_s = np.concatenate([[0.0], np.cumsum(np.diff(times_s[order]) * rates)])
    at_s = np.empty(len(times_s))
    at_s[order] = virtual_s
    return at_s[len(start_s) :] - at_s[: len(start_s)]
