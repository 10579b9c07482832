"""Hosts that fail: the losses of a run to checkpoints, to repeated work, and to restarts.

Failures of a host are random and independent of its age (exponential times between them). A run stops if the failed host has a master
or a server, or a worker for which the others wait. It restarts, and repeats the work since its last checkpoint. If the
protocol takes gradients from whichever worker has one, the other workers go on. The run lacks that host's gradients until the host is
back, and no work is repeated.

Segments between checkpoints are tried until one ends before a failure, and so are restarts: Daly, "A higher order estimate of the
optimum checkpoint interval for restart dumps", Future Generation Computer Systems 22 (2006), equation 20, is their mean length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.base.errors import WrongSetting, nearest
from sim.base.ranges import LONGEST_S
from sim.base.units import assigned, quantity

if TYPE_CHECKING:
    from sim.job.scenario import Scenario

OPTION = "--failures"
BEST = "best"
RUNS = 2000  # that are drawn
FEW = 100  # failures, up to which each is drawn by itself
MOST_FAILURES = 20.0  # expected in a segment or a restart
LEAST_GOODPUT = 1e-3  # below this share a run makes no progress to speak of
SHORTEST_RUN_S = 60.0
LEAST_S, MOST_S = 1.0, 1e3 * LONGEST_S  # of a setting; hosts last for years


@dataclass(frozen=True)
class Failures:
    """Failures of hosts and the remedies, seconds.

    Args:
        mtbf_s: mean time between the failures of one host, which give no warning.
        restart_s: time from a failure until the run, or the host's worker, trains again.
        checkpoint_s: time of a checkpoint, during which no rank trains.
        every_s: time of training between two checkpoints; None is the time that loses least.
        run_s: length of a run, training and everything else.
        preemption_s: mean time between the preemptions of one host, which leave time to write a checkpoint; None if there are none.
    """

    mtbf_s: float
    restart_s: float = 300.0
    checkpoint_s: float = 10.0
    every_s: float | None = None
    run_s: float = 86_400.0
    preemption_s: float | None = None


@dataclass(frozen=True)
class Lost:
    """The losses of a run.

    Args:
        every_s: time of training between two checkpoints.
        goodput: share of the throughput that is left, the mean over runs.
        interval: low and high end of the 90 % interval for the share of one more run; it reaches to the mean, which few bad
            runs may move.
        checkpoints, repeated, restarts, missing: shares of the time for checkpoints, repeated work and restarts; share of the
            throughput lost by missing workers for which the others do not wait.
        stops: failures and preemptions in a run that stop it, the mean.
    """

    every_s: float
    goodput: float
    interval: tuple[float, float]
    checkpoints: float
    repeated: float
    restarts: float
    missing: float
    stops: float


def read(text: str) -> Failures:
    """The failures that a text describes: "mtbf=30 d, restart=5 min, checkpoint=20 s, every=30 min, run=24 h".

    Raises:
        WrongSetting: an unknown name, no mtbf, or a time that cannot be.
    """
    known = {one.name.removesuffix("_s"): one.name for one in fields(Failures)}
    found: dict[str, Any] = {}
    names = ", ".join(f"{one}=TIME" for one in known)
    for name, value in assigned(OPTION, text.split(","), names).items():
        if name not in known:
            raise WrongSetting(OPTION, f"{name}={value}", names + nearest(name, known))
        found[known[name]] = None if (name, value) == ("every", BEST) else _seconds(name, value)
    if "mtbf_s" not in found:
        raise WrongSetting(OPTION, text, "mtbf=TIME besides: the mean time between the failures of one host")
    return Failures(**found)


def lasting(text: str, run_s: float | None) -> str:
    """The text of failures in a run of another length, as far as there may be such a run; as it is if None.

    >>> lasting("mtbf=30 d, run=2 d", 7200.0)
    'mtbf=30 d, run=7200 s'
    """
    if run_s is None:
        return text
    others = [part.strip() for part in text.split(",") if part.partition("=")[0].strip() != "run"]
    return ", ".join([*others, f"run={min(max(SHORTEST_RUN_S, run_s), MOST_S):.6g} s"])


def _seconds(name: str, text: str) -> float:
    try:
        value_s = quantity(text, "second", "30 d")
    except WrongSetting as error:
        raise WrongSetting(f"{OPTION}: {name}", text, 'a quantity with its unit, such as "30 d"') from error
    least = 0 if name in ("restart", "checkpoint") else LEAST_S
    if not (isinstance(value_s, float) and least <= value_s <= MOST_S):
        raise WrongSetting(f"{OPTION}: {name}", text, f"{least:g} to {MOST_S:,.0f} seconds")
    return value_s


def lost(scenario: Scenario, failures: Failures) -> Lost:
    """The losses of a job over RUNS runs, drawn from the scenario's random seed.

    Raises:
        WrongSetting: so many failures come in a segment that a run makes no progress.
    """
    stopping, beside = stopping_hosts(scenario)
    rate = stopping / failures.mtbf_s
    if rate * max(failures.restart_s, failures.checkpoint_s, failures.every_s or 0.0) > MOST_FAILURES:
        raise _no_progress(failures, stopping)
    every_s = best_every_s(rate, failures) if failures.every_s is None else failures.every_s
    every_s = min(every_s, failures.run_s)
    segment_s = every_s + failures.checkpoint_s
    rng = np.random.default_rng(np.random.SeedSequence(scenario.seed, spawn_key=(len("failures"),)))
    if rate * segment_s > 2 * MOST_FAILURES:
        raise _no_progress(failures, stopping)
    count = max(1, round(failures.run_s / mean_segment_s(rate, segment_s, failures.restart_s)))
    stops = _failed(rng, np.full(RUNS, count), rate, segment_s)
    again = _failed(rng, stops, rate, failures.restart_s)
    repeated_s = _in_vain_s(rng, stops, rate, segment_s)
    restarts_s = stops * failures.restart_s + _in_vain_s(rng, again, rate, failures.restart_s)
    warned = _warned(rng, stopping, failures, count * segment_s + repeated_s + restarts_s)
    restarts_s += warned * failures.restart_s
    checkpoints_s = count * failures.checkpoint_s + warned * failures.checkpoint_s
    whole_s = count * every_s + checkpoints_s + repeated_s + restarts_s
    between_s = filter(None, (failures.mtbf_s, failures.preemption_s))
    # Of a host that no rank waits for, beside each second that it is there.
    away = sum(failures.restart_s / one for one in between_s)
    missing = beside * away / (1 + away)
    shares = count * every_s / whole_s * (1 - missing)
    if shares.mean() < LEAST_GOODPUT:
        raise _no_progress(failures, stopping)
    low, high = np.quantile(shares, (0.05, 0.95))
    low, high = min(low, shares.mean()), max(high, shares.mean())
    left = float(shares.mean()), (float(low), float(high))
    saved, repeated, restarts = (float((part_s / whole_s).mean()) for part_s in (checkpoints_s, repeated_s, restarts_s))
    return Lost(every_s, *left, saved, repeated, restarts, float(missing), float((stops + again + warned).mean()))


def _warned(rng, hosts: int, failures: Failures, whole_s: np.ndarray) -> np.ndarray:
    """Preemptions that stop each run, shape (runs,): after a checkpoint, so that nothing is done again."""
    if failures.preemption_s is None:
        return np.zeros(len(whole_s), int)
    rate = hosts / failures.preemption_s
    if rate * (failures.restart_s + failures.checkpoint_s) > MOST_FAILURES:
        raise _no_progress(failures, hosts)
    return rng.poisson(rate * whole_s)


def stopping_hosts(scenario: Scenario) -> tuple[int, float]:
    """The number of hosts whose failure stops the run, and the share of the workers on other hosts."""
    hosts, servers = scenario.hosts, scenario.servers
    if not scenario.protocol.by_arrival:
        return len(set(hosts)), 0.0
    stopping = set(hosts[:servers])
    return len(stopping), sum(host not in stopping for host in hosts[servers:]) / max(1, scenario.workers)


def best_every_s(rate: float, failures: Failures) -> float:
    """Seconds of training between two checkpoints that lose least.

    Args:
        rate: failures a second that stop the run.
    """
    from scipy.optimize import minimize_scalar

    least_s, most_s = max(failures.checkpoint_s / 100, LEAST_S), failures.run_s
    if rate == 0 or least_s >= most_s:
        return most_s
    if failures.checkpoint_s == 0:
        return least_s
    most_s = min(most_s, max(2 * least_s, MOST_FAILURES / rate - failures.checkpoint_s))

    def loss(log_s: float) -> float:
        return math.log(mean_segment_s(rate, math.exp(log_s) + failures.checkpoint_s, failures.restart_s)) - log_s

    return math.exp(minimize_scalar(loss, bounds=(math.log(least_s), math.log(most_s)), method="bounded").x)


def mean_segment_s(rate: float, segment_s: float, restart_s: float) -> float:
    """Seconds that a segment takes on average, with all that failed before it succeeds (Daly 2006, equation 20)."""
    return segment_s if rate == 0 else math.exp(rate * restart_s) * math.expm1(rate * segment_s) / rate


def _no_progress(failures: Failures, hosts: int) -> WrongSetting:
    preempted = f"preemption={failures.preemption_s:g} s, " if failures.preemption_s else ""
    times = f"mtbf={failures.mtbf_s:g} s, {preempted}restart={failures.restart_s:g} s"
    given = f"{times}, and {hosts} hosts that stop the run"
    return WrongSetting(OPTION, given, f"times by which more than {LEAST_GOODPUT:.1%} of a run is progress")


def _failed(rng, needed: np.ndarray, rate: float, long_s: float) -> np.ndarray:
    """The number of failed attempts until so many have lasted so long: a sum of geometric numbers; shape of `needed`."""
    failed = np.zeros(len(needed), int)
    some = needed > 0
    if rate * long_s > 0:
        failed[some] = rng.negative_binomial(needed[some], math.exp(-rate * long_s))
    return failed


def _in_vain_s(rng, failed: np.ndarray, rate: float, long_s: float) -> np.ndarray:
    """Seconds of so many attempts that failed: the sum of exponential times, each cut at `long_s`; of many, by its normal limit."""
    if rate * long_s == 0:
        return np.zeros(len(failed))
    hit = -math.expm1(-rate * long_s)
    mean_s = 1 / rate - long_s * (1 - hit) / hit
    variance = max(0.0, 1 / rate**2 - long_s**2 * (1 - hit) / hit**2)
    total_s = rng.normal(mean_s * failed, np.sqrt(variance * failed))
    few = failed <= FEW
    times_s = -np.log1p(-rng.random((int(few.sum()), FEW)) * hit) / rate
    total_s[few] = np.where(np.arange(FEW) < failed[few, None], times_s, 0.0).sum(axis=1)
    return np.clip(total_s, 0.0, failed * long_s)


def told(lost: Lost, samples_per_s: float) -> str:
    """The losses of a run, in a line."""
    from sim.answers.summary import number
    from sim.base.progress import duration

    low, high = lost.interval
    parts = {"checkpoints": lost.checkpoints, "work done again": lost.repeated}
    parts |= {"restarts": lost.restarts, "missing workers": lost.missing}
    said = ", ".join(f"{name} {share:.1%}" for name, share in parts.items() if share >= 5e-4) or "nothing to speak of"
    return (
        f"with failures    {number(lost.goodput * samples_per_s)} samples/s, {lost.goodput:.1%} of it "
        f"(90% of runs {low:.1%} to {high:.1%}), "
        f"{lost.stops:.3g} stops a run, a checkpoint after {duration(lost.every_s)} of training\n"
        f"  lost: {said}"
    )
