"""The options that only simulations have, and the scenario that is to be simulated."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from sim import options
from sim.base.errors import WrongSetting
from sim.base.ranges import LONGEST_S
from sim.command import Parser
from sim.worlds import WORLDS

if TYPE_CHECKING:
    from sim.job.scenario import Scenario
    from sim.platform.cluster import Cluster

WITHIN_S = 10.0


def simulation_options() -> Parser:
    """A parent parser: how to simulate."""
    parser = Parser(add_help=False)
    group = parser.add_argument_group("the simulation")
    group.add_argument(
        "--world",
        default="auto",
        choices=WORLDS,
        help="the simulator; event: the reference; engine: compiled, with the same answers; auto: whichever is faster",
    )
    group.add_argument(
        "--servers-on",
        default="own",
        metavar="HOSTS",
        help="place of servers; own: on hosts of their own, before the workers; workers: on the workers' hosts",
    )
    group.add_argument(
        "--hosts", type=int, metavar="N", help="so many hosts like those of --cluster, each with a rank for each core"
    )
    group.add_argument(
        "--network", metavar="'25 Gbit/s, 20 us'", help="another bandwidth and latency between the hosts of --cluster"
    )
    group.add_argument(
        "--within",
        type=float,
        metavar="SECONDS",
        help="answer within about this time, from fewer runs or steps if necessary "
        f"(default: {WITHIN_S:g}, or unlimited with --replications or a file to write)",
    )
    return parser


def scenario(
    given: argparse.Namespace,
    read: options.Readers | None = None,
    changed: Callable[[Cluster], Cluster] | None = None,
) -> Scenario:
    """The job to simulate.

    Args:
        changed: what is made of its cluster in the end, whether that is given or assumed.

    Raises:
        WrongSetting: naming the option; or nothing says how long computing takes.
    """
    for name in ("hosts", "network"):
        if (value := getattr(given, name)) is not None and not given.cluster:
            raise WrongSetting(f"--{name}", value, "nothing without --cluster, whose hosts it changes")
    changed = changed or (lambda found: found)
    described = options.scenario(
        given, read=read, reshaped=lambda found: changed(reshaped(given, found)), servers_on=given.servers_on
    )
    if not given.cluster and (other := changed(described.cluster)) is not described.cluster:
        described = replace(described, cluster=other)
    described.check_computing()
    return described


def reshaped(given: argparse.Namespace, cluster: Cluster) -> Cluster:
    """The cluster with as many hosts, and on the network, that the options say.

    Raises:
        WrongSetting: naming the option.
    """
    from sim.platform import other_sizes

    if given.hosts is not None:
        cluster = other_sizes.on_hosts(cluster, given.hosts)
    return cluster if given.network is None else other_sizes.on_network(cluster, given.network)


def within_s(given: argparse.Namespace, whole: bool = False) -> float:
    """Seconds to answer in; infinite if runs are counted, or the first is wanted whole, and no time is given.

    Raises:
        WrongSetting: a number that is not above 0.
    """
    if given.within is None:
        return math.inf if whole or given.replications is not None else WITHIN_S
    if not 0 < given.within <= LONGEST_S:
        raise WrongSetting("--within", given.within, f"seconds above 0, up to {LONGEST_S:,}")
    return given.within
