"""Memory and time that simulating a job takes, roughly, before it is begun; an impossible simulation is refused in a line."""

from __future__ import annotations

import math
import os
import resource
from collections import defaultdict
from dataclasses import replace
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from sim import collectives
from sim.base.errors import WrongSetting
from sim.randomness import BLOCK

if TYPE_CHECKING:
    from sim.job.scenario import Scenario

# Measured on a core of 2024 with the AMB repository's toy model, in jobs of 3 to 100,000 ranks (maximum resident set, wall clock).
EVENT_RANK_BYTES, EVENT_RANK_S = 25e3, 200e-6
CORE_BYTES = 800  # of a host, in the event world
ACTIVITY_BYTES, ACTIVITY_S = 700, 30e-6
ACTIVITIES_OF_A_MESSAGE = 4  # a ring has 3.5, a master 5.8
VECTOR_RANK_BYTES, VECTOR_RANK_S = 1.5e3, 8e-6
DRAW_BYTES, DRAW_S = 32, 0.1e-6  # for each rank and round: four draws; of one block of rounds they are kept
ROUND_BYTES, ROUND_S = 500, 150e-6  # in the vector world, and for each rank:
ROUND_OF_A_RANK_S = 0.1e-6
TURN_BYTES, TURN_S, TURN_OF_A_RANK_S = 6e3, 20e-6, 0.02e-6  # of a collective
EXCHANGE_BYTES, EXCHANGE_S = 600, 4e-6  # of one that is laid out in levels, once, for each rank
SHARED_EXCHANGE_S = 15e-6  # likewise, where ranks share hosts; a ring's are laid out too
# Of a cycle in which gradients are summed while ranks compute, at most one for each of them; and for each rank:
CYCLE_S, CYCLE_OF_A_RANK_S, CYCLE_BYTES = 250e-6, 0.3e-6, 500
AMONG_SERVERS = 4  # times that a call is reckoned where its messages meet those of servers
MEETING_S, MEETING_OF_TWO_S = 1e-3, 3e-6  # of workers and servers behind a barrier, and for each worker and server
SHARED_MEETING_S, SHARED_MEETING_OF_TWO_S = 2.5e-3, 6e-6  # likewise, where ranks share hosts
ROW_BYTES, ROW_S = 40, 1e-6  # of a sparse variable: how often it is drawn
PLACING_S = 0.1e-6  # for each server and variable

SHARE = 0.5  # of the machine's memory that may be taken
PATIENCE_S = 120.0  # that a user is assumed to wait
MOST_EXCHANGES = 10**6  # of a rank in a call; those beyond are not counted
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of a container


class Needs:
    """Seconds and bytes, by the option that they are due to."""

    def __init__(self):
        self.of_seconds: defaultdict[str, float] = defaultdict(float)
        self.of_bytes: defaultdict[str, float] = defaultdict(float)

    def add(self, option: str, seconds: float = 0.0, size_bytes: float = 0.0) -> None:
        """So much more."""
        self.of_seconds[option] += seconds
        self.of_bytes[option] += size_bytes

    @property
    def seconds(self) -> float:
        """All of them."""
        return sum(self.of_seconds.values())

    @property
    def bytes(self) -> float:
        """All of them."""
        return sum(self.of_bytes.values())


def of(scenario: Scenario, world: str, within_s: float = math.inf) -> Needs:
    """The needs of one run in a world: memory for all that it does in the time, and seconds until the least answer is there."""
    found = Needs()
    least = 1 + (scenario.warmup if scenario.updates_per_step > 1 else min(1, scenario.warmup))
    by_rows = sum(variable.shape[0] for variable in _drawn_rows(scenario))
    found.add("--workload", ROW_S * by_rows, ROW_BYTES * by_rows)
    if scenario.protocol.has_servers:
        found.add("--servers", PLACING_S * scenario.servers * len(scenario.traffic.placed))
    if world == "vector":
        _of_vector(found, scenario, least, within_s)
    else:
        _of_event(found, scenario, least, within_s)
    return found


def round_s(scenario: Scenario, world: str) -> float:
    """Seconds of one more step of one run: by counts, so that they do not depend on how busy the machine is."""
    few, more = (of(replace(scenario, warmup=warmup), world).seconds for warmup in (0, 1))
    return more - few


def _of_vector(found: Needs, scenario: Scenario, least: int, within_s: float) -> None:
    ranks, block, overlaps = scenario.ranks, min(BLOCK, scenario.rounds), scenario.protocol.overlaps
    exchanges = 0 if scenario.served and not scenario.summed else _exchanges(scenario)
    again = AMONG_SERVERS if scenario.served else 1
    shared = not scenario.apart
    gathers = len(scenario.gathered_variables) * (ranks - 1)
    laid_out = exchanges * ranks * (shared or exchanges < 2 * (ranks - 1)) + min(1, gathers) * ranks * (ranks - 1)
    turns, cycles = (0, len(scenario.summed)) if overlaps else (_calls(scenario) * exchanges * again + gathers, 0)
    turn_s = TURN_S + TURN_OF_A_RANK_S * ranks
    step_s = ROUND_S + ROUND_OF_A_RANK_S * ranks + turns * turn_s
    step_s += cycles * (CYCLE_S + CYCLE_OF_A_RANK_S * ranks)
    if scenario.served and scenario.protocol.has_servers:
        meeting_s, of_two_s = (SHARED_MEETING_S, SHARED_MEETING_OF_TWO_S) if shared else (MEETING_S, MEETING_OF_TWO_S)
        step_s += meeting_s + of_two_s * scenario.workers * scenario.servers
    once_s = (SHARED_EXCHANGE_S if shared else EXCHANGE_S) * laid_out + cycles * exchanges * turn_s
    once_bytes = EXCHANGE_BYTES * laid_out + turns * TURN_BYTES + cycles * CYCLE_BYTES * ranks
    found.add("--workers", VECTOR_RANK_S * ranks + once_s + least * step_s, VECTOR_RANK_BYTES * ranks + once_bytes)
    rounds = min(scenario.rounds, least + within_s / step_s)
    found.add("--steps", DRAW_S * block * ranks, DRAW_BYTES * block * ranks + ROUND_BYTES * rounds)


def _of_event(found: Needs, scenario: Scenario, least: int, within_s: float) -> None:
    found.add("--cluster", size_bytes=CORE_BYTES * _cores(scenario))
    each = ACTIVITIES_OF_A_MESSAGE * messages(scenario) + _turns(scenario) * scenario.workers
    activities = max(1, each * _ahead(scenario))
    step_s = ACTIVITY_S * activities
    rounds = min(scenario.rounds, least + within_s / step_s)
    found.add("--workers", EVENT_RANK_S * scenario.ranks + step_s * min(2, least), EVENT_RANK_BYTES * scenario.ranks)
    found.add("--warmup", step_s * (least - min(2, least)))
    step_bytes = ACTIVITY_BYTES * activities
    found.add("--workers", size_bytes=step_bytes * least)
    found.add("--steps", size_bytes=step_bytes * max(0.0, rounds - least))


def messages(scenario: Scenario) -> float:
    """The number of messages that ranks send in a step, roughly."""
    protocol, workers, found = scenario.protocol, scenario.workers, 0.0
    if scenario.served:
        apart = protocol.layerwise or scenario.traffic.sends_rows
        parts = len(scenario.traffic.placed) if apart else scenario.servers
        found += workers * parts * (4 if protocol.has_servers else 2)
    if scenario.summed:
        found += workers * _calls(scenario) * _exchanges(scenario)
    return found + workers * workers * len(scenario.gathered_variables)


def _calls(scenario: Scenario) -> float:
    """The number of sums in a step."""
    if not getattr(scenario.protocol, "fused", True):
        return len(scenario.summed)
    fusion_bytes = getattr(scenario.protocol, "fusion_bytes", math.inf)
    return max(1.0, min(len(scenario.summed), 4 * scenario.summed_items / max(1, fusion_bytes)))


def _exchanges(scenario: Scenario) -> int:
    """The number of exchanges of a rank in a sum."""
    hosts, algorithm = tuple(scenario.hosts[scenario.servers :]), getattr(scenario.protocol, "algorithm", "ring")
    return 0 if len(hosts) < 2 else _counted(algorithm, hosts, scenario.summed_items + 1)


@lru_cache(maxsize=64)  # many jobs have the same ranks
def _counted(algorithm: str, hosts: tuple[int, ...], items: int) -> int:
    return sum(1 for _ in islice(collectives.allreduce(algorithm, 1, hosts, slice(0, items)), MOST_EXCHANGES))


def _cores(scenario: Scenario) -> int:
    """The cores of the hosts on which ranks sit."""
    cores, left = 0, max(scenario.hosts) + 1
    for several in scenario.cluster.hosts:
        used = min(left, several.count)
        cores, left = cores + used * several.cores, left - used
    return scenario.cluster.shared_cores or cores


def _turns(scenario: Scenario) -> float:
    """The largest number of partitions that a worker computes in a step."""
    partitions = getattr(scenario.protocol, "partitions", 0)
    partition_s = scenario.costs.partition(scenario.batch // max(1, partitions))
    limit_s = getattr(scenario.protocol, "time_limit_s", math.inf)
    return min(partitions, 1 + limit_s / partition_s) if partition_s else partitions


def _ahead(scenario: Scenario) -> float:
    """The number of steps of a worker during one of a master that does not wait for it, at least one."""
    protocol, costs = scenario.protocol, scenario.costs
    if protocol.has_servers or not (scenario.served and protocol.counts_updates):
        return 1
    adding_s = scenario.workers * costs.reduce(scenario.workload.message_bytes)
    evaluating_s = costs.evaluate(scenario.test_size) if scenario.test_size else 0.0
    partition_s = costs.partition(scenario.batch // max(1, getattr(protocol, "partitions", 1)))
    worker_s = _turns(scenario) * partition_s or costs.compute(scenario.batch)
    return max(1, (getattr(protocol, "window_s", 0.0) + adding_s + evaluating_s) / worker_s) if worker_s else math.inf


def _drawn_rows(scenario: Scenario) -> list:
    """The sparse variables of which it has to be known how many rows are drawn."""
    served = scenario.served if scenario.traffic.sends_rows else ()
    return [variable for variable in (*served, *scenario.gathered_variables) if variable.rows]


def most_bytes() -> float:
    """Bytes of memory that a simulation may take on this machine."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return SHARE * min(_bytes_here(), math.inf if limit == resource.RLIM_INFINITY else limit)


@cache
def _bytes_here() -> int:
    """Bytes of the machine's memory, or of the container's."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    found += [
        int(text) for path in map(Path, LIMITS) if path.exists() and (text := path.read_text().strip()).isdecimal()
    ]
    return min(found)


def check(scenario: Scenario, world: str, within_s: float = math.inf) -> Needs:
    """The needs, if the machine can meet them.

    Raises:
        WrongSetting: it takes more memory than the machine has for it, or much longer than anybody has said to wait.
    """
    found, most = of(scenario, world, within_s), most_bytes()
    longest_s = math.inf if within_s == math.inf else max(PATIENCE_S, within_s)
    if found.bytes <= most and found.seconds <= longest_s:
        return found
    option = _blamed(found.of_bytes, most) if found.bytes > most else _blamed(found.of_seconds, longest_s)
    given = {
        "--workload": scenario.workload.name,
        "--cluster": scenario.cluster.name,
        "--workers": scenario.workers,
        "--servers": scenario.servers,
        "--steps": scenario.steps,
        "--warmup": scenario.warmup,
    }
    takes = f"about {_said_s(found.seconds)} for the least of an answer; --within SECONDS waits for it"
    if found.bytes > most:
        takes = f"about {found.bytes / 1e9:,.1f} GB of memory, and {most / 1e9:,.1f} GB are the most here"
    raise WrongSetting(option, given[option], f"a smaller job: the {world} world would take {takes}")


def _blamed(needs: dict[str, float], most: float) -> str:
    """The option without which it would be less: the steps, unless one of them is too many already."""
    others = {option: need for option, need in needs.items() if option != "--steps"}
    return max(others, key=others.__getitem__) if sum(others.values()) > most else "--steps"


def _said_s(seconds: float) -> str:
    unit, name = next(
        ((u, n) for u, n in ((86400, "days"), (3600, "hours"), (60, "minutes")) if seconds >= 2 * u), (1, "seconds")
    )
    return f"{seconds / unit:,.0f} {name}"
