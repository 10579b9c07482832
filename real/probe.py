"""Probe this cluster: `python -m real.probe -o probe.json`. Links and sleeps are measured apart from any training.

A send recorded in training spans its peer's lateness too; a probe's does not. Each message waits as a training rank's does
(a poll, then a receive), so what polling costs is in the latency.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time

import numpy as np

from real import launch
from real.waiting import barrier, poll
from real.worlds.mpi import TAG
from sim import command
from sim.files import write_whole

SIZES_BYTES = (
    65_536,
    262_144,
    1_048_576,
    4_194_304,
    16_777_216,
)  # what parameters and gradients are; MPI sends less eagerly
ROUNDS, WARM_UP = 20, 3
CACHE = np.zeros(8_000_000)  # 64 MB; adding to it leaves the caches as cold as a training step does
SLEEPS_S = (0.002, 0.01, 0.03)


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    argv = sys.argv[1:] if argv is None else argv
    parser = command.Parser(prog="real.probe", description="Measure links and sleeps, for calibration.fit --probe.")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="where the JSON goes")
    given = parser.parse_args(argv)
    if launch.joined():
        from real import ranks

        return ranks.join(lambda comm: work(comm, given.output))
    launch.check_installed("mpi4py")
    launch.launch(launch.command(2, "real.probe", argv))
    return 0


def work(comm, output: str) -> int:
    """What each rank does."""
    measured = measure(comm)
    if comm.rank == 0:
        write(measured, output)
        print(f"real.probe: wrote {output}", file=sys.stderr)
    return 0


def write(measured: dict, path: str) -> None:
    """Write what `measure` found, whole."""
    write_whole(path, lambda temporary: temporary.write_text(json.dumps(measured, indent=1) + "\n"))


def measure(comm) -> dict:
    """Cores, oversleep and the link between ranks 0 and 1: `local` if they share a host, else `network`. Collective."""
    hosts = comm.allgather(socket.gethostname())
    link = link_between(comm) if comm.rank < 2 else None
    barrier(comm)
    found = {"schema": "probe/1", "host": hosts[0], "cores": os.cpu_count(), "oversleep_s": oversleep()}
    found["local" if hosts[0] == hosts[1] else "network"] = link
    return found


def oversleep() -> float:
    """Median seconds by which a sleep outlasts what was asked."""
    over_s = []
    for seconds in SLEEPS_S * 10:
        start_s = time.perf_counter()
        time.sleep(seconds)
        over_s.append(time.perf_counter() - start_s - seconds)
    return float(np.median(over_s))


def link_between(comm) -> dict:
    """LogGP of the link between ranks 0 and 1, from ping-pongs: time = L + o + size x G.

    G is the slope over the sizes (each weighs the same, or only the largest would count), o + L what is left at size 0; of
    that, o is the part spent in the receive call.
    """
    pair = comm.Create_group(comm.group.Incl([0, 1]))
    times = {size: _ping_pong(pair, size) for size in SIZES_BYTES}
    sizes = np.array(SIZES_BYTES, float)
    one_way_s, receive_s = np.array([times[size] for size in SIZES_BYTES]).T
    slope = (one_way_s[-1] - one_way_s[0]) / (sizes[-1] - sizes[0])
    base_s = max(1e-9, float(np.median(one_way_s - slope * sizes)))
    overhead_s = float(np.clip(np.median(receive_s - slope * sizes), 0, base_s))
    return {
        "latency_s": base_s - overhead_s,
        "overhead_s": overhead_s,
        "bandwidth_bytes_per_s": float(1 / slope),
        "one_way_s": {str(size): time_s for size, time_s in zip(SIZES_BYTES, one_way_s.tolist(), strict=True)},
    }


def _ping_pong(pair, size: int) -> tuple[float, float]:
    """Median seconds one way, and of the receive call alone."""
    out, into, peer = np.ones(size, np.uint8), np.zeros(size, np.uint8), 1 - pair.rank
    one_way_s, receive_s = [], []
    for _ in range(WARM_UP + ROUNDS):
        np.add(CACHE, 1, out=CACHE)
        np.add(out, 1, out=out)
        pair.Barrier()
        start_s = time.perf_counter()
        if pair.rank == 0:
            _send(pair, out, peer)
        receive_s.append(_receive(pair, into, peer))
        if pair.rank == 1:
            _send(pair, out, peer)
        one_way_s.append((time.perf_counter() - start_s) / 2)
    return float(np.median(one_way_s[WARM_UP:])), float(np.median(receive_s[WARM_UP:]))


def _send(comm, buffer, peer: int) -> None:
    poll(comm.Isend(buffer, peer, TAG).Test, f"rank {peer}")


def _receive(comm, buffer, peer: int) -> float:
    poll(lambda: comm.Iprobe(peer, TAG), f"rank {peer}")
    start_s = time.perf_counter()
    comm.Recv(buffer, peer, TAG)
    return time.perf_counter() - start_s


if __name__ == "__main__":
    command.run("real.probe", main)
