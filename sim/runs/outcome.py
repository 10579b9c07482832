"""What a run of a scenario's job comes to: its outcome, and the trace of one that was observed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from sim.answers.outcome import Outcome
from sim.base.activity import Activity
from sim.base.errors import WrongSetting, WrongText
from sim.base.ranges import SHORTEST_S
from sim.job.scenario import Scenario
from sim.language.event.observed import ObservedWorld
from sim.language.job import Result, first_measured
from sim.model.costs import TO_DEVICE, TO_HOST
from sim.protocols import is_ours, name_of
from sim.recording.traces import Trace


def outcome_of(scenario: Scenario, found: Result) -> Outcome:
    """What a run of a scenario's job comes to; one that has ended early among the steps of its warm-up has a shorter one.

    Raises:
        WrongText: no step is over, steps take no time, or no sample enters an update.
    """
    warmup = first_measured(scenario.warmup, len(found.ends_s))
    step_s, name = np.diff(found.ends_s, prepend=0.0)[warmup:], name_of(scenario.protocol)
    if not len(step_s):
        raise WrongText(f"{name}: no step is ever over: a text goes through them by `for step in me.steps():`")
    if not step_s.sum() > SHORTEST_S * len(step_s):
        if is_ours(scenario.protocol):
            raise WrongSetting("--workload", scenario.workload.name, f"a model whose steps take time with {name}")
        raise WrongText(f"{name}: its steps take no time")
    if not sum(found.samples):
        raise WrongText(f"{name}: no sample enters an update: a text makes them by `yield from me.update()`")
    idle = np.array(found.idle_s) / max(step_s.sum(), np.finfo(float).tiny)
    return Outcome(step_s[None], np.array(found.samples[warmup:])[None], idle[None], warmup=warmup)


def least_warmup(scenario: Scenario) -> int:
    """Steps of warm-up of a run that has no time; where each gradient is an update all of them, as workers begin together."""
    return scenario.warmup if scenario.updates_per_step > 1 else min(scenario.warmup, 1)


def activities_of(scenario: Scenario, world: ObservedWorld) -> list[Activity]:
    """What ranks have done in a world. An update by each gradient is a step of rank 0, to which its evaluation belongs."""
    rows = world.activities()
    if scenario.updates_per_step > 1:
        kept = [row for row in rows if row.rank not in range(scenario.servers)]
        for rank in range(scenario.servers):
            made = 0
            for row in sorted(row for row in rows if row.rank == rank):
                kept.append(row._replace(step=made - (row.activity == "evaluate")))  # of what was made last
                made += row.activity == "update"
        rows = kept
    rows = [row._replace(samples=scenario.test_size) if row.activity == "evaluate" else row for row in rows]
    if any(scenario.traffic.copies_s):
        rows = [part for row in rows for part in copies_told(scenario, row)]
    return rows


def trace_of(scenario: Scenario, world: ObservedWorld, outcome: Outcome) -> Trace:
    """The trace of a run that has been observed."""
    header = replace(scenario.header("event", world.job.replication), warmup=outcome.warmup)
    return Trace.of(header, activities_of(scenario, world))


def copies_told(scenario: Scenario, row: Activity) -> Iterator[Activity]:
    """A row that is a copy between host and device has its bytes; one of joining gradients tells its copy to the host apart."""
    traffic = scenario.traffic
    if row.activity == TO_DEVICE:
        yield row._replace(samples=0, bytes=traffic.to_device_bytes(row.samples))
    elif row.activity == "pack" and traffic.copies_s[1]:
        pack_s, to_host_s = scenario.costs.pack(traffic.packed_bytes), traffic.copies_s[1]
        copied_s = row.end_s - (row.end_s - row.start_s) * to_host_s / (pack_s + to_host_s)
        if pack_s:
            yield row._replace(end_s=copied_s)
        yield row._replace(start_s=copied_s if pack_s else row.start_s, activity=TO_HOST, bytes=traffic.to_host_bytes)
    else:
        yield row
