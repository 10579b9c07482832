"""The options that only simulations have, and the scenario that is to be simulated."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from sim import options
from sim.base.errors import WrongSetting
from sim.base.ranges import LONGEST_S
from sim.command import Parser
from sim.worlds import WORLDS

if TYPE_CHECKING:
    from sim.job.scenario import Scenario
    from sim.platform.cluster import Cluster, Provenance

WITHIN_S = 10.0


def place_options() -> Parser:
    """A parent parser: the hosts that are simulated."""
    parser = Parser(add_help=False)
    group = parser.add_argument_group("the hosts")
    group.add_argument(
        "--servers-on",
        default="own",
        metavar="HOSTS",
        help="place of servers; own: on hosts of their own, before the workers; workers: on the workers' hosts",
    )
    group.add_argument(
        "--hosts",
        type=int,
        metavar="N",
        help="so many hosts like those of --cluster, with a worker in every slot unless --workers says how many",
    )
    group.add_argument(
        "--network", metavar="'25 Gbit/s, 20 us'", help="another bandwidth and latency between the hosts of --cluster"
    )
    return parser


def simulation_options() -> Parser:
    """A parent parser: how to simulate."""
    parser = Parser(add_help=False, parents=[place_options()])
    group = parser.add_argument_group("the simulation")
    group.add_argument(
        "--world",
        default="auto",
        choices=WORLDS,
        help="the simulator; event: the reference; engine: compiled, with the same answers; auto: whichever is faster",
    )
    group.add_argument(
        "--within",
        type=float,
        metavar="SECONDS",
        help="answer within about this time, from fewer runs or steps if necessary "
        f"(default: {WITHIN_S:g}, or unlimited with --replications or a file to write)",
    )
    return parser


def completed(given: argparse.Namespace, read: options.Readers | None = None) -> argparse.Namespace:
    """The options, with values for those that nobody gave and that depend on others.

    A number of hosts has a worker in every slot. So has a model file of the user's own on GPUs; it is trained as the runs that its
    profile was fitted on, or else as PyTorch's DistributedDataParallel does, and nobody induces sleeps there.
    """
    from sim.job.filling import ALL

    found, gpus = argparse.Namespace(**vars(given)), _gpus_of_own_model(given, read or options.Readers())
    if found.workers is None and (gpus or given.hosts is not None):
        found.workers = ALL
    if gpus and isinstance(given.protocol, options.Unsaid):
        found.protocol, settings = _usual(gpus)
        found.set = [*_besides(settings, given.set), *given.set]
    if gpus and isinstance(given.stragglers, options.Unsaid):
        found.stragglers = "none"
    return found


def assumed(given: argparse.Namespace, read: options.Readers, workers: int | None = None) -> str | None:
    """What `completed` has filled in, in a line; None if nothing. `workers` is the number that `all` comes to."""
    found, said = completed(given, read), []
    if found.protocol != given.protocol:
        gpus = _gpus_of_own_model(given, read)
        why = (
            "that of the profile's runs"
            if gpus and _fitted(gpus)
            else "PyTorch's DDP: allreduce beside back-propagation"
        )
        settings = "".join(f" --set {one}" for one in found.set if one not in given.set)
        said.append(f"--protocol {found.protocol}{settings} ({why})")
    if found.workers != given.workers:
        said.append(f"--workers {found.workers}" + (f" ({workers})" if workers else ""))
    if found.stragglers != given.stragglers:
        said.append(f"--stragglers {found.stragglers}")
    return f"assumed, as nobody said: {', '.join(said)}" if said else None


def _gpus_of_own_model(given: argparse.Namespace, read: options.Readers) -> Cluster | None:
    """The cluster, if all its hosts have GPUs and the model is a file of the user's own."""
    from sim.model.workload import NAMED

    if not given.workload or given.workload in NAMED or not given.cluster:
        return None
    found = read.cluster(given.cluster)
    return found if all(host.gpus for host in found.hosts) else None


def _usual(gpus: Cluster) -> tuple[str, Mapping[str, object]]:
    """The protocol of the runs that a profile was fitted on, or else PyTorch's, with its settings."""
    from sim.protocols.horovod import DDP

    if known := _fitted(gpus):
        return known.protocol, dict(one.split("=", 1) for one in known.settings)
    return "horovod", DDP


def _fitted(gpus: Cluster) -> Provenance | None:
    known = gpus.provenance
    return known if known and known.protocol else None


def _besides(settings: Mapping[str, object], said: list[str]) -> list[str]:
    """Settings but those that are given, as --set takes them."""
    given = {one.partition("=")[0] for one in said}
    return [f"{name}={value}" for name, value in settings.items() if name not in given]


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
    changed, given = changed or (lambda found: found), completed(given, read)
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
