"""The numbers that an answer rests on: the value, its source, and how much of the answer's variance each makes."""

from __future__ import annotations

from math import exp, hypot, log
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sim import zoo
from sim.answers import candidates, extrapolation, shares, sources
from sim.answers.sources import BY_NAME, COMPUTING, HOSTS, INNER_LINKS, LINKS, MODEL, SUMMING
from sim.answers.summary import NO_SPREAD
from sim.base.home import installed
from sim.base.printing import table
from sim.model import workload_text
from sim.model.sizes import ITEM_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.answers.extrapolation import Unknown
    from sim.answers.outcome import Outcome
    from sim.job.scenario import Scenario
    from sim.platform.cluster import Link

RUNS = "from run to run"
ALGORITHM = "NCCL_DEBUG=INFO, or the log of another library, names it: --set algorithm=NAME"
LEAST = 0.005  # of the variance, of numbers that are worth measuring
HEADINGS = ("variance", "throughput", "rests on, and its source")


class Number(NamedTuple):
    """A number, or a few that belong together.

    Args:
        name: COMPUTING, LINKS, and others.
        value: as text; empty if there are several.
        source: of the value, as text.
        slower, faster: 90 % limits of the logarithm by which it makes a step longer, and shorter.
        share: of the variance of the answer's logarithm.
        measured_by: the run that would measure it; empty if none would.
    """

    name: str
    value: str
    source: str
    slower: float = 0.0
    faster: float = 0.0
    share: float = 0.0
    measured_by: str = ""

    @property
    def limits(self) -> str:
        """What it alone does to the throughput, nine times in ten, as text."""
        said = f"{exp(-self.slower) - 1:+.0%} to {exp(self.faster) - 1:+.0%}"
        return said if max(self.slower, self.faster) > NO_SPREAD else self.exact

    @property
    def exact(self) -> str:
        """How it is taken where it moves nothing."""
        return "not seen" if self.name == RUNS else "does not show" if self.source == BY_NAME else "taken as exact"

    def as_json(self) -> dict:
        """The number as in the JSON answer; limits are factors on the throughput."""
        limits = {"low": exp(-self.slower), "high": exp(self.faster)}
        said = {"number": self.name, "value": self.value, "source": self.source, "throughput_ratio": limits}
        return said | {"share_of_variance": self.share, "measured_by": self.measured_by}


def of(scenario: Scenario, outcome: Outcome) -> list[Number]:
    """All numbers, those first that make most of the variance."""
    unknown = extrapolation.unknowns(scenario, outcome)
    names = dict.fromkeys([*_always(scenario), *(one.number for one in unknown)])
    found = [_number(name, scenario, [one for one in unknown if one.number == name]) for name in names]
    found.append(_from_run_to_run(scenario, outcome))
    whole = sum(_variance(one) for one in found) or 1.0
    return sorted((one._replace(share=_variance(one) / whole) for one in found), key=lambda one: -one.share)


def show(numbers: Sequence[Number]) -> None:
    """Print a row for each number."""
    from rich.console import Console

    rows = (
        (f"{one.share:.0%}", one.limits, f"{one.name}{', ' * bool(one.value)}{one.value} ({one.source})")
        for one in numbers
    )
    Console(highlight=False, markup=False).print(table(HEADINGS, rows, HEADINGS, HEADINGS[-1:]))


def _always(scenario: Scenario) -> list[str]:
    """What every such job rests on, known exactly or not."""
    hosts = len(set(scenario.hosts))
    between = [LINKS] * (hosts > 1)
    return [COMPUTING, *between, *[INNER_LINKS] * (hosts < len(scenario.hosts))]


def _number(name: str, scenario: Scenario, unknown: Sequence[Unknown]) -> Number:
    slower, faster = hypot(*(one.slower for one in unknown)), hypot(*(one.faster for one in unknown))
    known = dict.fromkeys(one.source for one in unknown if one.source)
    source = "; ".join(known) or _source(name, scenario)
    return Number(name, _value(name, scenario), source, slower, faster, measured_by=_measured_by(name, scenario))


def _source(name: str, scenario: Scenario) -> str:
    """Of a number of which nothing is unknown."""
    if name == COMPUTING:
        return sources.of_costs(scenario)
    return sources.of_links(scenario, apart=name == LINKS)


def _value(name: str, scenario: Scenario) -> str:
    from sim.answers.summary import seconds

    if name == COMPUTING:
        return f"{seconds(shares.computing_s(scenario))} a step"
    if name == LINKS:
        return _rate(scenario.network, scenario)
    if name == SUMMING:
        return f"{scenario.sum_library}'s"
    return _rate(scenario.local, scenario) if name == INNER_LINKS else ""


def _rate(link: Link, scenario: Scenario) -> str:
    """Of the bytes that travel: the link of a job whose gradients have 16 bits passes twice as many numbers."""
    from sim.answers.summary import number

    rate = link.bandwidth_bytes_per_s * scenario.item_bytes / ITEM_BYTES
    return "free" if rate == float("inf") else f"{number(rate * 8 / 1e9)} Gbit/s"


def _measured_by(name: str, scenario: Scenario) -> str:
    """The run that would measure it; empty if none would."""
    workload, on_gpu = scenario.workload, bool(scenario.cluster.hosts[0].gpus)
    said = workload.name if workload.name in zoo.names() else "FILE"
    if name == COMPUTING:
        return workload_text.commands(workload, said, scenario.batch, on_gpu)
    if name == SUMMING:
        return ALGORITHM
    if name in (LINKS, INNER_LINKS):
        return f"on {'two hosts' if name == LINKS else 'one host'}: {workload_text.LINKS[on_gpu]}"
    if name in (HOSTS, MODEL) and scenario.summed:
        known = scenario.cluster.provenance
        sizes = "more sizes than were fitted" if known and known.growth else "two sizes of the cluster or more"
        where = "one such host" if name == HOSTS else sizes
        fit = f"python -m {installed('calibration.fit')} steps.csv --from scaling --workload {said} -o measured.toml"
        return f"steps of this job on {where}: {fit}"
    return ""


def _from_run_to_run(scenario: Scenario, outcome: Outcome) -> Number:
    """What differs between runs of a job of which all is known: noise, sleeps, drift; or the algorithm, where nobody said it."""
    low, high = outcome.interval()
    half = log(high / low) / 2 if low > 0 and np.isfinite([low, high]).all() else 0.0
    runs = len(outcome.step_s)
    said = f"{runs} simulated run{'s' * (runs != 1)}: noise, sleeps, drift"
    if candidates.unknown(scenario):
        return Number(SUMMING, "", "each candidate simulated", half, half, measured_by=ALGORITHM)
    return Number(RUNS, "", said, half, half)


def _variance(one: Number) -> float:
    return ((one.slower + one.faster) / 2) ** 2
