"""The hosts and ranks of a world, each rank with the mechanics that its host needs."""

from __future__ import annotations

import numpy as np

from sim.event import plain
from sim.event.machines.cores import THREADS_TURN_S, TICK_S, Cores
from sim.event.machines.crowded import Crowded
from sim.event.machines.free import Free
from sim.event.machines.machine import Machine
from sim.event.machines.posting import Posting
from sim.event.ranks.poster import Poster
from sim.event.ranks.rank import Rank


def speeds(world) -> np.ndarray:
    """The speed of each rank's core in this run, shape (ranks,)."""
    return np.array(world.scenario.speeds)


def master_host(world) -> Machine:
    """The master's host, where the workers are a cohort: no other host is needed."""
    index = world.scenario.hosts[0]
    host = world.scenario.machines[index]
    machine = Machine(world.env, index, host, float(world.speeds[0]), host.contention, world.link, TICK_S)
    machine.ranks = 1
    return machine


def led(world):
    """A master, and its workers as a cohort (sim.event.cohort)."""
    from sim.event.cohort import Cohort
    from sim.event.machines.leading import Leading

    master = Rank(world, 0, [0], world.machines[0], Leading)
    master.mechanics.cohort = cohort = Cohort(world, master.mechanics)
    return [master], cohort


def machines(world) -> list[Machine]:
    """The hosts of all ranks."""
    scenario = world.scenario
    hosts = scenario.machines
    turn_s, cores = THREADS_TURN_S if scenario.threaded else TICK_S, scenario.cluster.shared_cores
    shared = Cores(world.env, cores, hosts[0].speed, hosts[0].contention, turn_s) if cores else None
    made = [
        Machine(world.env, index, host, host.speed, host.contention, world.link, turn_s, shared)
        for index, host in enumerate(hosts)
    ]
    for machine in scenario.hosts:
        made[machine].ranks += 1
    return made


def ranks(world, short_cuts: bool) -> list[Rank]:
    """All ranks; sets the world's `senders`, and `alone`: whether rank 0 alone sends to workers, as far as is known."""
    scenario, groups = world.scenario, world.scenario.groups(world.scenario.hosts)
    world.senders = groups.senders
    mechanics = {machine: mechanics_of(world, machine) for machine in world.machines}
    kind: type[Rank] = Rank
    if set(mechanics.values()) == {Free} and _posts(world):
        kind, mechanics = Poster, dict.fromkeys(world.machines, Posting)
    made = [
        kind(world, number, groups.of.get(number) or [number], machine, mechanics[machine])
        for number, machine in enumerate(world.machines[host] for host in scenario.hosts)
    ]
    everyone = [rank.mechanics for rank in made]
    among = bool(scenario.summed or scenario.gathered_variables or scenario.protocol.local_aggregation)
    world.alone = short_cuts and isinstance(everyone[0], Free) and scenario.servers == 1 and not among
    for one in everyone:
        one.join(everyone, world.alone)
    return made


def _posts(world) -> bool:
    """Whether ranks may post messages without an event, if each has a core and a port of its own; only some of them end steps."""
    protocol, parts = world.scenario.protocol, world.scenario.traffic.in_parts
    queues = plain.queues(world.scenario) and not protocol.delay_std_s and world.all_ranks is None
    return queues and world.recorder.rows is None and not (world.amounts.rests or protocol.overlaps or parts)


def mechanics_of(world, machine: Machine):
    """How the ranks of a host take time: by arithmetic where nothing that they share makes work longer."""
    if plain.by_arithmetic(world.scenario):
        return Crowded if machine.ranks > 1 else Free
    from sim.event.machines.contended import Contended

    return Contended
