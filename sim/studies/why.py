"""The causes of a job's step time: its gain without each cause, and the changes that would help. All of them are simulated.

Causes overlap (messages hidden by computing cost nothing), and their gains do not add up. The largest one is the critical resource.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from sim.answers.candidates import unknown
from sim.base.errors import RunFailed, WrongSetting
from sim.base.printing import table
from sim.job import variants
from sim.job.variants import with_costs
from sim.model.costs import Line
from sim.platform.cluster import FREE
from sim.studies.what_if import Compared, compare, percent

if TYPE_CHECKING:
    from sim.answers.result import Result
    from sim.job.scenario import Scenario

SUMS = ("take_up", "reduce", "reduce_rows", "update")
COMPUTING = ("compute", "partition")
HEADINGS = ("why", "mean step", "throughput", "9 in 10 pairs")
WITHOUT_STRAGGLERS = "without induced stragglers"  # the one job without a cause whose pairs are of real runs
LEAST = 0.005  # gains below this share of the throughput are not shown
Simulate = Callable[["Scenario", int | None], "Result"]


@dataclass(frozen=True, repr=False)
class Why:
    """The causes on which a job's throughput depends.

    Args:
        causes: the job without each cause, beside the job; the largest gain first.
        advice: changes that would help, likewise.
        doubled: the job with twice the workers beside the job; None if there can be no such job.
    """

    causes: list[Compared]
    advice: list[Compared]
    doubled: Compared | None

    @property
    def critical(self) -> str | None:
        """The cause without which the job would gain most; None if none of them matters."""
        return self.causes[0].change if self.causes else None

    def as_json(self) -> dict:
        """The object `why` of the JSON answer."""
        return {
            "critical": self.critical,
            "causes": [_told(one) for one in self.causes],
            "advice": [_told(one) for one in self.advice],
            "twice_the_workers": self.doubled and _told(self.doubled),
        }

    def show(self) -> None:
        """Print a line for each cause and each change that would help."""
        from rich.console import Console

        Console(highlight=False).print(table(HEADINGS, self._rows()))

    def __repr__(self) -> str:
        return "\n".join("  ".join(cells) for cells in self._rows())

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for one in self.causes:
            yield _cells(one.change, one)
        if not self.causes:
            yield (f"no cause changes it by {LEAST:.1%}",)
        if self.doubled:
            yield _cells(f"twice the workers: {self.doubled.ratio / 2:.0%} efficient", self.doubled)
        for one in self.advice:
            yield _cells(f"try {one.change}", one)


def why(base: Result, simulate: Simulate, changed: Callable[[str], Scenario]) -> Why:
    """Simulate the job without each cause, and with changes that may help: one run of each first, and all where that is faster.

    Args:
        base: of the job.
        simulate: with the base's random numbers, so many runs, or as many as of the base.
        changed: makes the job that a change, as `--what-if` takes it, describes.
    """
    scenario = base.scenario
    causes = [
        compare(name, base, simulate(without, None), real=name == WITHOUT_STRAGGLERS)
        for name, without in without_causes(scenario)
        if _is_faster(without, base, simulate)
    ]
    twice, *others = candidates(scenario)
    doubled = _tried(twice, base, simulate, changed)
    tried = [_tried(text, base, simulate, changed, only_faster=True) for text in others]
    helpful = [one for one in tried if one and (one.interval[0] if one.interval else one.ratio) > 1 + LEAST]
    return Why(_by_gain([one for one in causes if one.ratio > 1 + LEAST]), _by_gain(helpful), doubled)


def without_causes(scenario: Scenario) -> Iterator[tuple[str, Scenario]]:
    """Each cause of a step's time that the job has, and the job without it."""
    if scenario.slowed:
        yield WITHOUT_STRAGGLERS, scenario.without_stragglers()
    if fewer := variants.without_slowest(scenario):
        yield "without slow hosts", fewer
    if scenario.ranks > 1:
        yield "without messages", scenario.on(network=FREE, library=None, local=FREE)
        alone = {"cores": 4096, "contention": 0.0, "contention_error": 0.0}
        hosts = tuple(host.model_copy(update=alone | {"slots": host.ranks}) for host in scenario.cluster.hosts)
        yield "without sharing cores", scenario.on(hosts=hosts, shared_cores=None, poll_s=0.0)
    if scenario.gpus_shared:
        hosts = tuple(host.model_copy(update={"gpus": host.gpus and host.ranks}) for host in scenario.cluster.hosts)
        yield "without sharing GPUs", scenario.on(hosts=hosts)
    costs = scenario.costs
    if costs.input(scenario.batch):
        at_once = replace(scenario, workload=scenario.workload.model_copy(update={"reading": None}))
        free = costs.model_copy(update={"input": Line(), "loading": None})
        yield "without waiting for data", with_costs(at_once, free)
    yield "without sums and updates", with_costs(scenario, costs.model_copy(update=dict.fromkeys(SUMS, Line())))
    halves = {name: getattr(costs, name).times(0.5) for name in COMPUTING} | {"loop_s": costs.loop_s / 2}
    yield "computing twice as fast", with_costs(scenario, costs.model_copy(update=halves))


def candidates(scenario: Scenario) -> Iterator[str]:
    """Changes that may help, as `--what-if` takes them; the first is twice the workers."""
    from sim.language.collectives import NAMES
    from sim.model.variable_placement import STRATEGIES

    yield f"workers={2 * max(1, scenario.workers)}"
    if scenario.protocol.has_servers and scenario.served:
        yield f"servers={2 * scenario.servers}"
    if scenario.servers > 1:
        yield from (f"placement={name}" for name in STRATEGIES if name != scenario.placement)
        yield f"variable_partitions={scenario.servers * scenario.variable_partitions}"
    settings = asdict(scenario.protocol)
    if "algorithm" in settings:
        yield from (f"algorithm={name}" for name in NAMES if name != settings["algorithm"])


def _tried(
    text: str, base: Result, simulate: Simulate, changed: Callable[[str], Scenario], only_faster: bool = False
) -> Compared | None:
    """The job with a change; None if there can be no such job, or its first run is no faster and only faster ones are asked for."""
    try:
        job = changed(text)
        if only_faster and not _is_faster(job, base, simulate):
            return None
        return compare(text, base, simulate(job, None), real=True)
    except (WrongSetting, RunFailed):
        return None


def _is_faster(job: Scenario, base: Result, simulate: Simulate) -> bool:
    """Whether the first run of a job is faster than the base's, with the same random numbers; not asked of jobs that have no such run."""
    if base.done.runs == 1 or unknown(base.scenario):
        return True
    return bool(simulate(job, 1).outcome.throughput()[0] > (1 + LEAST) * base.outcome.throughput()[0])


def _by_gain(compared: list[Compared]) -> list[Compared]:
    return sorted(compared, key=lambda one: -one.ratio)


def _cells(what: str, compared: Compared) -> tuple[str, ...]:
    from sim.answers.summary import seconds

    step = seconds(compared.result.answer()["step_s"]["mean"])
    return what, step, percent(compared.ratio), compared.spread


def _told(compared: Compared) -> dict:
    told = compared.as_json()
    told.pop("payback", None)
    return told | {"step_s": told.pop("answer")["step_s"]["mean"]}
