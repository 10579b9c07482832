"""The errors of a profile on the runs that it was fitted on, when the simulator replays them. One more run has such an error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from calibration.estimators.errors import Residuals
from sim.answers import outcome
from sim.answers.ignorance import CORE
from sim.answers.sources import plain
from sim.base.errors import RunFailed, WrongSetting
from sim.base.progress import each
from sim.job import replay
from sim.job.header import IMPORTED
from sim.job.scenario import Scenario
from sim.laws import Constant, Stragglers, Together
from sim.platform.cluster import Cluster
from sim.protocols import settings_of
from sim.recording.traces import Header, Trace
from sim.simulation import simulate

if TYPE_CHECKING:
    from calibration.profiles import Source

REPLICATIONS = 6
APART = 1.25  # times as long that repeats of a job are said to contradict one another
WIDE, LEAST_ERROR = 2, 0.02  # times as wide as with many repeats, of an error that matters
SLOWER = 1.1  # all work is slowed by this factor, which shows how much of a run is work
LEAST_LONGER = 0.1  # least seconds of a step for each second more after sleeps; below it steps depend on something else
NUDGE_S = 1e-3  # work after a sleep is made longer by so much, which shows its effect on a run


def known(profile: Cluster, sources: Sequence[Source]) -> Cluster:
    """The profile with the error of each workload's costs and notes about it, from the runs that it was fitted on."""
    costs, notes, repeated, paired = dict(profile.costs), [], [], []
    traces = [source.trace for source in sources]
    for name in sorted({trace.header.workload for trace in traces} & set(costs)):
        of_it = [source for source in sources if source.trace.header.workload == name]
        try:
            found = of_runs(profile, [source.trace for source in of_it])
        except (RunFailed, WrongSetting) as refused:
            notes.append(
                f"{name}: intervals lack the variation between runs: the fitted runs cannot be simulated ({refused})"
            )
            continue
        far, runs = np.sqrt(np.mean(found.off**2)), len(found.off)
        several = f"the {runs} fitted runs have" if runs > 1 else "the fitted run has"
        notes.append(f"{name}: simulated, {several} an error of {far:.1%} (root mean square)")
        notes += [f"{name}: {line}" for line in _contradictions([source.name for source in of_it], found)]
        if found.freedom < 1:
            count = f"{runs} run{'s' * (runs > 1)} of {found.kinds} kind{'s' * (found.kinds > 1)}"
            notes.append(f"{name}: intervals lack the variation between runs: {count} cannot show it; repeat some")
            continue
        resume_s = max(0.0, costs[name].resume_s + found.resume_s())
        found = found._replace(off=found.off + found.rest * (resume_s - costs[name].resume_s))
        error = min(found.error(), CORE.deviation)  # what was measured is no worse known than what is nominal
        said = {"error": error, "resume_s": resume_s, "resume_error_s": found.resume_error_s(error)}
        costs[name] = costs[name].model_copy(update=said)
        if found.widening() > WIDE and error > LEAST_ERROR:
            paired.append(name)
            times = f"{found.widening():.1f} times as wide as many repeats would (Student's t)"
            notes.append(f"{name}: one pair of repeats makes intervals {times}: record a third run of the same batch")
        repeated.append(name)
    seen = _seen(profile, traces) | {"repeated": tuple(repeated), "paired": tuple(paired)}
    return profile.model_copy(update={"costs": costs}).known(*notes, **seen)


def _contradictions(names: Sequence[str], found: Residuals) -> Iterator[str]:
    """The runs of each job that are too far apart to be repeats of one another."""
    for kind in np.unique(found.kind):
        off = found.off[found.kind == kind]
        if np.ptp(off) > np.log(APART):
            these = ", ".join(name for name, of in zip(names, found.kind, strict=True) if of == kind)
            yield f"{these} contradict one another: of one job, by a factor {np.exp(np.ptp(off)):.2g}"


def _seen(profile: Cluster, traces: list[Trace]) -> dict:
    """The provenance of these runs: fields of sim.platform.cluster.Provenance."""
    heads = [trace.header for trace in traces]
    batches = {name: [head.batch for head in heads if head.workload == name] for name in profile.costs}
    largest, laws = max(heads, key=lambda head: head.ranks), {head.stragglers for head in heads}
    placed = [(head.servers, as_placed(profile, head), head.ranks) for head in heads]
    hosts = [(here, here.placement(ranks, servers), servers) for servers, here, ranks in placed]
    return {
        "workers": max(head.workers for head in heads),
        "hosts": max(len(set(sat)) for _, sat, _ in hosts),
        "batches": {name: (min(several), max(several)) for name, several in batches.items()},
        "slept": any(_slept(trace) for trace in traces),
        "protocol": largest.protocol,
        "servers": largest.servers if replay.protocol_of(largest).has_servers else None,
        "settings": tuple(settings_of(replay.protocol_of(largest))),
        "stragglers": largest.stragglers if len(laws) == 1 else "none",
        "laws": tuple(sorted({plain(trace.header.stragglers) for trace in traces if _slept(trace)})),
        "crowded": any(here.crowded(sat[servers:]) for here, sat, servers in hosts),
    }


def _slept(trace: Trace) -> bool:
    """Whether ranks were made to sleep, be it logged or hidden in the computation."""
    hidden = trace.header.sleep_in_compute and replay.law_of(trace.header).mean > 0
    return bool(hidden or _sleeps(trace))


def as_placed(profile: Cluster, header: Header) -> Cluster:
    """The profile with as many slots on each host as ranks of the run sat there, if they sat host by host."""
    names = [name for name, _ in header.hosts]
    hosts = [host for host in profile.hosts if host.name in names]
    if not names or [name for name, _ in groupby(names)] != [host.name for host in hosts]:
        return profile
    seated = tuple(host.model_copy(update={"slots": names.count(host.name)}) for host in hosts)
    return profile.model_copy(update={"hosts": seated})


def played(trace: Trace) -> Header:
    """The head of a run with as many steps as it has, if it was cut short."""
    return replace(trace.header, steps=outcome.of_trace(trace).step_s.shape[1])


def of_runs(profile: Cluster, traces: list[Trace]) -> Residuals:
    """Residuals of runs of one workload.

    Raises:
        WrongSetting: a run that the simulator refuses on this cluster.
        RunFailed: one that it does not bring to an end.
    """
    as_fitted = tuple(host.model_copy(update={"contention_error": 0.0}) for host in profile.hosts)
    slow = tuple(host.model_copy(update={"speed": host.speed / SLOWER}) for host in as_fitted)
    profile, slower = (profile.model_copy(update={"hosts": hosts}) for hosts in (as_fitted, slow))
    simulated, rows, kinds = {}, [], {}
    for trace in each(traces, "simulating the runs fitted", label=lambda trace: trace.header.protocol):
        job = _job(played(trace))
        if job not in simulated:
            simulated[job] = _of_job(trace, profile, slower)
        middle, *about = simulated[job]
        kind = kinds.setdefault(_job(replace(trace.header, seed=0, replication=0)), len(kinds))
        rows.append((np.log(outcome.of_trace(trace).throughput()[0]) - middle, *about, kind))
    return Residuals(*np.array(rows).T)


def _of_job(trace: Trace, profile: Cluster, slower: Cluster) -> tuple[float, float, float, float]:
    """Simulate a run's job: mean of log samples/s, and `spread`, `work` and `rest` of Residuals."""
    runs = _simulated(trace, profile, REPLICATIONS)
    logs = np.log(runs.throughput())
    work = (logs[0] - np.log(_simulated(trace, slower).throughput()[0])) / np.log(SLOWER)
    # A deadline ends steps, however long ranks slept.
    if not _sleeps(trace) or replay.protocol_of(trace.header).limits_computing:
        return logs.mean(), logs.std(ddof=1), work, 0.0
    later = {name: of.model_copy(update={"resume_s": of.resume_s + NUDGE_S}) for name, of in profile.costs.items()}
    resuming_later = _simulated(trace, profile.model_copy(update={"costs": later}))
    step_s, later_s = (of.step_s[0].mean() for of in (runs, resuming_later))
    longer = (later_s - step_s) / NUDGE_S
    return logs.mean(), logs.std(ddof=1), work, longer / step_s if longer > LEAST_LONGER else 0.0


def _sleeps(trace: Trace) -> bool:
    """Whether ranks were made to sleep, and the trace tells when."""
    return bool((trace.rows["activity"] == "sleep").any())


def _job(header: Header) -> str:
    """A key that is equal for runs of the same job with the same sleeps on the same hosts."""
    return f"{header.hosts} {header.gpus} {header.job}"


def _simulated(trace: Trace, cluster: Cluster, replications: int = 1) -> outcome.Outcome:
    """The job of a run, where its ranks sat."""
    job = job_of(trace, cluster)
    return simulate(replace(job, stragglers=_sleeping(job.stragglers)), replications=replications).outcome


def _sleeping(law: Stragglers) -> Stragglers:
    """The part of stragglers that sleeps: factors on computing are part of what was fitted."""
    parts = law.of if isinstance(law, Together) else (law,)
    kept = [part for part in parts if not part.slows_computing]
    return law if len(kept) == len(parts) else Together(of=tuple(kept)) if kept else Constant(value=0)


def job_of(trace: Trace, cluster: Cluster) -> Scenario:
    """The job of a run as far as it came, where its ranks sat; every replication with the run's own sleeps, where they are ours.

    Raises:
        WrongSetting: a protocol or a workload that is not at hand, or too many ranks.
    """
    head = played(trace)
    sleeps_of = head.replication if head.sleeps_of is None else head.sleeps_of
    job = replay.scenario_of(head, as_placed(cluster, head))
    return replace(job, sleeps_of=None if head.world == IMPORTED else sleeps_of)
