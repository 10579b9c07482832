"""Ranks that are killed at random: what checkpoints, work done again and restarts cost, for real and predicted.

Fitted: a run that nobody disturbs (seconds of a step and of a checkpoint), and runs in which ranks are killed (seconds until a run trains
again, and until a death is noticed). Predicted: runs with other seeds. Each is replayed: one rank is killed at the times that the
supervisor draws from its seed, and goes on from its last checkpoint. Each seed is run again, which tells the noise floor: the times of
the failures are equal, and all else is the machine's. The second prediction knows no times: it is `sim.run --failures`.

Steps sleep, so that their duration depends little on the machine's other work.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.kit import pages
from real.launching.supervisor import Failing
from real.recording.attempts import LOST, RESTART
from sim.base.errors import RunFailed
from sim.base.home import installed
from sim.base.progress import Progress, advance
from sim.recording import traces
from sim.recording.traces import Trace
from sim.studies import failures

WORKERS, EVERY, MTBF_S = 2, 100, 40.0  # steps between checkpoints; mean time between the failures of a rank
JOB = f"--protocol allreduce --workload mlp --workers {WORKERS} --batch 32 --warmup 0 --optimiser mom --stragglers constant(value=20ms)"
RESTARTS = 50  # more than a run needs
FIT_SEEDS, SEEDS, REPEATS, STEPS = (101, 102), (1, 2, 3), 2, 2000
RUN_S = 65  # of a run, for the time left
NOTICED_S = np.linspace(0, 5, 101)  # that are tried


class Costs(NamedTuple):
    """What a run is made of, seconds.

    Args:
        step_s, checkpoint_s: of one.
        start_s: from a start of the ranks until they train.
        noticed_s: from a death until the run has ended.
    """

    step_s: float
    checkpoint_s: float
    start_s: float
    noticed_s: float = 0.0


class Run(NamedTuple):
    """Seconds of a whole run, from its first training on, with those of its parts; and how often it was started again."""

    whole_s: float
    checkpoints_s: float
    lost_s: float
    restarts_s: float
    restarts: int

    @property
    def goodput(self) -> float:
        """The share that is training that counts."""
        return 1 - (self.checkpoints_s + self.lost_s + self.restarts_s) / self.whole_s


def replayed(costs: Costs, failing: Failing, steps: int, every: int = EVERY) -> Run:
    """A run whose ranks fail at given times: an attempt goes on from the last checkpoint, and ends where a rank fails."""
    now_s, step, began_s, lost_s, restarts = 0.0, 0, None, 0.0, 0
    segment_s = every * costs.step_s + costs.checkpoint_s
    while True:
        failing.rank()
        trains_s = now_s + costs.start_s
        end_s = trains_s + (steps - step) * costs.step_s + ((steps - step - 1) // every) * costs.checkpoint_s
        dies_s = max(now_s, failing.next_s)
        began_s = trains_s if began_s is None and dies_s > trains_s else began_s
        if began_s is not None and dies_s >= end_s:
            checkpoints_s = (steps - 1) // every * costs.checkpoint_s
            whole_s = end_s - began_s
            restarts_s = whole_s - steps * costs.step_s - checkpoints_s - lost_s
            return Run(whole_s, checkpoints_s, lost_s, restarts_s, restarts)
        now_s = dies_s + costs.noticed_s
        if dies_s > trains_s:
            segments = int((dies_s - trains_s) // segment_s)
            step += segments * every
            lost_s += now_s - trains_s - segments * segment_s
        failing.past(now_s)
        restarts += 1


def measured(trace: Trace) -> Run:
    """What a supervised run's trace has of rank 0."""
    rows = trace.rows[trace.rows["rank"] == 0]
    seconds = rows["end_s"] - rows["start_s"]
    checkpoints_s, lost_s, restarts_s = (
        float(seconds[rows["activity"] == name].sum()) for name in ("checkpoint", LOST, RESTART)
    )
    return Run(float(rows["end_s"].max()), checkpoints_s, lost_s, restarts_s, trace.header.details["restarts"])


def real(path: Path, steps: int, seed: int, killed: bool = True) -> Trace:
    """Run it for real.

    Raises:
        RunFailed: in its own words.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    engine = "numpy"
    words = [*JOB.split(), "--steps", steps, "--seed", seed, "--engine", engine, "--quiet", "--trace", path]
    words += ["--restarts", RESTARTS, "--checkpoint-every", EVERY]
    words += ["--failures", f"mtbf={MTBF_S:g} s"] if killed else []
    line = [sys.executable, "-m", installed("real.run"), *map(str, words)]
    ended = subprocess.run(line, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if ended.returncode:
        raise RunFailed(ended.stderr.strip().splitlines()[-1] if ended.stderr.strip() else f"{path.stem} failed")
    advance(RUN_S, path.stem)
    return traces.read(path)


def fitted(quiet: Run, killed: dict[int, Trace], steps: int) -> Costs:
    """The costs, of an undisturbed run and of others by seed, in which ranks were killed.

    Raises:
        RunFailed: no rank was killed while it trained.
    """
    checkpoint_s = quiet.checkpoints_s / max(1, (steps - 1) // EVERY)
    rows = [trace.rows[(trace.rows["rank"] == 0) & (trace.rows["activity"] == RESTART)] for trace in killed.values()]
    starts_s = np.concatenate([(row["end_s"] - row["start_s"]).to_numpy() for row in rows])
    if not len(starts_s):
        raise RunFailed("no rank was killed in the runs that are fitted: their steps are too few")
    known = Costs((quiet.whole_s - quiet.checkpoints_s) / steps, checkpoint_s, float(np.median(starts_s)))
    lost_s = {seed: measured(trace).lost_s for seed, trace in killed.items()}

    def off(noticed_s: float) -> float:
        costs = known._replace(noticed_s=noticed_s)
        return sum((replayed(costs, _failing(seed), steps).lost_s - took) ** 2 for seed, took in lost_s.items())

    return known._replace(noticed_s=float(min(NOTICED_S, key=off)))


def _failing(seed: int) -> Failing:
    return Failing(seed, MTBF_S, WORKERS)


def by_law(costs: Costs, steps: int) -> failures.Lost:
    """What `sim.run --failures` says of such a run."""
    from sim import protocols
    from sim.job.scenario import Scenario
    from sim.model import workload

    every_s, restart_s = EVERY * costs.step_s, costs.start_s + costs.noticed_s
    segment_s = failures.mean_segment_s(WORKERS / MTBF_S, every_s + costs.checkpoint_s, restart_s)
    job = Scenario(protocols.make("allreduce", []), workload.read("mlp"), WORKERS)
    checkpoint_s = costs.checkpoint_s * (1 - EVERY / steps)  # a run that ends writes none
    known = failures.Failures(MTBF_S, restart_s, checkpoint_s, every_s, run_s=steps / EVERY * segment_s)
    return failures.lost(job, known)


def run(out: Path, seed: int = 0, demo: bool = False) -> None:
    """Fit, run, predict; a table of runs, the noise floor, and the share of runs within the interval of sim.run."""
    steps = STEPS // 2 if demo else STEPS
    fits, seeds = (FIT_SEEDS[:1], SEEDS[:1]) if demo else (FIT_SEEDS, SEEDS)
    with Progress("running", (1 + len(fits) + REPEATS * len(seeds)) * RUN_S):
        quiet = measured(real(out / "quiet.parquet", steps, seed, killed=False))
        killed = {one + seed: real(out / f"fit-{one}.parquet", steps, one + seed) for one in fits}
        runs = [(one + seed, repeat) for repeat in range(REPEATS) for one in seeds]
        found = {(one, repeat): measured(real(out / f"{one}-{repeat}.parquet", steps, one)) for one, repeat in runs}
    costs = fitted(quiet, killed, steps)
    pages.show(
        f"fitted: a step {costs.step_s * 1e3:.1f} ms, a checkpoint {costs.checkpoint_s * 1e3:.1f} ms, a start {costs.start_s:.2f} s, "
        f"a death noticed after {costs.noticed_s:.2f} s"
    )
    said = {one: replayed(costs, _failing(one), steps) for one, _ in runs}
    pages.show(_table(found, said))
    off = [abs(said[one].whole_s / measured_.whole_s - 1) for (one, _), measured_ in found.items()]
    pages.show(f"time of a run: off by {np.mean(off):.1%} on the average; repeats differ by {_floor(found):.1%}")
    lost = by_law(costs, steps)
    low, high = lost.interval
    goodputs = [one.goodput for one in found.values()]
    inside = sum(low <= one <= high for one in goodputs)
    pages.show(
        f"sim.run --failures, without the times: {lost.goodput:.1%} of the throughput is left (90 % of runs {low:.1%} to {high:.1%}); "
        f"measured {np.mean(goodputs):.1%}, {inside} of {len(goodputs)} within"
    )


def _floor(found: dict[tuple[int, int], Run]) -> float:
    """Mean relative difference of the times of two runs of one seed."""
    pairs = [(a, b) for (one, _), a in found.items() for (other, _), b in found.items() if one == other and a is not b]
    return float(np.mean([abs(a.whole_s - b.whole_s) / (a.whole_s + b.whole_s) * 2 for a, b in pairs]))


def _table(found: dict[tuple[int, int], Run], said: dict[int, Run]):
    made = pages.table(
        "Runs whose ranks are killed: measured / predicted",
        "seed",
        "repeat",
        "restarts",
        "whole, s",
        "work done again, s",
        "restarts, s",
    )
    for (seed, repeat), one in sorted(found.items()):
        other = said[seed]
        cells = ((getattr(one, name), getattr(other, name)) for name in ("whole_s", "lost_s", "restarts_s"))
        made.add_row(
            str(seed), str(repeat), f"{one.restarts} / {other.restarts}", *(f"{a:.1f} / {b:.1f}" for a, b in cells)
        )
    return made
