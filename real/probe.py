"""Probe this cluster: `python -m real.probe -o probe.json`. Links and sleeps are measured apart from any training."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from statistics import median

from real.launching import mpirun as launch
from real.launching import testbed
from sim import command
from sim.base import home
from sim.base.files import check_output, write_text

SLEEPS_S = (0.002, 0.01, 0.03)


def parser() -> command.Parser:
    """The command line."""
    parser = command.Parser(prog="real.probe", description="Measure links and sleeps, for calibration.fit --probe.")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the result, .json")
    testbed.add_option(parser)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    argv = sys.argv[1:] if argv is None else argv
    given = parser().parse_args(argv)
    if launch.joined():
        from real.launching import ranks

        return ranks.join("real.probe", lambda comm: work(comm, given.output))
    check_output("--output", given.output, (".json",))
    home.need("mpi4py")
    needed = ranks_for(given.testbed)
    with testbed.asked(given.testbed, needed) as hosts:
        launch.launch(launch.command(needed, "real.probe", argv, hosts=hosts))
    return 0


def ranks_for(testbed_rate: str | None) -> int:
    """The number of ranks of a probe: three hosts show how messages share a port."""
    return 3 if testbed_rate else 2


def work(comm, output: str) -> int:
    """The work of each rank."""
    measured = measure(comm)
    if comm.rank == 0:
        write(measured, output)
        print(f"{command.called('real.probe')}: wrote {output}", file=sys.stderr)
    return 0


def write(measured: dict, path: str) -> None:
    """Write what `measure` found, whole."""
    write_text(path, json.dumps(measured, indent=1) + "\n")


def measure(comm) -> dict:
    """Cores, oversleep and the link between ranks 0 and 1: `local` if they share a host, else `network` and `library`. Collective."""
    from real.launching.polling import barrier
    from real.probing import links, ports

    hosts, found, slept_s = comm.allgather(socket.gethostname()), {}, oversleeps()
    over_s = median(slept_s)
    if comm.rank < 2:
        pair = comm.Create_group(comm.group.Incl([0, 1]))
        found = {"local": links.within(pair, over_s)} if hosts[0] == hosts[1] else links.between(pair, over_s)
    barrier(comm)  # ranks sleep meanwhile: one that waited in MPI would take a core from the others
    if comm.rank < 3 and len(set(hosts[:3])) == 3:
        trio = comm.Create_group(comm.group.Incl([0, 1, 2]))
        link = found.get("network")
        shared = {
            "unfairness": ports.unfairness(trio),
            "ramp_bytes": ports.ramp_bytes(trio, link),
            "queue_bytes": ports.queue_bytes(trio, link),
        }
        found = {name: link | shared for name, link in found.items()}
    barrier(comm)
    sleeps = {"oversleep_s": over_s, "oversleep_spread": _spread(slept_s)}
    return {"schema": "probe/2", "host": hosts[0], "cores": os.cpu_count(), **sleeps, **found}


def _spread(slept_s: list[float]) -> float:
    """Of the median, from one time to another."""
    from real.probing import link_from_times as wire

    each = len(slept_s) // wire.TIMES
    return wire.spread([median(slept_s[start : start + each]) for start in range(0, len(slept_s), each)])


def oversleeps() -> list[float]:
    """Seconds by which sleeps outlast what was asked."""
    over_s = []
    for seconds in SLEEPS_S * 10:
        start_s = time.perf_counter()
        time.sleep(seconds)
        over_s.append(time.perf_counter() - start_s - seconds)
    return over_s


if __name__ == "__main__":
    command.run("real.probe", main)
