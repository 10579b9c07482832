"""Memory and time that simulating a job takes, roughly, before it is begun; an impossible simulation is refused in a line.

Both follow from one count, that of the messages of a step.
"""

from __future__ import annotations

import math
import os
import resource
from collections import defaultdict
from dataclasses import replace
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sim.base.errors import WrongSetting
from sim.language.moves import moves, named
from sim.model.costs import FORWARD
from sim.model.sizes import ITEM_BYTES

if TYPE_CHECKING:
    from sim.job.scenario import Scenario


class Unit(NamedTuple):
    """The needs of a rank, once, and of a message in the event world, measured on a core of 2024."""

    rank_bytes: float
    rank_s: float
    message_s: float
    ring_message_s: float
    message_bytes: float  # of one that is on its way


UNIT = Unit(25e3, 40e-6, 16e-6, 14e-6, 700)
RUN_S = 1e-3  # of a run
PARTITIONS_OF_A_MESSAGE = 2  # take as long as one
ROW_BYTES, ROW_S = 40, 1e-6  # of a sparse variable: how often it is drawn
UPDATE_BYTES = 100
ACTIVITY_BYTES, ACTIVITIES_OF_A_MESSAGE = 700, 4  # of a trace; a ring has 3.5 activities a message, a master 5.8
CORE_BYTES = 800  # of a host
MOST_MOVES = 10**6  # of a rank in a call; those beyond are not counted
ASKED = 8  # ranks whose moves are counted
BY_SIZE, SOME_ITEMS = "nccl", 2**20  # how many moves it has depends on the size of the vector; of others, by some

SHARE = 0.5  # of the machine's memory that may be taken
LEAST_PATIENCE_S, PATIENCE_S, TIMES = 30.0, 120.0, 10  # that a user is assumed to wait, by times of what was said
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


def of(scenario: Scenario, within_s: float = math.inf, *, traced: bool = False) -> Needs:
    """The needs of a run in the event world: memory for all that is done in the time, and seconds until the least answer is there.

    Args:
        traced: whether all activities are kept.
    """
    found, unit, sent = Needs(), UNIT, messages(scenario)
    least = 1 + (scenario.warmup if scenario.updates_per_step > 1 else min(1, scenario.warmup))
    by_rows = _rows(scenario)
    found.add("--workload", ROW_S * by_rows, ROW_BYTES * by_rows)
    step_s, rounds = unit.ring_message_s * sent.in_rings + unit.message_s * sent.others, gradients_each(scenario)
    found.add("--workers", RUN_S + unit.rank_s * scenario.ranks + step_s * min(2, least) / rounds)
    if rounds > 1:
        found.add("--set gradients", step_s * min(2, least) * (1 - 1 / rounds))
    if least > 2:
        found.add("--warmup", step_s * (least - 2))
    found.add("--workers", size_bytes=unit.rank_bytes * scenario.ranks + unit.message_bytes * sent.at_once)
    found.add("--cluster", size_bytes=CORE_BYTES * _cores(scenario))
    step_bytes = UPDATE_BYTES * float(scenario.updates_per_step)
    if traced:
        step_bytes += ACTIVITY_BYTES * ACTIVITIES_OF_A_MESSAGE * (sent.in_rings + sent.others)
    further = max(0.0, min(scenario.rounds, least + within_s / step_s) - least)
    found.add("--workers", size_bytes=step_bytes * least)
    found.add("--steps", size_bytes=step_bytes * further)
    return found


def once_and_step_s(scenario: Scenario) -> tuple[float, float]:
    """Seconds of a run before any step, and of each one: by counts, so that they do not depend on how busy the machine is."""
    one, two = (of(replace(scenario, warmup=warmup)).seconds for warmup in (0, 1))
    return 2 * one - two, two - one


class Sent(NamedTuple):
    """The messages of a step, roughly.

    Args:
        in_rings: those of rings of all workers.
        others: all others; what a rank does by itself counts as one.
        at_once: on their way at one time, at most.
    """

    in_rings: float
    others: float
    at_once: float


def messages(scenario: Scenario) -> Sent:
    """Count the messages of a step."""
    called, workers, served = calls(scenario), scenario.workers, _served(scenario)
    summed = called.number * called.messages
    others = served + scenario.ranks + workers * (2 * called.cycles + _partitions(scenario) / PARTITIONS_OF_A_MESSAGE)
    in_rings, others = (summed, others) if called.algorithm == "ring" else (0, others + summed)
    gradients = max(_ahead(scenario), gradients_each(scenario))
    return Sent(in_rings * gradients, others * gradients, max(served, called.messages))


class Calls(NamedTuple):
    """The sums that workers make in a step.

    Args:
        number: of calls.
        algorithm: by its name (not auto).
        messages: of all ranks in a call, roughly.
        cycles: in which ranks agree on what to sum next; 0 where they sum when all is computed.
    """

    number: int = 0
    algorithm: str = ""
    messages: int = 0
    cycles: int = 0


def calls(scenario: Scenario) -> Calls:
    """The sums of one step of ranks that are alike; cycles are those that begin while gradients are computed."""
    protocol: Any = scenario.protocol
    if not scenario.summed or scenario.workers < 2 or not hasattr(protocol, "algorithm"):
        return Calls()
    size_bytes, most, cycles = ITEM_BYTES * scenario.summed_items, len(scenario.summed), 0
    if hasattr(protocol, "bucket_mb"):
        count = math.ceil(size_bytes / max(1.0, 2**20 * protocol.bucket_mb))
    elif hasattr(protocol, "cycle_s"):
        link, costs = scenario.network, scenario.costs
        agree_s = 2 * (scenario.workers - 1).bit_length() * (link.latency_s + 2 * link.overhead_s) + costs.negotiate_s
        left_s = (1 - FORWARD) * costs.compute(scenario.batch) - 2 * link.occupancy_s(size_bytes)
        each_s = max(protocol.cycle_s, agree_s)
        cycles = min(most, max(1, int(left_s / each_s) if each_s else most))
        count = max(cycles, math.ceil(size_bytes / max(1, protocol.fusion_bytes)))
    else:
        count = 1 if getattr(protocol, "fused", True) else most
    count = min(most, max(1, count))
    hosts, items = tuple(scenario.hosts[scenario.servers :]), scenario.summed_items // count
    algorithm = named(scenario.algorithm(protocol.algorithm), hosts, items)
    each = _messages(algorithm, hosts, 1 << items.bit_length() if algorithm == BY_SIZE else SOME_ITEMS)
    return Calls(count, algorithm, each, cycles)


@lru_cache(maxsize=256)  # many jobs have the same ranks
def _messages(algorithm: str, hosts: tuple[int, ...], items: int) -> int:
    """By some ranks, far from one another, and at different places of their hosts."""
    ranks = len(hosts)
    some = range(ranks - 1, -1, -(ranks // ASKED | 1))
    found = [islice(moves(algorithm, rank, hosts, items), MOST_MOVES) for rank in some]
    return ranks * sum(move.to is not None for of_rank in found for move in of_rank) // len(found)


def _served(scenario: Scenario) -> float:
    """Messages between workers and their master or servers for a gradient of each, and of rows that workers gather."""
    protocol, workers, found = scenario.protocol, scenario.workers, 0.0
    if scenario.served:
        apart = protocol.layerwise or scenario.traffic.sends_rows
        parts = len(scenario.traffic.placed) if apart else scenario.servers
        found += workers * parts * (4 if protocol.has_servers else 2)
    found += workers * protocol.masterless  # one at least
    return found + workers * workers * len(scenario.gathered_variables)


def _cores(scenario: Scenario) -> int:
    """The cores of the hosts on which ranks sit."""
    cores, left = 0, max(scenario.hosts) + 1
    for several in scenario.cluster.hosts:
        used = min(left, several.count)
        cores, left = cores + used * several.cores, left - used
    return scenario.cluster.shared_cores or cores


def _partitions(scenario: Scenario) -> float:
    """The largest number of partitions that a worker computes in a step."""
    partitions = getattr(scenario.protocol, "partitions", 0)
    partition_s = scenario.costs.partition(scenario.batch // max(1, partitions))
    limit_s = getattr(scenario.protocol, "time_limit_s", math.inf)
    return min(partitions, 1 + limit_s / partition_s) if partition_s else partitions


def gradients_each(scenario: Scenario) -> float:
    """The number of gradients of each worker in an update, at least one."""
    return max(1.0, scenario.protocol.gradients_per_update(scenario.workers) / max(1, scenario.workers))


def _ahead(scenario: Scenario) -> float:
    """The number of steps of a worker while a master waits for what comes in a window, at least one."""
    window_s = getattr(scenario.protocol, "window_s", 0.0)
    partition_s = scenario.costs.partition(scenario.batch // max(1, getattr(scenario.protocol, "partitions", 1)))
    worker_s = _partitions(scenario) * partition_s or scenario.costs.compute(scenario.batch)
    return max(1.0, window_s / worker_s) if worker_s else math.inf if window_s else 1.0


def _rows(scenario: Scenario) -> int:
    """The rows of sparse variables of which it has to be known how many are drawn."""
    served = scenario.served if scenario.traffic.sends_rows else ()
    return sum(one.rows.of or one.shape[0] for one in (*served, *scenario.gathered_variables) if one.rows)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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


def patience_s(within_s: float) -> float:
    """Seconds that the least of an answer may take, where one is wanted within so many; of the processor, where it is ended."""
    return max(LEAST_PATIENCE_S, min(TIMES * within_s, PATIENCE_S), within_s)


def check_rows(scenario: Scenario) -> None:
    """Refuse sparse variables of which it would take more memory than there is to know how many rows are drawn.

    Raises:
        WrongSetting: naming the workload.
    """
    size_bytes, most = ROW_BYTES * _rows(scenario), most_bytes()
    if size_bytes > most:
        takes = f"about {size_bytes / 1e9:,.1f} GB of memory, and {most / 1e9:,.1f} GB are the most here"
        raise WrongSetting("--workload", scenario.workload.name, f"smaller variables: their rows would take {takes}")


def check(scenario: Scenario, within_s: float = math.inf, *, traced: bool = False) -> Needs:
    """The needs of a run in the event world, if the machine can meet them; with all activities kept if it is traced.

    Raises:
        WrongSetting: it takes more memory than the machine has for it, or much longer than anybody has said to wait.
    """
    found, most = of(scenario, within_s, traced=traced), most_bytes()
    longest_s = patience_s(within_s)
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
        "--set gradients": scenario.protocol.gradients_per_update(scenario.workers),
    }
    takes = f"about {_said_s(found.seconds)} for the least of an answer; --within SECONDS waits for it"
    if found.bytes > most:
        takes = f"about {found.bytes / 1e9:,.1f} GB of memory, and {most / 1e9:,.1f} GB are the most here"
    raise WrongSetting(option, given[option], f"a smaller job: the event world would take {takes}")


def _blamed(needs: dict[str, float], most: float) -> str:
    """The option without which it would be less: the steps, unless one of them is too many already."""
    others = {option: need for option, need in needs.items() if option != "--steps"}
    return max(others, key=others.__getitem__) if sum(others.values()) > most else "--steps"


def _said_s(seconds: float) -> str:
    unit, name = next(
        ((u, n) for u, n in ((86400, "days"), (3600, "hours"), (60, "minutes")) if seconds >= 2 * u), (1, "seconds")
    )
    return f"{seconds / unit:,.0f} {name}"
