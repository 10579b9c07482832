"""An outcome for programs, as a JSON object, and for people, as a page of 80 columns."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from functools import partial
from math import ceil, exp, log, log10
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.answers import candidates, extrapolation, worth
from sim.base import interval
from sim.job import filling
from sim.job.header import RECORDED, Header, measured
from sim.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sim.answers.outcome import Outcome
    from sim.job.scenario import Scenario

SCHEMA = "answer/1"
STRAGGLERS_COST, SLOW_RANKS_COST, SLOW_HOSTS_COST = "stragglers cost", "slow ranks cost", "slow hosts cost"
MOST_LISTED = 12  # idle shares of more ranks than this are summed up
SLIGHT = 0.001  # of the throughput: what slow ranks cost below it is not said
NOTHING = 10  # the high end over the low, beyond which nothing is known
MEASURE, DIGITS = "measure first", 4
MOST_LINES = 6  # of `show`, below the two that say what was run
NO_SPREAD = 5e-5  # half width, a share, that is printed as 0 %: that of runs without noise is not said, because real runs differ


@dataclass(frozen=True)
class Search:
    """The result of a search for a number of variable partitions.

    Args:
        best: number of parts.
        tried: seconds of a step by number of parts, in the order in which they were tried.
        fitted: a, b, c of t(P) = b / P + a (P - 1) + c, seconds; None of fewer than 3 points.
    """

    best: int
    tried: dict[int, float]
    fitted: tuple[float, float, float] | None

    def __str__(self):
        tried = ", ".join(f"{parts}: {seconds * 1e3:.4g} ms" for parts, seconds in sorted(self.tried.items()))
        a, b, c = (f"{1e3 * x:.3g}" for x in self.fitted or (0, 0, 0))
        law = f"; t(P) = {b}/P + {a}(P - 1) + {c} ms" if self.fitted else ""
        return f"{self.best} variable partitions, searched for: {tried}{law}"


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
    parts = apart(scenario, world, outcome, pair)
    return {
        "samples_per_s": samples_per_s,
        **worth.of(scenario, samples_per_s, not too_wide(parts["not_known"])),
        "step_s": _distribution(outcome.step_s),
        "samples_per_step": {"mean": float(outcome.samples.mean()), "sd": float(outcome.samples.std())},
        "idle_fraction": [float(share) for share in outcome.idle_fraction.mean(axis=0)],
        "interval": {"level": interval.LEVEL, "samples_per_s": pair, "why_none": why, **parts},
    }


def apart(scenario: Scenario, world: str, outcome: Outcome, pair: tuple[float, float] | None) -> dict:
    """The two parts of an interval, samples/s, low and high; None where there is none.

    run_to_run: where one more run falls if all of the job is known. not_known: where the mean of runs may be.

    Args:
        pair: the whole interval.
    """
    runs = outcome.interval()
    known = {"run_to_run": runs if pair and np.isfinite(runs).all() else None, "not_known": None}
    if pair is None or measured(world):
        return known
    if candidates.unknown(scenario):  # runs differ by their algorithm
        return {"run_to_run": None, "not_known": pair}
    middle = interval.middle(outcome.throughput())
    low, high = extrapolation.widened(interval.UNKNOWN, middle, extrapolation.unknowns(scenario, outcome))
    return known | ({"not_known": (low, high)} if low < high else {})


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


def show(summary: dict, scenario: Scenario, compared: dict[str, dict], unsaid: Sequence[str] = ()) -> None:
    """Print a summary made by `as_json`, and its notes.

    Args:
        compared: summaries of the same job without what costs throughput, by how that cost is called.
        unsaid: notes that are not printed.
    """
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    console.print(Text(_headline(summary, scenario), "bold"))
    console.print(Text(_surroundings(summary, scenario), "dim"))
    width = max(map(len, (MEASURE, *compared)))
    for label, text in _few([*lines(summary, compared, scenario.servers)]):  # commands in one line, to be copied
        console.print(Text(f"{label:{width}}  ", "dim").append(text, "not dim"), soft_wrap=label == MEASURE)
    for note in summary["notes"]:
        if note not in unsaid:
            console.print(Text(f"note: {note}", "yellow"))


def _few(found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """At most MOST_LINES of them: what is in JSON goes first, then what slow hosts say too; last, shares alone of what is lost."""
    for least, because in (("idle", ""), (SLOW_RANKS_COST, SLOW_HOSTS_COST)):
        if len(found) > MOST_LINES and because in ("", *dict(found)):
            found = [one for one in found if one[0] != least]
    if len(found) <= MOST_LINES:
        return found
    shares = [f"{label.removesuffix(' cost')} {text.partition(':')[0]}" for label, text in found if label in COSTS]
    return [*(one for one in found if one[0] not in COSTS), ("costs", ", ".join(shares))]


def in_a_line(summary: dict, scenario: Scenario) -> str:
    """A summary made by `as_json`: the job, its throughput with an interval, its mean step, and how much was simulated."""
    done = summary["done"]
    much = f"{summary['world']}, {done['runs']} run{'s' * (done['runs'] != 1)} of {done['steps']} steps"
    said = ", ".join(text for label, text in lines_of_speed(summary) if label != MEASURE)
    step = seconds(summary["step_s"]["mean"], digits(summary))
    return f"{_headline(summary, scenario)}: {said}, mean step {step}; {much}"


def _headline(summary: dict, scenario: Scenario) -> str:
    asked = summary["scenario"]
    settings = ", ".join(f"{name}={value}" for name, value in asked["settings"].items())
    ranks = f"{scenario.workers} worker{'s' * (scenario.workers != 1)}" if scenario.workers else "one process alone"
    protocol = f"{asked['protocol']} ({settings})" if settings else asked["protocol"]
    return f"{protocol}, {scenario.workload.name}, {ranks}{_placed(scenario)}, batch {scenario.batch}"


def _placed(scenario: Scenario) -> str:
    """How workers stand on the hosts, as text; empty where each of these has one in all of its slots for a GPU, or a core."""
    each, kinds = Counter(scenario.computing_hosts), scenario.cluster.hosts
    several, capacity = sum(host.count for host in kinds), {host.gpus or host.ranks for host in kinds}
    if (
        several == 1
        or filling.takes_any(scenario.cluster)
        or max(capacity) == 1
        or (len(each) == several and {*each.values()} == capacity)
    ):
        return ""
    least, most = min(each.values()), max(each.values())
    packed = "packed on" if most == max(capacity) else "spread over"
    hosts = f"{several}" if len(each) == several else f"{len(each)} of {several}"
    return f" {packed} {hosts} hosts ({f'{least} to ' * (least < most)}{most} a host)"


def _surroundings(summary: dict, scenario: Scenario) -> str:
    stragglers = "no" if scenario.stragglers_name == "none" else scenario.stragglers_name
    cluster, world, steps = scenario.cluster.name, summary["world"], summary["done"]["steps"]
    return f"{stragglers} stragglers; {cluster}; {world}, {steps} steps, seed {scenario.seed}"


def lines(summary: dict, compared: dict[str, dict], servers: int) -> Iterator[tuple[str, str]]:
    """A label and a text each, see `show`."""
    samples, borne = summary["samples_per_step"], digits(summary)
    yield from lines_of_speed(summary)
    if of_worth := [text for _, text in worth.lines(summary)]:
        yield "worth", "; ".join(of_worth)
    nothing = nothing_known(summary)
    shown = ("mean", "p95") if nothing else ("mean", "p95", "p99")
    step = ", ".join(f"{name} {seconds(summary['step_s'][name], borne)}" for name in shown)
    of = f"{number(samples['mean'], borne)} +- {number(samples['sd'], 2)}" if samples["sd"] else number(samples["mean"])
    step += f"; {of} samples"
    yield ("as assumed", f"{speed(summary)}; {step}") if nothing else ("step", step)
    yield "idle", _idle(summary["idle_fraction"], servers)
    for label, other in compared.items():
        if label != SLOW_RANKS_COST or summary["samples_per_s"] < (1 - SLIGHT) * other["samples_per_s"]:
            yield label, COSTS[label](summary, other)


def lines_of_speed(summary: dict) -> Iterator[tuple[str, str]]:
    """A label and a text each: the throughput and its spread from run to run; what is not known of it; and what would measure that."""
    found, pair = summary["interval"], summary["interval"]["not_known"]
    runs, borne = found["run_to_run"], digits(summary)
    spread = f" (no interval: {found['why_none']})" if not (pair or runs) else ""
    if runs and runs[1] > runs[0] * (1 + NO_SPREAD) ** 2:
        spread = f", {plus_minus(runs)} from run to run"
    if not pair:
        yield "throughput", speed(summary) + spread
        return
    ends = f"{number(pair[0], borne)} to {number(pair[1], borne)}"
    shares = _shares(summary)
    most = "".join(f": {one['number']} {one['share']:.0%}" for one in shares[:1])
    if nothing_known(summary):
        yield "throughput", f"nothing is known ({ends} samples/s){most}"
    else:
        yield "throughput", speed(summary) + spread
        yield "not known", f"{ends} ({round(10 * found['level'])} in 10){most}"
    yield from [(MEASURE, one["measured_by"]) for one in shares if one["measured_by"]][:1]


def speed(summary: dict) -> str:
    """The throughput with the digits that its interval bears."""
    tokens = f", {number(summary['tokens_per_s'], digits(summary))} tokens/s" if summary.get("tokens_per_s") else ""
    return f"{number(summary['samples_per_s'], digits(summary))} samples/s{tokens}"


def nothing_known(summary: dict) -> bool:
    """Whether the ends of what the throughput may be are too far apart for a number of it to mean anything."""
    return too_wide(summary["interval"]["not_known"])


def too_wide(pair: Sequence[float] | None) -> bool:
    """Whether nothing is known between two ends."""
    return pair is not None and pair[1] > NOTHING * pair[0]


def _shares(summary: dict) -> list[dict]:
    """What makes what is not known, as `basis` has it, with the share of that; empty if there is no basis."""
    from sim.answers.basis import LEAST, RUNS

    unknown = [one for one in summary.get("basis", ()) if one["number"] != RUNS and one["share_of_variance"] > 0]
    whole = sum(one["share_of_variance"] for one in unknown)
    shares = [one | {"share": one["share_of_variance"] / whole} for one in unknown]
    return [one for one in shares if one["share"] >= LEAST]


def digits(summary: dict) -> int:
    """Significant digits that the interval of a throughput bears, see `borne`."""
    return borne(summary["interval"]["samples_per_s"])


def borne(pair: Sequence[float] | None) -> int:
    """Significant digits that an interval bears: the last one is a tenth of its half width at least; from 2 to 4.

    >>> [borne(pair) for pair in ((670.0, 6400.0), (97.0, 103.0), (99.9, 100.1))]
    [2, 3, 4]
    """
    half = log(pair[1] / pair[0]) / 2 if pair and 0 < pair[0] < pair[1] else 0.0
    return min(DIGITS, max(2, 1 + ceil(-log10(half)))) if half else DIGITS


def plus_minus(pair: Sequence[float]) -> str:
    """The half width of an interval, as a share of its middle, or a factor.

    >>> plus_minus((98.0, 102.0)), plus_minus((98.0, 98.001)), plus_minus((10.0, 90.0))
    ('+-2%', '+-0%', 'a factor 3')
    """
    half = exp(log(pair[1] / pair[0]) / 2)
    return f"+-{round(100 * (half - 1), 2):.2g}%" if half < 2 else f"a factor {half:.2g}"


def _idle(shares: list[float | None], servers: int) -> str:
    known = [np.nan if share is None else share for share in shares]
    workers = known[servers:]
    if not workers:
        return f"{known[0]:.1%}"
    first = f"{_listed('master' if servers == 1 else 'servers', known[:servers], servers)}, " if servers else ""
    return first + _listed("workers", workers, len(shares))


def _listed(name: str, shares: list[float], several: int) -> str:
    """Each share, or, of more than MOST_LISTED, the least, median and largest."""
    if several <= MOST_LISTED:
        return f"{name} {' '.join(f'{share:.1%}' for share in shares)}"
    low, middle, high = np.percentile(shares, (0, 50, 100))
    return f"{name} min {low:.1%}, median {middle:.1%}, max {high:.1%}"


def _without(what: str, now: dict, other: dict) -> str:
    """What a cause costs: a share, and the throughput without it."""
    if not now["samples_per_s"] or not other["samples_per_s"]:
        return "unknown"
    lost = 1 - now["samples_per_s"] / other["samples_per_s"]
    share = f"{lost:.1%}" if lost > 0 else "nothing"
    return f"{share}: {number(other['samples_per_s'], digits(now))} samples/s {what}"


def _cost_of_slow_hosts(now: dict, without: dict) -> str:
    """In samples a second, and in USD where prices are known; nothing where they are of use."""
    kept = without["scenario"]["cluster"]["hosts"]
    gone = " and ".join(map(_hosts, (host for host in now["scenario"]["cluster"]["hosts"] if host not in kept)))
    paid = [f", {line}" for label, line in worth.lines(without) if label == worth.COST]
    return _without(f"without {gone}", now, without) + "".join(paid)


def _hosts(told: dict) -> str:
    gpu = f" ({told['gpu']['name']})" if told.get("gpu") else ""
    return f"{told.get('count', 1)} x {told.get('name', 'host')}{gpu}"


COSTS: dict[str, Callable[[dict, dict], str]] = {
    STRAGGLERS_COST: partial(_without, "without"),
    SLOW_RANKS_COST: partial(_without, "if every rank were as the median"),
    SLOW_HOSTS_COST: _cost_of_slow_hosts,
}


def seconds(value_s: float, digits: int = DIGITS) -> str:
    """Seconds with their unit: s, ms or us."""
    unit, factor = next(((u, f) for u, f in (("s", 1), ("ms", 1e3)) if value_s * f >= 1), ("us", 1e6))
    return f"{number(value_s * factor, digits)} {unit}"


def number(value: float | None, digits: int = DIGITS) -> str:
    """So many digits; of four, all those before the point."""
    if value is None:
        return "unknown"
    value = value if digits >= DIGITS else float(f"{value:.{digits}g}")
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
