"""Fixed and anytime minibatch on 10 EC2 machines (T. Adikari, 2019): fitted on one protocol, predicted for the other.

Fitted: a run of fixed minibatches (FMB); the first 21 rounds of another one, which separates a slow machine from a slow run; the cost
of a turn of the partition loop, from seconds per step against partitions on one machine of the same type.
Predicted: a run of anytime minibatches (AMB). Its rows are read for comparison only. All of it is in experiments/figures.

A gap of the profile: communication is one constant, because the logs do not separate it from the master's update. Real communication
varies from step to step, and is nearly all that varies in steps of AMB. Their mean and p95 are predicted; the shape of their law is
not.

Stalls: the time of a step beyond its slowest worker has a median. Steps with more than 5 times that median are left out of the
measured and of the fitted ones. They are the loads of 10,000 images in the first passes over the data, +4 to +22 s.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments import figures
from experiments.kit import pages
from experiments.kit.comparison import interval_s
from sim.answers import extrapolation
from sim.simulation import simulate

if TYPE_CHECKING:
    from rich.table import Table

    from sim.answers.result import Result
    from sim.job.scenario import Scenario
    from sim.platform.cluster import Cluster
    from sim.recording.traces import Trace

WORKERS, FMB_BATCH, AMB_BATCH, PARTITIONS, TIME_LIMIT_S = 10, 242, 356, 16, 6.2  # as the run's configuration has them
REPLICATIONS = 20


@dataclass(frozen=True)
class Steps:
    """Steps of one run or of many: seconds and samples of each, shape (steps,)."""

    step_s: np.ndarray
    samples: np.ndarray

    def quantities(self) -> dict[str, float]:
        """The compared quantities, in the units of their names."""
        percentiles = {f"step p{q}, s": float(np.percentile(self.step_s, q)) for q in (5, 25, 50, 75, 95)}
        spread = {f"samples p{q}": float(np.percentile(self.samples, q)) for q in (5, 50, 95)}
        throughput = float(self.samples.sum() / self.step_s.sum())
        means = {"mean step, s": float(self.step_s.mean()), "samples a step": float(self.samples.mean())}
        return means | {"samples/s": throughput} | percentiles | spread


def measured(protocol: str) -> tuple[Steps, int]:
    """The run of `protocol` (fmb or amb), warm-up and stalls left out; how many stalls there were."""
    from calibration.estimators.lines import stalled
    from sim.answers.outcome import of_trace

    trace = recorded(f"ec2_{protocol}")
    outcome, rows = of_trace(trace), trace.rows
    beyond = rows[(rows["rank"] == 0) & (rows["activity"] == "update") & (rows["step"] >= trace.header.warmup)]
    stalls = stalled((beyond["end_s"] - beyond["start_s"]).to_numpy())
    return Steps(outcome.step_s[0][~stalls], outcome.samples[0][~stalls]), int(stalls.sum())


def recorded(name: str) -> Trace:
    """A table of rounds in experiments/figures, as a trace."""
    import pandas as pd

    from calibration.importers import rounds

    table, work = figures.table(name), []
    for rank in range(1, WORKERS + 1):
        own = {f"{name}_{rank}": name for name in ("samples", "busy_s", "sleep_s")}
        mine = table[[one for one in ("samples", *own) if one in table]].rename(columns=own)
        work.append(mine.assign(rank=rank, step=range(len(table))))
    work = pd.concat(work, ignore_index=True)
    return rounds.trace(work, table["round_s"].cumsum().tolist(), "cifar10", "niagara", name)


def fitted() -> Cluster:
    """The profile, from runs of fixed minibatches and the cost of a turn; no row of the AMB run."""
    from calibration.profiles import Source, make

    sources = [Source(name, recorded(name)) for name in ("ec2_fmb", "ec2_fmb_further")]
    profile = make(sources, "10 x m3.xlarge")
    costs = profile.costs["cifar10"]
    partition = costs.partition.model_copy(update={"base_s": turn_s()})
    return profile.model_copy(update={"costs": {"cifar10": costs.model_copy(update={"partition": partition})}})


def turn_s() -> float:
    """Seconds of a turn of the partition loop beyond those of its samples.

    From step = base + samples x slope + turns x this, on one machine. Minibatches have 64 to 512 samples in at most 32 partitions, as
    the runs do.
    """
    from calibration.estimators import lines

    table = figures.table("ec2_partitions")
    table = table[table["samples"].between(64, 512) & (table["partitions"] <= 32)]
    design = np.column_stack([np.ones(len(table)), table["samples"], table["partitions"]])
    return float(lines.fit(design, table["step_s"].to_numpy(), np.arange(len(table)))[2])


def scenario(protocol: str, cluster: Cluster, steps: int, seed: int = 0) -> Scenario:
    """The EC2 job under `protocol`, fmb or amb."""
    from sim import protocols, stragglers
    from sim.job.scenario import Scenario
    from sim.model import workload

    timed = [f"time_limit_s={TIME_LIMIT_S}", f"partitions={PARTITIONS}"]
    settings, batch = {"fmb": ([], FMB_BATCH), "amb": (timed, AMB_BATCH)}[protocol]
    job = {"workers": WORKERS, "steps": steps, "warmup": 1, "batch": batch, "cluster": cluster, "seed": seed}
    return Scenario(
        protocols.make(protocol, settings),
        workload.read("cifar10"),
        stragglers=stragglers.read("niagara"),
        stragglers_name="niagara",
        **job,
    )


def predicted(job: Scenario, replications: int = REPLICATIONS) -> list[Steps]:
    """One prediction a replication, each as long as the job."""
    return runs_of(simulate(job, replications=replications))


def runs_of(found: Result) -> list[Steps]:
    """The simulated runs."""
    return [Steps(s, n) for s, n in zip(found.step_s, found.samples, strict=True)]


def pooled(runs: list[Steps]) -> Steps:
    """The steps of all runs."""
    return Steps(np.concatenate([r.step_s for r in runs]), np.concatenate([r.samples for r in runs]))


def distance(a: Steps, b: Steps) -> tuple[float, float]:
    """Kolmogorov-Smirnov distances of step times and of samples, 0 to 1."""
    from scipy.stats import ks_2samp

    return float(ks_2samp(a.step_s, b.step_s).statistic), float(ks_2samp(a.samples, b.samples).statistic)


def run(out: Path, seed: int = 0) -> None:
    """Print the table of measured against predicted."""
    cluster = fitted()
    results = {}
    for protocol in ("fmb", "amb"):
        real, stalls = measured(protocol)
        job = scenario(protocol, cluster, len(real.step_s), seed)
        found = simulate(job, replications=REPLICATIONS)
        results[protocol] = real, runs_of(found)
        pages.show(_table(protocol, real, stalls, found, pooled(predicted(job.without_stragglers(), 1))))
    _ratio(results)


def _table(protocol: str, real: Steps, stalls: int, found: Result, sleepless: Steps) -> Table:
    claim = {"fmb": "fitted on this run: a replay", "amb": "predicted from the FMB runs alone"}[protocol]
    headings = "", "measured", "its halves differ by", "predicted", "90 %", "error", "if sleeps are ignored"
    title = f"{protocol}: {claim}; {len(real.step_s)} steps, {stalls} stalls left out"
    table = pages.table(title, *headings)
    runs = runs_of(found)
    whole, dummy = pooled(runs).quantities(), sleepless.quantities()
    first, second = (half.quantities() for half in halves(real))
    single = [r.quantities() for r in runs]
    # As sim.run prints them; the others are of runs alone.
    as_printed = {"mean step, s": _interval_s(found), "samples/s": found.interval}
    for name, value in real.quantities().items():
        low, high = as_printed.get(name) or np.percentile([s[name] for s in single], (5, 95))
        floor, error, off = (
            (x / value - 1) for x in (value + abs(first[name] - second[name]), whole[name], dummy[name])
        )
        said = f"{whole[name]:.4g}", f"{low:.4g} to {high:.4g}"
        table.add_row(name, f"{value:.4g}", f"{floor:.1%}", *said, f"{error:+.1%}", f"{off:+.1%}")
    floor, off = distance(*halves(real)), distance(sleepless, real)
    for index, name in enumerate(("KS distance, step", "KS distance, samples")):
        table.add_row(
            name, "", f"{floor[index]:.2f}", f"{distance(pooled(runs), real)[index]:.2f}", "", "", f"{off[index]:.2f}"
        )
    return table


def _interval_s(found: Result) -> tuple[float, float]:
    return interval_s(found.step_s.mean(axis=1), extrapolation.unknowns(found.scenario, found.outcome))


def halves(steps: Steps) -> tuple[Steps, Steps]:
    """The first and the second half of a run's steps."""
    middle = len(steps.step_s) // 2
    return tuple(Steps(steps.step_s[part], steps.samples[part]) for part in (slice(middle), slice(middle, None)))


def _ratio(results: dict) -> None:
    real = {name: steps.quantities()["samples/s"] for name, (steps, _) in results.items()}
    said = {name: pooled(runs).quantities()["samples/s"] for name, (_, runs) in results.items()}
    measured_ratio, said_ratio = (x["amb"] / x["fmb"] for x in (real, said))
    pages.show(
        f"AMB over FMB, samples/s: measured {measured_ratio:.3f}, predicted {said_ratio:.3f} ({said_ratio / measured_ratio - 1:+.1%})"
    )
