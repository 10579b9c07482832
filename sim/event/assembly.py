"""The hosts and ranks of a world."""

from __future__ import annotations

from sim.event.machines.cores import THREADS_TURN_S, TICK_S, Cores
from sim.event.machines.machine import Machine


def machines(world) -> list[Machine]:
    """The hosts of all ranks."""
    scenario = world.scenario
    hosts = scenario.machines
    turn_s, cores = THREADS_TURN_S if scenario.threaded else TICK_S, scenario.cluster.shared_cores
    shared = Cores(world.env, cores, hosts[0].speed, hosts[0].contention, turn_s) if cores else None
    return [
        Machine(world.env, index, host, host.speed, host.contention, world.link, turn_s, shared)
        for index, host in enumerate(hosts)
    ]


def ranks(world) -> list:
    """All ranks; sets the world's `senders`."""
    scenario, groups = world.scenario, world.scenario.groups(world.scenario.hosts)
    world.senders = groups.senders
    made = [
        world.rank_class(world, number, groups.of.get(number) or [number], machine)
        for number, machine in enumerate(world.machines[host] for host in scenario.hosts)
    ]
    everyone = [rank.mechanics for rank in made]
    for one in everyone:
        one.join(everyone)
    return made
