"""The value of measuring a parameter first: the expected value of partial perfect information.

Raiffa and Schlaifer, Applied Statistical Decision Theory, 1961, chapter 4: choose under each value that a parameter may have, and
compare the cost of these choices with that of today's choice. A step is taken to be computing, known in closed form, and the rest of
the simulated step; each is scaled by itself. Steps to a target are more or fewer for all configurations at once, each by its own spread.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from sim.answers import quantities, sources
from sim.answers.quantities import END
from sim.model import measuring
from sim.plans.candidates import Candidate
from sim.plans.until import by_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sim.answers.quantities import Quantity
    from sim.job.scenario import Scenario
    from sim.plans.question import Question

SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)  # quantiles that stand for a parameter's values
MEASURED = 0.02  # the rest of it after a short run
LEAST = 1e-3  # share of a price below which a gain is none
COMPUTING, MESSAGES, STEPS = "speed of computing", "network and all else than computing", "steps to the target"


class Parameter(NamedTuple):
    """A parameter that is not known exactly.

    Args:
        times: times(z) is how many times as long what it is of takes, z standard deviations from its median.
        assumed: whether that is no measurement.
        measured_by: the short run that would measure it.
    """

    name: str
    times: Callable[[float], float]
    assumed: bool
    measured_by: str

    @property
    def deviation(self) -> float:
        """Standard deviation of its logarithm, on the average of both ends."""
        return math.log(self.times(END) / self.times(-END)) / (2 * END)


@dataclass(frozen=True)
class Value:
    """The effect of knowing a parameter.

    Args:
        low, high: samples a second of the best if the parameter is at its 10 % and 90 % quantile; of steps, over the steps that are added.
        changes: share of its values at which another configuration is chosen.
        saves: mean saving in the minimised quantity: USD of the training, USD an hour, or hours.
        unit: of that.
    """

    parameter: Parameter
    low: float
    high: float
    changes: float
    saves: float
    unit: str

    def as_json(self) -> dict:
        """The value as in the plan's JSON."""
        return {
            "parameter": self.parameter.name,
            "deviation": self.parameter.deviation,
            "assumed": self.parameter.assumed,
            "samples_per_s": {"low": self.low, "high": self.high},
            "choice_changes": self.changes,
            "saves": self.saves,
            "unit": self.unit,
            "measured_by": self.parameter.measured_by,
        }


def parameters(best: Candidate, question: Question, job: Scenario) -> list[Parameter]:
    """The uncertain parameters of the best configuration, as its interval has them.

    Args:
        job: of it.
    """
    host, batch, on_gpu = best.configuration.host, best.configuration.batch, bool(job.cluster.hosts[0].gpus)
    measured_by = {
        COMPUTING: f"on one {host}: {measuring.commands(job.workload, question.workload, batch, on_gpu)}",
        MESSAGES: f"on {'one' if best.configuration.hosts < 2 else 'two'} {host}: {measuring.LINKS[on_gpu]}",
    }
    found = []
    for name, numbers in ((COMPUTING, (sources.COMPUTING,)), (MESSAGES, (sources.LINKS, sources.INNER_LINKS))):
        known = [one for one in quantities.of(job) if one.number in numbers and one.times]
        if known:
            assumed = any(one.source == sources.GIVEN or one.source.startswith("assumed") for one in known)
            found.append(Parameter(name, partial(_product, known), assumed, measured_by[name]))
    if best.work and best.error_of_samples:
        how = f"a run to the target with {best.work.batch:,} samples of all workers in a step: a row of a table for --until"
        found.append(Parameter(STEPS, partial(_more_steps, best), by_name(str(question.until)), how))
    return found


def _more_steps(one: Candidate, z: float) -> float:
    return math.exp(z * one.error_of_samples)


def _product(known: Sequence[Quantity], z: float) -> float:
    """Several numbers at once, all as far from their medians."""
    return math.prod(one.times(z) for one in known if one.times)


def values(best: Candidate, candidates: list[Candidate], question: Question, job: Scenario) -> list[Value]:
    """The parameters, that first which is worth most to know.

    Args:
        best: what is chosen today.
        candidates: that were simulated.
        job: of the best.
    """
    found = [_value(one, best, candidates, question) for one in parameters(best, question, job)]
    return sorted(found, key=lambda value: -value.saves)


def _value(parameter: Parameter, best: Candidate, candidates: list[Candidate], question: Question) -> Value:
    from scipy.special import ndtri

    places = [float(ndtri(share)) for share in SHARES]
    saved = changed = 0.0
    for z in places:
        chosen = _chosen(parameter, z, candidates, question) or best
        ours, theirs = (_price(question, one, _speed(parameter, z, one)) for one in (best, chosen))
        gain = ours - theirs if ours - theirs > LEAST * ours else 0.0
        saved += gain / len(places)
        changed += (gain > 0) / len(places)
    low, high = sorted(_speed(parameter, z, best) for z in (places[0], places[-1]))
    unit = "USD" if question.has_end else "USD an hour"
    return Value(parameter, low, high, changed, saved, unit if question.cheapest else "hours")


def _chosen(parameter: Parameter, z: float, candidates: list[Candidate], question: Question) -> Candidate | None:
    """The best that meets the target once the parameter is known, z standard deviations from its median; None if none does."""
    meet = [one for one in candidates if _meets(parameter, z, one, question)]
    return min(meet, key=lambda one: one.key_at(question, _speed(parameter, z, one)), default=None)


def _meets(parameter: Parameter, z: float, one: Candidate, question: Question) -> bool:
    speed, needed = _speed(parameter, z, one), one.needed(question)
    assert one.figures
    from scipy.special import ndtri

    spread = math.log(one.figures.high / one.figures.low) / (2 * float(ndtri(0.95))) if one.figures.low > 0 else 0.0
    left = math.hypot(spread, MEASURED)
    if parameter.name != STEPS:
        left = math.hypot(math.sqrt(max(spread**2 - parameter.deviation**2, 0.0)) + MEASURED, one.error_of_samples)
    return math.log(speed / needed) >= left * float(ndtri(question.probability)) if needed else True


def _speed(parameter: Parameter, z: float, one: Candidate) -> float:
    """Samples a second, if the parameter is z standard deviations from its median; with more steps, those that count."""
    assert one.figures
    if parameter.name == STEPS:
        return one.figures.mid / _more_steps(one, z)
    share = min(1.0, _computing_s(one) * one.figures.mid / one.least.samples)
    share = share if parameter.name == COMPUTING else 1 - share
    return one.figures.mid / (1 + share * (parameter.times(z) - 1))


def _computing_s(one: Candidate) -> float:
    return max(one.least.compute_s, 0.0)


def _price(question: Question, one: Candidate, samples_per_s: float) -> float:
    """The minimised quantity, in the unit of `Value`."""
    hours = one.hours_at(question, samples_per_s)
    if question.cheapest:
        return one.cost_at(question, samples_per_s)
    return hours if hours is not None else 1 / samples_per_s
