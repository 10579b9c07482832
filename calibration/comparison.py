"""Recorded runs beside what a profile predicts of them: repeats of one job are judged together, because one run alone may be a bad one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from statistics import fmean

import numpy as np

from calibration import checks
from calibration.estimators import residuals
from sim.answers import outcome
from sim.answers.result import Result
from sim.base.errors import WrongSetting
from sim.job import replay
from sim.job.header import IMPORTED, Header
from sim.job.scenario import Scenario
from sim.model.workload import Workload
from sim.platform.cluster import Cluster
from sim.recording.pauses import PAUSES
from sim.recording.recorded import WORLDS
from sim.recording.traces import Trace
from sim.simulation import simulate

REPLICATIONS, MEANS = 6, 2  # simulated runs, where a run's steps or their mean alone were measured
WAITING = "wait"  # comes of everything else


@dataclass(frozen=True)
class Checked:
    """The repeats of one job beside their prediction.

    Args:
        runs: what they are called.
        measured_s, predicted_s: the mean step, seconds; the mean of the runs.
        error: of the prediction, a share of the measured mean.
        floor: how far the mean steps of the runs differ, the largest from the least, a share of their mean; of one run, those of its
            halves. Nothing can be predicted better. None where the mean alone was measured.
        covered: how many of the runs have a throughput in the prediction's interval; None where there is no interval.
        activities_s: predicted less measured seconds of each activity in a step of a rank, the largest difference first; empty where
            activities were not recorded.
    """

    runs: tuple[str, ...]
    measured_s: float
    predicted_s: float
    error: float
    floor: float | None
    covered: int | None
    activities_s: dict[str, float] = field(default_factory=dict)


def jobs(runs: list[tuple[str, Trace]]) -> list[list[tuple[str, Trace]]]:
    """Runs by their job; repeats may have other random seeds."""
    found: list[tuple[Header, list[tuple[str, Trace]]]] = []
    for name, trace in runs:
        head = replace(trace.header, seed=0, replication=0, sleeps_of=None)
        alike = next((group for other, group in found if other.job == head.job), None)
        if alike is None:
            found.append((head, alike := []))
        alike.append((name, trace))
    return [group for _, group in found]


def checked(profile: Cluster, runs: list[tuple[str, Trace]]) -> Checked:
    """The repeats of one job beside what the profile predicts of each.

    Raises:
        WrongSetting: the profile does not know the model, or its cluster cannot have such a run.
    """
    found: dict[str, Result] = {}
    predicted = [_predicted(profile, trace, name, found) for name, trace in runs]
    measured = [outcome.of_trace(trace) for _, trace in runs]
    steps_s = [one.step_s[0] for one in measured]
    parts_s = steps_s if len(steps_s) > 1 else [half for half in np.array_split(steps_s[0], 2) if len(half)]
    measured_s = fmean(float(one.step_s.mean()) for one in measured)
    predicted_s = fmean(one.answer()["step_s"]["mean"] for one in predicted)
    pairs = zip(measured, predicted, strict=True)
    activities_s, traces = {}, [trace for _, trace in runs]
    if not any(one.header.world == IMPORTED and one.header.communication_in_update for one in traces):  # logs of steps
        activities_s = _differences(traces, [one.kept_trace for one in predicted])
    return Checked(
        runs=tuple(name for name, _ in runs),
        measured_s=measured_s,
        predicted_s=predicted_s,
        error=predicted_s / measured_s - 1,
        floor=float(np.ptp([part_s.mean() for part_s in parts_s])) / measured_s,
        covered=sum(_holds(there.interval, float(here.throughput()[0])) for here, there in pairs),
        activities_s=activities_s,
    )


def of_step(name: str, job: Scenario, measured_s: float) -> Checked:
    """A job of which the mean step was measured, seconds, beside what is predicted of it."""
    found = simulate(job, replications=MEANS)
    predicted_s, speed = found.answer()["step_s"]["mean"], job.workers * job.batch / measured_s
    return Checked(
        (name,), measured_s, predicted_s, predicted_s / measured_s - 1, None, int(_holds(found.interval, speed))
    )


def _predicted(profile: Cluster, trace: Trace, name: str, found: dict[str, Result]) -> Result:
    """The simulated job of a run; the same for runs with the same random seed."""
    checks.check(trace, name)
    with replay.said_of(name):
        scenario = residuals.job_of(trace, profile)
        if profile.costs_of(scenario.workload) is None:
            raise unknown(profile, scenario.workload, "workload")
        key = f"{scenario.seed}, {scenario.sleeps_of}, {scenario.steps}"
        if key not in found:
            found[key] = simulate(scenario, replications=REPLICATIONS, want_trace=True)
    return found[key]


def unknown(profile: Cluster, model: Workload, setting: str) -> WrongSetting:
    """A model that the profile has no costs of, or of which it has those of another one."""
    known = profile.provenance.models.get(model.name) if profile.provenance else None
    if known:
        given, other = f"{model.name} of {model.parameters:,} parameters", f"{known.parameters:,} parameters"
        return WrongSetting(
            setting, given, f"the model of this name that was fitted, of {other} and with its operations"
        )
    return WrongSetting(
        setting, model.name, f"a model that the profile has costs of: {', '.join(profile.costs) or 'nothing'}"
    )


def _holds(pair: tuple[float, float] | None, speed: float) -> bool:
    return pair is not None and pair[0] <= speed <= pair[1]


def activities_s(trace: Trace) -> dict[str, float]:
    """Seconds of each activity but waiting, in a measured step of a rank on average; of a recorded loop without its pauses."""
    head, rows = trace.header, trace.rows
    rows = rows[(rows["step"] >= head.warmup * head.updates_per_step) & (rows["activity"] != WAITING)]
    if head.world in WORLDS:
        rows = rows[~rows["activity"].isin(PAUSES)]
    steps = max(1, rows["step"].nunique()) / head.updates_per_step
    seconds = (rows["end_s"] - rows["start_s"]).groupby(rows["activity"]).sum()
    return {str(name): float(total) for name, total in (seconds / steps / head.ranks).items()}


def _differences(measured: list[Trace], predicted: list[Trace]) -> dict[str, float]:
    """Predicted less measured seconds of each activity, the mean of the runs; of somebody else's runtime, of those that it recorded."""
    there, here = (list(map(activities_s, traces)) for traces in (measured, predicted))
    names = sorted({name for one in (there if measured[0].header.foreign else (*there, *here)) for name in one})
    by_name = {
        name: fmean(one.get(name, 0.0) for one in here) - fmean(one.get(name, 0.0) for one in there) for name in names
    }
    return dict(sorted(by_name.items(), key=lambda item: -abs(item[1])))
