"""The value of measuring a number first: the expected value of partial perfect information.

Raiffa and Schlaifer, Applied Statistical Decision Theory, 1961, chapter 4: choose under each value that a number may have, and
compare the cost of these choices with that of today's choice. A step is taken to be computing, known in closed form, and the rest of
the simulated step; each is scaled by itself. The speed of a kind of GPU, and the links of a kind of host, are off by the same in all
configurations that have them, and independent of those of other kinds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.answers import quantities, sources
from sim.answers.quantities import END
from sim.job import named_gpus
from sim.model import workload_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sim.plans.candidates import Candidate
    from sim.plans.configurations import Room

PLACES = np.array([NormalDist().inv_cdf((k + 0.5) / 90) for k in range(90)])  # standard deviations, equally likely
ENDS = (4, 85)  # of PLACES, the 5 % and the 95 % quantile
DRAWS = 20  # of each place
MEASURED = 0.02  # the rest of it after a short run
LEAST = 1e-3  # share of a price below which a gain is none
COMPUTING, MESSAGES = "speed of computing", "network and all else than computing"


@dataclass(frozen=True, eq=False)
class Parameter:
    """A number that is not known exactly, and that several configurations share.

    Args:
        kind: COMPUTING or MESSAGES.
        of: the GPU or the host of which it is.
        assumed: whether what is known of it is no measurement.
        measured_by: the short run that would measure it.
        usd_per_hour: of a host on which it is measured.
        times: of each configuration that has it, how many times as long what it is of takes, shape of PLACES.
    """

    kind: str
    of: str
    assumed: bool
    measured_by: str
    usd_per_hour: float
    times: dict[Candidate, np.ndarray] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What it is, and of what."""
        return f"{self.kind} on {self.of}"

    @property
    def deviation(self) -> float:
        """Standard deviation of its logarithm, on the average of both ends."""
        fast, slow = next(iter(self.times.values()))[[*ENDS]]
        return math.log(slow / fast) / (2 * END)


@dataclass(frozen=True)
class Value:
    """The effect of knowing a parameter.

    Args:
        changes: share of its values at which another configuration is chosen.
        saves: mean saving in the minimised quantity: USD of the training, USD an hour, or hours.
        unit: of that.
    """

    parameter: Parameter
    changes: float
    saves: float
    unit: str

    def as_json(self) -> dict:
        """The value as in the plan's JSON."""
        one = self.parameter
        known = {"parameter": one.name, "deviation": one.deviation, "assumed": one.assumed}
        worth = {"choice_changes": self.changes, "saves": self.saves, "unit": self.unit}
        return known | worth | {"measured_by": one.measured_by, "usd_per_hour": one.usd_per_hour}


def parameters(candidates: Iterable[Candidate], room: Room) -> list[Parameter]:
    """The numbers that are not known of configurations that were simulated, those of the first one first."""
    found: dict[tuple[str, str], Parameter] = {}
    for one in candidates:
        for new, times in _of(one, room):
            found.setdefault((new.kind, new.of), new).times[one] = times
    return list(found.values())


def _of(one: Candidate, room: Room) -> Iterator[tuple[Parameter, np.ndarray]]:
    """The numbers of one configuration as its interval has them, each with its times."""
    asked, job = one.configuration, room.scenario(one.configuration)
    gpu, on_gpu = named_gpus.reference(job), bool(job.cluster.hosts[0].gpus)
    many, links = "one" if asked.hosts < 2 else "two", (sources.LINKS, sources.INNER_LINKS)
    usual = workload_text.commands(job.workload, room.question.workload, asked.batch, on_gpu)
    for kind, numbers, of, how in (
        (COMPUTING, (sources.COMPUTING,), gpu.name if gpu else asked.host, f"on one {asked.host}: {usual}"),
        (MESSAGES, links, asked.host, f"on {many} {asked.host}: {workload_text.LINKS[on_gpu]}"),
    ):
        known = [each for each in quantities.of(job) if each.number in numbers and each.times]
        if known:
            assumed = any(each.source == sources.GIVEN or each.source.startswith("assumed") for each in known)
            times = np.array([math.prod(each.times(z) for each in known if each.times) for z in PLACES])
            yield Parameter(kind, of, assumed, how, one.usd_per_hour / asked.hosts), times


def values(found: list[Parameter], best: Candidate, candidates: list[Candidate]) -> list[Value]:
    """The worth of knowing each parameter, that first which is worth most to know.

    Args:
        best: what is chosen today.
        candidates: that were simulated.
    """
    valued = [_value(one, best, candidates) for one in found]
    return sorted(valued, key=lambda value: -value.saves)


def _value(parameter: Parameter, best: Candidate, candidates: list[Candidate]) -> Value:
    every = np.arange(len(PLACES))
    least = np.full(len(PLACES), math.inf)
    for one in candidates:
        price = _price(one, _speed(one, {parameter: every}))
        least = np.minimum(least, np.where(_meets(parameter, one), price, math.inf))
    ours = _price(best, _speed(best, {parameter: every}))
    gains = np.where(np.isfinite(least) & (ours - least > LEAST * ours), ours - least, 0.0)
    unit = "USD" if best.question.has_end else "USD an hour"
    unit = unit if best.question.cheapest else "hours"
    return Value(parameter, float((gains > 0).mean()), float(gains.mean()), unit)


def _meets(parameter: Parameter, one: Candidate) -> np.ndarray | bool:
    """Whether a configuration meets the target with the probability asked once the parameter is known: at each of PLACES."""
    needed, share = one.needed, NormalDist().inv_cdf(one.question.probability)
    if one not in parameter.times or not needed:
        return one.meets
    rest = math.sqrt(max(_spread(one) ** 2 - _moved(one, parameter) ** 2, 0.0))
    left = math.hypot(rest + MEASURED, one.error_of_samples)
    return np.log(_speed(one, {parameter: np.arange(len(PLACES))}) / needed) >= left * share


def chances(found: list[Parameter], kinds: list[Candidate]) -> list[float]:
    """The probability of each that it meets the target, and is better than all of the others that do.

    What no parameter says of a configuration is drawn once for each host, and steps to a target once for all. The sum is below 1 where none
    may meet the target.
    """
    rng = np.random.default_rng(kinds[0].question.seed)
    each = np.tile(np.arange(len(PLACES)), DRAWS)
    drawn = {one: rng.permutation(each) for one in found}
    rest = {host: PLACES[rng.permutation(each)] for host in dict.fromkeys(one.configuration.host for one in kinds)}
    steps = PLACES[rng.permutation(each)]
    prices = []
    for one in kinds:
        known = sum(_moved(one, parameter) ** 2 for parameter in found)
        left = math.sqrt(max(0.0, _spread(one) ** 2 - known))
        speed = _speed(one, drawn) * np.exp(left * rest[one.configuration.host] - one.error_of_samples * steps)
        prices.append(np.where(speed >= one.needed, _price(one, speed), math.inf))
    first = np.where(np.isfinite(prices).any(axis=0), np.argmin(prices, axis=0), -1)
    return [float((first == place).mean()) for place in range(len(kinds))]


def _spread(one: Candidate) -> float:
    """Standard deviation of the logarithm of its speed, by its interval."""
    assert one.figures
    return math.log(one.figures.high / one.figures.low) / (2 * END) if one.figures.low > 0 else 0.0


def _moved(one: Candidate, parameter: Parameter) -> float:
    """The part of that which is the parameter's."""
    fast, slow = (_speed(one, {parameter: place}) for place in ENDS)
    return float(np.log(fast / slow)) / (2 * END)


def _speed(one: Candidate, known: Mapping[Parameter, Any]) -> Any:
    """Samples a second, where each parameter is at these of PLACES."""
    assert one.figures
    share = min(1.0, max(one.least.compute_s, 0.0) * one.figures.mid / one.least.samples)
    longer = 1.0
    for parameter, places in known.items():
        if one in parameter.times:
            part = share if parameter.kind == COMPUTING else 1 - share
            longer = longer + part * (parameter.times[one][places] - 1)
    return one.figures.mid / longer


def _price(one: Candidate, samples_per_s: Any) -> Any:
    """The minimised quantity, in the unit of `Value`."""
    return (one.cost_at if one.question.cheapest else one.hours_at)(samples_per_s)
