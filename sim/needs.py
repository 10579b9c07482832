"""Memory and time that simulating a job takes, roughly, before it is begun; an impossible simulation is refused in a line."""

from __future__ import annotations

import math
import os
import resource
from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sim.base.errors import WrongSetting
from sim.job import sums

if TYPE_CHECKING:
    from sim.job.scenario import Scenario

# Measured on a core of 2024: bytes as the maximum resident set of jobs of 3 to 100,000 ranks, seconds as the processor time of some 90
# jobs of all protocols with 4 to 512 workers (`python tests/needs.py` measures some).
RUN_S = 1e-3  # of a run
ROW_BYTES, ROW_S = 40, 1e-6  # of a sparse variable: how often it is drawn
PLACING_S = 0.1e-6  # for each server and variable
UPDATE_BYTES = 100
ACTIVITY_BYTES, ACTIVITIES_OF_A_MESSAGE = 700, 4  # of a trace; a ring has 3.5 activities a message, a master 5.8

CORE_BYTES = 800  # of a host

# The event world: once for each rank; a step; each of its messages, by how ranks take time (sim.event.plain); and further:
EVENT_RANK_BYTES, EVENT_RANK_S = 25e3, 40e-6
EVENT_STEP_S = 30e-6
MESSAGE_S, SHARED_MESSAGE_S, EVENTS_MESSAGE_S, ROWS_MESSAGE_S = 6e-6, 8e-6, 10e-6, 38e-6
MESSAGE_BYTES = 700  # of those of a call, or of a step
CYCLE_OF_A_RANK_S = 60e-6  # in which gradients are summed while ranks compute
OWN_TEXT_S = 80e-6  # of a worker where the text is a user's own, whose verbs are watched
PARTITION_S = 0.6e-6  # of a partition

# The engine: once for each rank; a step of it; and each message, in a ring and elsewhere.
ENGINE_RANK_BYTES, ENGINE_RANK_S = 10e3, 10e-6
ENGINE_STEP_OF_A_RANK_S, ENGINE_MESSAGE_S, RING_MESSAGE_S = 0.2e-6, 0.5e-6, 0.03e-6

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


def of(scenario: Scenario, world: str, within_s: float = math.inf, *, traced: bool = False) -> Needs:
    """The needs of a run: memory for all that is done in the time, and seconds until the least answer is there.

    Args:
        world: event or engine.
        traced: whether all activities are kept.
    """
    found = Needs()
    least = 1 + (scenario.warmup if scenario.updates_per_step > 1 else min(1, scenario.warmup))
    by_rows = sum(variable.rows.of or variable.shape[0] for variable in _drawn_rows(scenario))
    found.add("--workload", ROW_S * by_rows, ROW_BYTES * by_rows)
    if scenario.protocol.has_servers:
        found.add("--servers", PLACING_S * scenario.servers * len(scenario.traffic.placed))
    all_sums, is_engine = sums.of(scenario), world == "engine"
    step_s = (_engine_step_s if is_engine else _event_step_s)(scenario, all_sums)
    rank_s, rank_bytes = (ENGINE_RANK_S, ENGINE_RANK_BYTES) if is_engine else (EVENT_RANK_S, EVENT_RANK_BYTES)
    found.add("--workers", RUN_S + rank_s * scenario.ranks + step_s * min(2, least) / _rounds(scenario))
    found.add("--set gradients", step_s * min(2, least) * (1 - 1 / _rounds(scenario)))
    found.add("--warmup", step_s * (least - min(2, least)))
    found.add("--workers", size_bytes=rank_bytes * scenario.ranks)
    found.add("--cluster", size_bytes=CORE_BYTES * _cores(scenario))
    if not is_engine:
        largest = max([messages(scenario) * _ahead(scenario), *(call.messages for call in all_sums.calls)])
        found.add("--workers", size_bytes=MESSAGE_BYTES * largest)
    step_bytes = UPDATE_BYTES * float(scenario.updates_per_step)
    if traced:
        partitions = _turns(scenario) * scenario.workers
        activities = ACTIVITIES_OF_A_MESSAGE * _sent(scenario, all_sums) + partitions
        step_bytes += ACTIVITY_BYTES * activities * _gradients(scenario)
    rounds = max(0.0, min(scenario.rounds, least + within_s / step_s) - least)
    found.add("--workers", size_bytes=step_bytes * least)
    found.add("--steps", size_bytes=step_bytes * rounds)
    return found


def once_and_step_s(scenario: Scenario, world: str) -> tuple[float, float]:
    """Seconds of a run before any step, and of each one: by counts, so that they do not depend on how busy the machine is."""
    one, two = (of(replace(scenario, warmup=warmup), world).seconds for warmup in (0, 1))
    return 2 * one - two, two - one


def _engine_step_s(scenario: Scenario, all_sums: sums.Sums) -> float:
    """Seconds of a step in the engine."""
    in_rings = sum(count * call.messages for call, count in all_sums.calls.items() if call.algorithm == "ring")
    others = _sent(scenario, all_sums) - in_rings
    messages_s = RING_MESSAGE_S * in_rings + ENGINE_MESSAGE_S * others
    return ENGINE_STEP_OF_A_RANK_S * scenario.ranks + messages_s * _gradients(scenario)


def _event_step_s(scenario: Scenario, all_sums: sums.Sums) -> float:
    """Seconds of a step in the event world, without a trace."""
    from sim.event.plain import by_arithmetic
    from sim.protocols import is_ours

    workers, protocol = scenario.workers, scenario.protocol
    found_s = EVENT_STEP_S + CYCLE_OF_A_RANK_S * all_sums.cycles * workers
    found_s += OWN_TEXT_S * workers * (not is_ours(protocol))
    message_s = MESSAGE_S if scenario.apart else SHARED_MESSAGE_S
    if protocol.delay_std_s or not by_arithmetic(scenario):
        message_s = EVENTS_MESSAGE_S
    if scenario.traffic.in_parts:
        message_s = ROWS_MESSAGE_S
    work_s = message_s * _sent(scenario, all_sums) + PARTITION_S * _turns(scenario) * workers
    return found_s + work_s * _gradients(scenario)


def _sent(scenario: Scenario, all_sums: sums.Sums) -> float:
    """The number of messages for a gradient of each worker."""
    return messages(scenario) + sum(count * call.messages for call, count in all_sums.calls.items())


def messages(scenario: Scenario) -> float:
    """The number of messages between workers and their master or servers in a step, and of rows that workers gather, roughly."""
    protocol, workers, found = scenario.protocol, scenario.workers, 0.0
    if scenario.served:
        apart = protocol.layerwise or scenario.traffic.sends_rows
        parts = len(scenario.traffic.placed) if apart else scenario.servers
        found += workers * parts * (4 if protocol.has_servers else 2)
    found += workers * (protocol.masterless and protocol.uses("exchange"))  # one at least
    return found + workers * workers * len(scenario.gathered_variables)


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


def _rounds(scenario: Scenario) -> float:
    """The number of gradients of each worker in an update, at least one."""
    return max(1.0, scenario.protocol.gradients_per_update(scenario.workers) / max(1, scenario.workers))


def _gradients(scenario: Scenario) -> float:
    """The number of gradients of each worker in a step, whether an update needs them or they come meanwhile."""
    return max(_ahead(scenario), _rounds(scenario))


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


def patience_s(within_s: float) -> float:
    """Seconds that the least of an answer may take, where one is wanted within so many; of the processor, where it is ended."""
    return max(LEAST_PATIENCE_S, min(TIMES * within_s, PATIENCE_S), within_s)


def check(scenario: Scenario, world: str, within_s: float = math.inf, *, traced: bool = False) -> Needs:
    """The needs of a run, if the machine can meet them; with all activities kept if it is traced.

    Raises:
        WrongSetting: it takes more memory than the machine has for it, or much longer than anybody has said to wait.
    """
    found, most = of(scenario, world, within_s, traced=traced), most_bytes()
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
    said = "the engine" if world == "engine" else "the event world"
    takes = f"about {_said_s(found.seconds)} for the least of an answer; --within SECONDS waits for it"
    if found.bytes > most:
        takes = f"about {found.bytes / 1e9:,.1f} GB of memory, and {most / 1e9:,.1f} GB are the most here"
    raise WrongSetting(option, given[option], f"a smaller job: {said} would take {takes}")


def _blamed(needs: dict[str, float], most: float) -> str:
    """The option without which it would be less: the steps, unless one of them is too many already."""
    others = {option: need for option, need in needs.items() if option != "--steps"}
    return max(others, key=others.__getitem__) if sum(others.values()) > most else "--steps"


def _said_s(seconds: float) -> str:
    unit, name = next(
        ((u, n) for u, n in ((86400, "days"), (3600, "hours"), (60, "minutes")) if seconds >= 2 * u), (1, "seconds")
    )
    return f"{seconds / unit:,.0f} {name}"
