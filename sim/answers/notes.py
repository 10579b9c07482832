"""Notes: caveats that belong to an answer."""

from __future__ import annotations

from collections import Counter

import numpy as np

from sim.answers import bounds, shares, sources, summary
from sim.answers.outcome import Outcome, staleness_of
from sim.base.errors import printable
from sim.job import gpu_memory, reading
from sim.job.header import measured
from sim.job.scenario import Scenario
from sim.platform.cluster import UNCOUNTED
from sim.protocols import is_ours
from sim.recording.traces import Trace

BOUND = 0.02  # a step's seconds are those of its busiest port's bytes within this share
MOST_NAMES = 3  # of hosts without a rank
SELDOM = 0.005  # of steps; what is said in whole percent
OVERRUN = 0.2  # of a time limit
LONG_RING = 256  # ranks from which on it takes a while
FEW = 6  # numbers of missed updates whose shares are said one by one


def notes(scenario: Scenario, outcome: Outcome, world: str, trace: Trace | None = None) -> list[str]:
    """The notes to an answer, a line each; empty if there are none."""
    missed = outcome.staleness
    if missed is None and scenario.protocol.stale and scenario.served and trace is not None:
        missed = staleness_of(trace)
    found = [] if missed is None else [_of_staleness(missed)]
    if scenario.unused:
        found.append(f"{scenario.protocol.name} does not use {', '.join(scenario.unused)}")
    if outcome.slow:
        more = "" if is_ours(scenario.protocol) else "; docs/protocol.md says what the engine runs"
        found.append(f"simulated event by event, which takes longer: {outcome.slow}{more}")
    if outcome.by_message and scenario.ranks >= LONG_RING:
        found.append(f"all messages of ring allreduces are simulated, which takes longer: {outcome.by_message}")
    found += _of_data(scenario, outcome, trace)
    found += scenario.stragglers.notes(scenario)
    if measured(world):
        return found + (_of_evaluations(scenario, trace) if trace is not None else [])
    found += _of_partitions(scenario)
    found += (_of_computing(scenario) or _of_batch(scenario)) + reading.notes(scenario) + _of_gradients(scenario)
    found += _of_sustained_rate(scenario, outcome)
    return found + sources.notes(scenario) + _idle(scenario) + gpu_memory.note(scenario)


def explained(scenario: Scenario) -> list[str]:
    """Those that `--explain` prints alone: an interval says as much, or the memory of GPUs is enough."""
    verdicts = gpu_memory.DOES_NOT_FIT, gpu_memory.RECOMPUTED
    return [line for line in gpu_memory.note(scenario) if not line.startswith(verdicts)] + sources.nominal(scenario)


def _of_evaluations(scenario: Scenario, trace: Trace) -> list[str]:
    """Real evaluations of fewer samples than were asked for, because there are no more."""
    samples = trace.rows.loc[trace.rows["activity"] == "evaluate", "samples"]
    if samples.empty or samples.max() >= scenario.test_size:
        return []
    return [
        f"evaluations are of {samples.max()} samples, all test samples that there are; --test-size {scenario.test_size}"
    ]


def _of_data(scenario: Scenario, outcome: Outcome, trace: Trace | None) -> list[str]:
    """Steps in which workers compute all of their data before the time limit; of a real run, by each worker's own count."""
    if trace is not None and trace.header.measured:
        whole = trace.header.ran_out / (scenario.rounds * max(1, scenario.workers))
    else:
        whole = float(np.mean(outcome.samples >= scenario.global_batch))
    if not hasattr(scenario.protocol, "time_limit_s") or whole <= SELDOM:
        return []
    return [f"workers ran out of data before the time limit in {whole:.0%} of the steps: a larger --batch would use it"]


def _of_batch(scenario: Scenario) -> list[str]:
    """A batch that the model does not say."""
    model = scenario.workload
    if "batch" in model.model_fields_set or model.step or scenario.batch != model.batch:
        return []
    return [
        f"{model.name} says no batch: {model.batch} samples per worker and step are taken unless --batch says otherwise"
    ]


def _of_gradients(scenario: Scenario) -> list[str]:
    """Formats of gradients that servers do not take."""
    model = scenario.workload
    if not scenario.servers or model.gradient_bytes in (None, scenario.item_bytes):
        return []
    return [f"gradients go to servers, or the master, in float32; {model.gradients} is of gradients that workers sum"]


def _of_computing(scenario: Scenario) -> list[str]:
    """Commands refuse such a job (Scenario.check_computing); a program may mean it, to time messages alone."""
    takes_time = scenario.costs.compute(scenario.batch) or scenario.costs.partition(scenario.batch)
    return [] if takes_time else ["computing takes no time: no costs of the workload are known"]


def _of_partitions(scenario: Scenario) -> list[str]:
    """A partition that is long beside the time limit, which it may overrun."""
    limit_s, partitions = (getattr(scenario.protocol, name, None) for name in ("time_limit_s", "partitions"))
    if not (limit_s and partitions):
        return []
    speeds = scenario.speeds[scenario.servers :] or scenario.speeds
    longest_s = float(scenario.costs.partition(scenario.batch // partitions)) / min(speeds)
    if longest_s < OVERRUN * limit_s:
        return []
    said = f"the last partition of a step takes {summary.seconds(longest_s)} and may end by as much after the time limit of"
    return [f"{said} {summary.seconds(limit_s)}: more --set partitions are shorter"]


def _of_sustained_rate(scenario: Scenario, outcome: Outcome) -> list[str]:
    """A port that has used up its credit bounds the step, whatever the protocol and the algorithm."""
    per_s = scenario.network.sustained_bytes_per_s
    if per_s is None or len(set(scenario.hosts)) < 2:
        return []
    step_s, port_s = shares.mean_step_s(outcome), bounds.port_s(scenario)
    if scenario.protocol.by_arrival:  # a step is so many gradients, whosever
        port_s *= outcome.samples.mean() / (max(1, scenario.workers) * scenario.batch)
    if abs(port_s - step_s) > BOUND * step_s:
        return []
    rate = f"{per_s * 8 / 1e9:.3g} Gbit/s"
    return [
        f"the sustained rate of the hosts' ports, {rate}, bounds the step: its bytes alone take {port_s * 1e3:.4g} ms"
    ]


def _of_staleness(missed: np.ndarray) -> str:
    missed = missed if len(missed) else np.zeros(1, int)
    if missed.max() < FEW:
        spread = ", ".join(f"{count}: {np.mean(missed == count):.0%}" for count in range(missed.max() + 1))
    else:
        middle, most = np.quantile(missed, (0.5, 0.9), method="inverted_cdf")
        spread = f"p50 {middle}, p90 {most}, largest {missed.max()}"
    return f"staleness of gradients, in updates: mean {missed.mean():.2f}; {spread}"


def _idle(scenario: Scenario) -> list[str]:
    """The hosts and GPUs without a rank, in a line; empty where every GPU and every host has one."""
    if scenario.cluster.provenance and sum(host.count for host in scenario.cluster.hosts) >= UNCOUNTED:
        return []
    hosts, workers = _idle_hosts(scenario), scenario.workers
    gpus = sum(host.count * (host.gpus or 0) for host in scenario.cluster.hosts)
    used = {place for place in scenario.gpus[scenario.servers :] if place}
    idle = min(gpus - len(used), _room(scenario))
    if not used or idle <= 0:
        return [hosts] if hosts else []
    said = f"{workers} worker{'s' * (workers != 1)} on {gpus} GPUs: {idle} idle{', and ' * bool(hosts)}{hosts}"
    takes = "all GPUs" if idle == gpus - len(used) else "every slot"
    return [f"{said}; --workers {workers + idle} takes {takes}"]


def _room(scenario: Scenario) -> int:
    """Ranks that there would be slots for."""
    return scenario.cluster.slots - (scenario.ranks if scenario.servers_on == "own" else scenario.workers)


def _idle_hosts(scenario: Scenario) -> str:
    """The hosts without a rank, as text; empty if there are none."""
    used, first = set(scenario.hosts), 0
    idle: Counter[str] = Counter()
    for host in scenario.cluster.hosts:
        idle[host.name] += host.count - sum(index in used for index in range(first, first + host.count))
        first += host.count
    named = [f"{count} x {name}" if count > 1 else name for name, count in idle.items() if count]
    more = f" and {len(named) - MOST_NAMES} more" if len(named) > MOST_NAMES else ""
    listed = f"{', '.join(map(printable, named[:MOST_NAMES]))}{more}"
    return f"no rank on {idle.total()} of {first} hosts ({listed})" if named else ""
