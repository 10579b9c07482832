"""Ranks, their strands, what these keep, and who begins."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sim.engine.arrays.shape import INTEGERS, NOBODY, Empty
from sim.engine.kernel import layout
from sim.event.ranks.amounts import Amounts

if TYPE_CHECKING:
    from sim.engine.arrays.shape import Shape

MOST_MISSED = 2**20  # updates that a gradient has missed


def programs(job: Shape) -> dict[str, np.ndarray | Empty]:
    """What runs the programs."""
    of, code, strands = job.scenario, job.code, job.strands
    sets, lists = code.sets or [(0, 0, 0)], code.lists or [(0, 0)]
    return {
        "instruction": code.program(),
        "strand": _strands(job),
        "rank": _ranks(job),
        "todo": np.arange(of.ranks - 1, -3 * of.ranks - 65, -1),  # all ranks begin, the first one first
        "register": code.registers(strands),
        "rank_set": np.array(sets, layout.RANK_SET),
        "bit": Empty(max(1, int(code.set_room.sum())), INTEGERS),
        "member": Empty((strands, len(sets)), INTEGERS),
        "number_list": np.array(lists, layout.NUMBER_LIST),
        "item": Empty(max(1, int(code.list_room.sum())), float),
        "length": Empty((strands, len(lists)), INTEGERS),
        "turn": np.full(of.ranks + 1, np.array((0.0, 0.0, NOBODY), layout.TURN)),  # the last one of other threads
        "inbox": np.full(6 * of.ranks, NOBODY, INTEGERS).view(layout.INBOX),
    }


def _strands(job: Shape) -> np.ndarray:
    ranks, code = job.scenario.ranks, job.code
    found = np.zeros(job.strands, layout.STRAND)
    found["number"] = np.arange(job.strands)
    found["rank"] = found["number"] % ranks
    found["cycle_s"], found["previous"], found["waits_for"] = -math.inf, NOBODY, NOBODY
    found["pc"][:ranks] = code.starts
    found["set_at"][:ranks], found["list_at"][:ranks] = code.set_starts, code.list_starts
    return found


def _ranks(job: Shape) -> np.ndarray:
    of = job.scenario
    found, hosts = np.zeros(of.ranks, layout.RANK), np.array(of.hosts, INTEGERS)
    found["number"], found["host"] = np.arange(of.ranks), hosts
    for name in ("slept", "awaits", "neighbour"):
        found[name] = NOBODY
    found["since_s"], found["updated_s"], found["layers_s"] = math.inf, -math.inf, -1.0
    found["updates"] = math.inf
    found["updates"][0] = of.updates
    found["speed"], found["cores"] = of.speeds, [of.machines[host].cores for host in of.hosts]
    found["group"] = 0 if job.cores_suffice or of.cluster.shared_cores else hosts
    found["gpu"] = [bool(of.machines[host].gpus) for host in of.hosts]
    gpus = job.shared_gpus
    found["shared_gpu"] = [gpus.get(place, NOBODY) if place else NOBODY for place in of.gpus]
    for rank in range(min(of.ranks, of.servers + 1)):  # workers are alike
        found["update_bytes"][rank:] = of.traffic.updated_bytes(rank)[0] if rank < of.servers or of.summed else 0
    if of.protocol.layerwise:
        _place_variables(job, found)
    return found


def _place_variables(job: Shape, ranks: np.ndarray) -> None:
    """Where variables travel one by one: which worker sends for others of its host, and which variable of a server counts."""
    of = job.scenario
    for group in of.groups(of.hosts).of.values():
        ranks["leader"][group], ranks["together"][group] = group[0], len(group)
        ranks["neighbour"][group] = [*group[1:], NOBODY]
    amounts = Amounts(of)
    ranks["held"][: of.servers] = [(amounts.held_by(server) or [NOBODY])[0] for server in range(of.servers)]


def steps(job: Shape) -> dict[str, np.ndarray | Empty]:
    """What is noted of steps and waits."""
    of = job.scenario
    ranks, rounds = (of.ranks, of.rounds) if of.by_all_ranks else (1, 1)
    return {
        "step_end": Empty(of.updates + 1, layout.STEP_END),
        "missed": Empty(min(of.updates + 2, MOST_MISSED) if job.meters else 1, INTEGERS),
        "wait": Empty(job.most, layout.WAIT, zeros=False),
        "round": Empty(rounds, layout.ROUND),
        "own_end": Empty((ranks, rounds), float),
    }
