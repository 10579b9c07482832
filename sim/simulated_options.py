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
from sim.command import Parser, add_options

if TYPE_CHECKING:
    from sim.job.scenario import Scenario
    from sim.platform.cluster import Cluster, Provenance

WITHIN_S = 10.0
DDP = "PyTorch's DDP: allreduce beside back-propagation"


def place_options() -> Parser:
    """A parent parser: the hosts that are simulated."""
    parser = Parser(add_help=False)
    table = """
        --servers-on  HOSTS  text  place of servers; own (default): on hosts of their own, before the workers; workers: on the workers'
            hosts
        --hosts  N  int  so many hosts like those of --cluster, with a worker in every slot unless --workers says how many
        --per-host:gpus_per_host  N  int  workers on each host of --cluster, on as many of its GPUs: 1 spreads them (default: all GPUs, or
            cores, of a host)
        --network  '25 Gbit/s, 20 us'  text  another bandwidth and latency between the hosts of --cluster
    """
    add_options(parser.add_argument_group("the hosts"), table)
    return parser


def simulation_options() -> Parser:
    """A parent parser: how to simulate."""
    parser = Parser(add_help=False, parents=[place_options()])
    group = parser.add_argument_group("the simulation")
    about = "the simulator; event: the reference; engine: compiled, with the same answers; auto: whichever is faster"
    group.add_argument("--world", default="auto", choices=options.WORLDS, help=about)
    table = f"""
        --within  SECONDS  float  answer within about this time, from fewer runs or steps if necessary (default: {WITHIN_S:g}, or unlimited
            with --replications or a file to write)
    """
    add_options(group, table)
    return parser


def completed(given: argparse.Namespace, read: options.Readers | None = None) -> argparse.Namespace:
    """The options, with values for those that nobody gave and that depend on others.

    A profile has those of the runs that it was fitted on. A number of hosts, or of workers on each, has a worker in every slot, as
    hosts with GPUs have.
    """
    from sim.job import filling

    found, read = argparse.Namespace(**vars(given)), read or options.Readers()
    placed = read.cluster(given.cluster) if given.cluster else None
    runs = _runs(given, placed)
    found.protocol = given.protocol or runs.protocol or options.DEFAULT_PROTOCOL
    if found.protocol == runs.protocol:
        said = {one.partition("=")[0] for one in given.set}
        found.set = [*(one for one in runs.settings if one.partition("=")[0] not in said), *given.set]
    found.stragglers = given.stragglers or (runs.stragglers if runs.protocol else options.sleeps(given))
    found.servers = runs.servers if given.servers is None else given.servers
    found.servers_on = given.servers_on or runs.servers_on
    if given.batch is None and runs.models and (model := runs.models.get(options.workload_of(given, read).name)):
        found.batch = model.batch
    if given.workers is None:
        shaped = given.hosts is not None or given.gpus_per_host is not None
        filled = shaped or (placed and filling.is_filled(placed))
        found.workers = filling.ALL if filled else runs.workers
    return found


def _runs(given: argparse.Namespace, placed: Cluster | None) -> Provenance:
    """What is known of the runs that a profile was fitted on; nothing without one, or of a job that a program has described whole."""
    from sim.platform.cluster import Provenance

    known = placed.provenance if placed and not getattr(given, "whole", False) else None
    return known or Provenance()


def assumed(given: argparse.Namespace, read: options.Readers, workers: int | None = None) -> str | None:
    """What `completed` has filled in, in a line; None if nothing. `workers` is the number that `all` comes to."""
    found, said = completed(given, read), []
    fitted = _runs(given, read.cluster(given.cluster) if given.cluster else None).protocol
    settings = [f"--set {one}" for one in found.set if one not in given.set]
    if found.protocol != given.protocol or settings:
        why = "that of the profile's runs" if found.protocol == fitted else DDP
        said.append(f"{' '.join([f'--protocol {found.protocol}', *settings])} ({why})")
    if found.workers != given.workers:
        said.append(f"--workers {found.workers}" + (f" ({workers})" if workers != found.workers else ""))
    filled = [name for name in ("servers", "batch") if getattr(found, name) != getattr(given, name)]
    said += [f"--{name} {getattr(found, name)}" for name in filled]
    if given.servers_on is None and found.servers_on != "own":
        said.append(f"--servers-on {found.servers_on}")
    if found.stragglers != given.stragglers and (said or found.stragglers != options.sleeps(given)):
        said.append(f"--stragglers {found.stragglers}")
    return f"assumed, as nobody said: {', '.join(said)}" if said else None


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
    for name in ("hosts", "network", "gpus_per_host"):
        if (value := getattr(given, name)) is not None and not given.cluster:
            option = "--per-host" if name == "gpus_per_host" else f"--{name}"
            raise WrongSetting(option, value, "nothing without --cluster, whose hosts it changes")
    changed, given = changed or (lambda found: found), completed(given, read)
    described = options.scenario(
        given, read=read, reshaped=lambda found: changed(reshaped(given, found)), servers_on=given.servers_on
    )
    if not given.cluster and (other := changed(described.cluster)) is not described.cluster:
        described = replace(described, cluster=other)
    described.check_computing()
    return described


def reshaped(given: argparse.Namespace, cluster: Cluster) -> Cluster:
    """The cluster with as many hosts, as many workers on each, and on the network, that the options say.

    Raises:
        WrongSetting: naming the option.
    """
    from sim.platform import other_sizes

    if given.hosts is not None:
        cluster = other_sizes.on_hosts(cluster, given.hosts)
    cluster = cluster.with_each(given.gpus_per_host)
    if given.gpus_per_host is None and isinstance(given.workers, int):
        cluster = other_sizes.on_one_machine(cluster, given.workers)
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
