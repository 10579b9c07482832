"""An outcome for programs, as a JSON object, and for people, as a page of 80 columns."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.answers import extrapolation, worth
from sim.base import interval
from sim.job.header import RECORDED, Header, measured
from sim.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sim.answers.outcome import Outcome
    from sim.answers.search import Search
    from sim.job.scenario import Scenario

SCHEMA = "answer/1"
STRAGGLERS_COST, SLOW_RANKS_COST, SLOW_HOSTS_COST = "stragglers cost", "slow ranks cost", "slow hosts cost"
MOST_LISTED = 12  # idle shares of more ranks than this are summed up


def as_json(
    scenario: Scenario,
    world: str,
    outcome: Outcome,
    wall_s: float,
    found: Search | None = None,
    runs: int | None = None,
    notes: Sequence[str] = (),
    ran: Header | None = None,
) -> dict:
    """The question and its answer as JSON. Units are in the keys, unknown values are None, and nothing is NaN or infinite.

    Args:
        world: the one that ran it: event, engine, mpi, horovod or tensorflow.
        wall_s: seconds that simulating or running took.
        found: by a search for the number of variable partitions, if there was one.
        runs: that were asked for; as many as there are if None.
        notes: caveats.
        ran: of a real run, the header of its trace: its training and hosts.
    """
    done, steps = outcome.step_s.shape
    searched = {"variable_partitions": asdict(found)} if found else {}
    answer = {
        "schema": SCHEMA,
        "version": VERSION,
        "scenario": told(scenario, world, ran),
        "world": world,
        "asked": {"runs": runs or done, "steps": scenario.steps, "warmup": scenario.warmup},
        "done": {"runs": done, "steps": steps, "warmup": outcome.warmup},
        **figures(scenario, world, outcome),
        "notes": list(notes),
        "wall_s": float(wall_s),
        **searched,
    }
    return known(answer)


def figures(scenario: Scenario, world: str, outcome: Outcome) -> dict:
    """The figures of an answer."""
    pair, why = interval_of(scenario, world, outcome)
    samples_per_s = interval.middle(outcome.throughput())
    return {
        "samples_per_s": samples_per_s,
        **worth.of(scenario, samples_per_s),
        "step_s": _distribution(outcome.step_s),
        "samples_per_step": {"mean": float(outcome.samples.mean()), "sd": float(outcome.samples.std())},
        "idle_fraction": [float(share) for share in outcome.idle_fraction.mean(axis=0)],
        **_of_ranks(outcome),
        "interval": {"level": interval.LEVEL, "samples_per_s": pair, "why_none": why},
    }


def _of_ranks(outcome: Outcome) -> dict:
    """The mean seconds of each rank's own steps, where a step is that of the slowest."""
    if outcome.rank_step_s is None:
        return {}
    return {"rank_step_s": [float(seconds) for seconds in outcome.rank_step_s.mean(axis=(0, 1))]}


def told(scenario: Scenario, world: str, ran: Header | None = None) -> dict:
    """All of a scenario: the fields of its trace's header, and the cluster without its costs; of a real run, the host of each rank."""
    header = vars(scenario.header(world, training=ran and ran.training))
    header = header | {"training": asdict(header["training"]) if header["training"] else None}
    of_runs = (*RECORDED, "world", "replication", "updates_per_step")
    cluster = scenario.cluster.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"costs"})
    if ran and ran.hosts:
        cluster = {"name": scenario.cluster.name, "host_of_rank": [name for name, _ in ran.hosts]}
    return {name: value for name, value in header.items() if name not in of_runs} | {"cluster": _spelled(cluster)}


def _spelled(value):
    """The same, with "inf" for what is infinite, as a free link's bandwidth; JSON has no number for that."""
    if isinstance(value, dict):
        return {key: _spelled(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_spelled(item) for item in value]
    return "inf" if value == float("inf") else value


def interval_of(scenario: Scenario, world: str, outcome: Outcome) -> tuple[tuple[float, float] | None, str | None]:
    """Low and high samples/s between which one more run falls, and None; or None, and why nothing can be said of that."""
    pair, runs = outcome.interval(), outcome.throughput()
    if measured(world):
        return (pair, None) if np.isfinite(pair).all() else (None, "too few steps")
    if np.min(runs) <= 0 or not np.isfinite(runs).all():
        return None, "nothing was summed, or in no time"
    return extrapolation.widened(pair, interval.middle(runs), extrapolation.unknowns(scenario, outcome)), None


def _distribution(step_s: np.ndarray) -> dict[str, float]:
    """Seconds of the steps of one run: the mean and the quantiles, each in the middle of the runs, shape (runs, steps)."""
    quantiles = np.percentile(step_s, (50, 95, 99), axis=1)
    named = zip(("mean", "p50", "p95", "p99"), [step_s.mean(axis=1), *quantiles], strict=True)
    return {name: interval.middle(of_runs) for name, of_runs in named}


def known(value: Any) -> Any:
    """The same JSON, with None for what is not finite, however deep."""
    if isinstance(value, dict):
        return {key: known(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [known(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def show(summary: dict, scenario: Scenario, compared: dict[str, dict]) -> None:
    """Print a summary made by `as_json`, and its notes.

    Args:
        compared: summaries of the same job without what costs throughput, by how that cost is called.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    console.print(Text(_headline(summary, scenario), "bold"))
    console.print(Text(_surroundings(summary, scenario), "dim"))
    page = Table.grid(padding=(0, 2))
    page.add_column(style="dim", no_wrap=True)
    for label, text in _lines(summary, compared, scenario.servers):
        page.add_row(label, Text(text))
    console.print(page)
    for note in summary["notes"]:
        console.print(Text(f"note: {note}", "yellow"))


def in_a_line(summary: dict, scenario: Scenario) -> str:
    """A summary made by `as_json`: the job, its throughput with an interval, its mean step, and how much was simulated."""
    done = summary["done"]
    much = f"{summary['world']}, {done['runs']} run{'s' * (done['runs'] != 1)} of {done['steps']} steps"
    found = f"{_throughput(summary)}, mean step {seconds(summary['step_s']['mean'])}"
    return f"{_headline(summary, scenario)}: {found}; {much}"


def _headline(summary: dict, scenario: Scenario) -> str:
    asked = summary["scenario"]
    settings = ", ".join(f"{name}={value}" for name, value in asked["settings"].items())
    ranks = f"{scenario.workers} worker{'s' * (scenario.workers != 1)}" if scenario.workers else "one process alone"
    protocol = f"{asked['protocol']} ({settings})" if settings else asked["protocol"]
    return f"{protocol}, {scenario.workload.name}, {ranks}, batch {scenario.batch}"


def _surroundings(summary: dict, scenario: Scenario) -> str:
    stragglers = "no" if scenario.stragglers_name == "none" else scenario.stragglers_name
    cluster, world, steps = scenario.cluster.name, summary["world"], summary["done"]["steps"]
    return f"{stragglers} stragglers; {cluster}; {world}, {steps} steps, seed {scenario.seed}"


def _lines(summary: dict, compared: dict[str, dict], servers: int) -> Iterator[tuple[str, str]]:
    samples = summary["samples_per_step"]
    yield "throughput", _throughput(summary)
    yield from worth.lines(summary)
    yield "step time", ", ".join(f"{name} {seconds(value)}" for name, value in summary["step_s"].items())
    yield "samples a step", f"{number(samples['mean'])}, sd {number(samples['sd'])}"
    yield "idle", _idle(summary["idle_fraction"], servers)
    for label, other in compared.items():
        yield label, COSTS[label](summary, other)
    yield "wall time", seconds(summary["wall_s"])


def _throughput(summary: dict) -> str:
    pair, said = summary["interval"]["samples_per_s"], f"no interval: {summary['interval']['why_none']}"
    if pair:
        said = f"{summary['interval']['level']:.0%} of runs {number(pair[0])} to {number(pair[1])}"
    return f"{number(summary['samples_per_s'])} samples/s ({said})"


def _idle(shares: list[float | None], servers: int) -> str:
    known = [np.nan if share is None else share for share in shares]
    workers = known[servers:]
    if not workers:
        return f"{known[0]:.1%}"
    first = "master" if servers == 1 else "servers"
    before = f"{first} {' '.join(f'{share:.1%}' for share in known[:servers])}, " if servers else ""
    if len(shares) <= MOST_LISTED:
        return f"{before}workers {' '.join(f'{share:.1%}' for share in workers)}"
    low, middle, high = np.percentile(workers, (0, 50, 100))
    return f"{before}workers min {low:.1%}, median {middle:.1%}, max {high:.1%}"


def _cost(now: dict, free: dict) -> str:
    with_stragglers, without = now["samples_per_s"], free["samples_per_s"]
    if not with_stragglers or not without:
        return "unknown"
    lost, times = 1 - with_stragglers / without, without / with_stragglers
    return f"{lost:.1%} of throughput, {times:.2f} times slower than {number(without)} samples/s"


def _cost_of_slow_ranks(now: dict, median: dict) -> str:
    if not now["samples_per_s"] or not median["samples_per_s"]:
        return "unknown"
    lost = 1 - now["samples_per_s"] / median["samples_per_s"]
    return f"{lost:.1%}: {number(median['samples_per_s'])} samples/s if every rank were as the median"


def _cost_of_slow_hosts(now: dict, without: dict) -> str:
    """In samples a second, and in USD where prices are known; nothing where they are of use."""
    if not now["samples_per_s"] or not without["samples_per_s"]:
        return "unknown"
    kept = without["scenario"]["cluster"]["hosts"]
    gone = " and ".join(map(_hosts, (host for host in now["scenario"]["cluster"]["hosts"] if host not in kept)))
    lost = 1 - now["samples_per_s"] / without["samples_per_s"]
    said = [f"{lost:.1%}" if lost > 0 else "nothing", f"{number(without['samples_per_s'])} samples/s without {gone}"]
    paid = [f", {line}" for label, line in worth.lines(without) if label == worth.COST]
    return ": ".join(said) + "".join(paid)


def _hosts(told: dict) -> str:
    gpu = f" ({told['gpu']['name']})" if told.get("gpu") else ""
    return f"{told.get('count', 1)} x {told.get('name', 'host')}{gpu}"


COSTS = {STRAGGLERS_COST: _cost, SLOW_RANKS_COST: _cost_of_slow_ranks, SLOW_HOSTS_COST: _cost_of_slow_hosts}


def seconds(value_s: float) -> str:
    """Seconds with their unit: s, ms or us."""
    unit, factor = next(((u, f) for u, f in (("s", 1), ("ms", 1e3)) if value_s * f >= 1), ("us", 1e6))
    return f"{number(value_s * factor)} {unit}"


def number(value: float | None) -> str:
    """Four digits, or all those before the point."""
    if value is None:
        return "unknown"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
