"""Which rank holds up a run, why, and what that costs: `python -m calibration.slow RUN`; or no rank, where steps are long at all."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from calibration import log_options
from calibration.sources import STEPS, TORCH, TRACE, parsed
from sim import command
from sim.base.errors import WrongSetting
from sim.base.ranges import check
from sim.base.units import HOUR_S

if TYPE_CHECKING:
    from argparse import Namespace

    from calibration.sources import Named
    from sim.recording.traces import Trace

SCHEMA = "slow/1"
INPUT, COMPUTING, NETWORK, SLEEP = "input", "computing", "network", "sleep"
REST = "messages and all else"  # of a step, besides the work of its slowest rank
ACTIVITIES = {  # by cause
    INPUT: ("input",),
    COMPUTING: ("compute", "pack", "copy to device", "copy to host", "take_up"),
    SLEEP: ("sleep",),
    NETWORK: ("send", "receive"),
}
SHUFFLES = 199  # of the ranks in each step, none of which may hold up steps as long as a rank that is named
LONG, LEAST = 1.25, 0.005  # times the median step, from which a step is long, if such steps cost this share of all time
MOST_LISTED = 8  # ranks
MOST_USD = 1e9  # an hour


class Run(NamedTuple):
    """The steps of a run, without its warm-up.

    Args:
        length_s: of each step, shape (steps,).
        own_s: seconds that each rank worked before it waited for others, by cause, each of shape (steps, ranks); empty if unknown.
        ranks: their numbers.
        world: how many ranks there were.
        called: by what file.
    """

    length_s: np.ndarray
    own_s: dict[str, np.ndarray]
    ranks: tuple[int, ...]
    world: int
    called: str


class Slow(NamedTuple):
    """A rank that is slower than the others.

    Args:
        cause: of its slowness, most of it.
        times: as long as the median rank has it take, in the rank's slow steps.
        steps: in which it is slow.
        cost_s: that steps would be shorter in all if it were as the median rank.
    """

    rank: int
    cause: str
    times: float
    steps: int
    cost_s: float


class Long(NamedTuple):
    """Steps that are long, and no rank is so more often than the others.

    Args:
        cause: of most of it; empty if the run does not say.
        ranks: that were long alone in one of them; empty if all ranks were long together.
        steps, length_s: their number, and the mean length.
        cost_s: that they are longer in all than the median step.
    """

    cause: str
    ranks: tuple[int, ...]
    steps: int
    length_s: float
    cost_s: float


class Found(NamedTuple):
    """What holds up a run; `without_s` is its mean step with each slow rank as the median one."""

    step_s: float
    without_s: float
    slow: list[Slow]
    long: Long | None


def parser() -> command.Parser:
    """The command line."""
    found = command.Parser(
        prog="calibration.slow",
        description="Name the rank that holds up a run: by input, computing or network, in how many steps, and what it costs.",
        parents=[log_options.options()],
    )
    found.add_argument(
        "run", nargs="+", metavar="RUN", help="a trace, or what --from says: a table of steps, torch.profiler's traces"
    )
    found.add_argument(
        "--usd-per-hour",
        type=float,
        metavar="USD",
        help="price of all hosts together (default: those of --cluster, if it has prices)",
    )
    found.add_argument(
        "--cluster", metavar="FILE", help="hosts with prices: a profile, a cluster, or KIND*N of sim.hosts list"
    )
    found.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    return found


def main(argv: list[str] | None = None) -> int:
    """Run the command.

    Raises:
        WrongSetting: a file that cannot be read, or a run whose ranks do not wait for one another.
    """
    given = parser().parse_args(argv)
    usd = _usd_per_hour(given)
    run = _read(given)
    found = slowness(run)
    if given.json:
        print(json.dumps(_as_json(run, found, usd)))
    else:
        print("\n".join(_lines(run, found, usd)))
    return 0


def slowness(run: Run) -> Found:
    """What holds up a run whose ranks wait for one another in each step.

    A rank is slow throughout if its part of the run lasts from its first quarter to its last (calibration.evidence.host_speeds). It is
    slow now and then if its steps over the median rank's, in all, are more than those of any rank where ranks are shuffled in each step.
    """
    mean_s, slow, left_s = float(run.length_s.mean()), [], run.length_s
    if len(run.ranks) > 1 and run.own_s:
        total_s = np.sum(list(run.own_s.values()), axis=0)
        median_s = _middle_s(total_s)
        late = _late(total_s, median_s)
        evened = np.where(late.any(axis=0), np.minimum(total_s, median_s[:, None]), total_s)
        left_s = run.length_s - (total_s.max(axis=1) - evened.max(axis=1))
        slow = [_slow(run, at, late[:, at], total_s, median_s) for at in np.flatnonzero(late.any(axis=0))]
    return Found(mean_s, float(left_s.mean()), sorted(slow, key=lambda one: -one.cost_s), _long(run, left_s))


def _late(total_s: np.ndarray, median_s: np.ndarray) -> np.ndarray:
    """Whether a rank that is slow, throughout or now and then, is so in each step; shape (steps, ranks)."""
    from calibration.evidence import host_speeds
    from calibration.evidence.factors import NORMAL_MAD

    steps, ranks = total_s.shape
    factor = total_s / median_s[:, None]
    parts = np.array([np.median(part, axis=0) for part in np.array_split(factor, min(host_speeds.QUARTERS, steps))])
    known = host_speeds.tell_apart(np.median(factor, axis=0), np.arange(ranks), ranks, parts.T)
    throughout = known.speeds < 1 / (1 + host_speeds.LEAST) if steps > 1 else np.zeros(ranks, bool)
    spread = NORMAL_MAD * np.median(np.abs(np.log(factor)))
    above = np.exp(max(np.log1p(host_speeds.LEAST), min(3 * spread, np.log(2))))
    rest_s = np.where(throughout, 0.0, np.maximum(0.0, total_s - above * median_s[:, None]))
    rng = np.random.default_rng(0)
    most_s = max(rng.permuted(rest_s, axis=1).sum(axis=0).max() for _ in range(SHUFFLES))
    return np.where(throughout, factor > 1 + host_speeds.LEAST, (rest_s > 0) & (rest_s.sum(axis=0) > most_s))


def _middle_s(own_s: np.ndarray) -> np.ndarray:
    """Seconds of the median rank in each step, or of the faster one of two; shape (steps,)."""
    return own_s.min(axis=1) if own_s.shape[1] == 2 else np.median(own_s, axis=1)


def _slow(run: Run, at: int, late: np.ndarray, total_s: np.ndarray, median_s: np.ndarray) -> Slow:
    others_s = {name: _middle_s(own_s)[late].sum() for name, own_s in run.own_s.items()}
    more_s = {name: own_s[late, at].sum() - others_s[name] for name, own_s in run.own_s.items()}
    cause = max(more_s, key=lambda name: more_s[name])
    evened = total_s.copy()
    evened[:, at] = np.minimum(evened[:, at], median_s)
    cost_s = float((total_s.max(axis=1) - evened.max(axis=1)).sum())
    times = 1 + more_s[cause] / others_s[cause] if others_s[cause] > 0 else np.inf
    return Slow(run.ranks[at], cause, float(times), int(late.sum()), cost_s)


def _long(run: Run, length_s: np.ndarray) -> Long | None:
    """The steps that are long whatever rank is slow."""
    long, median_s = length_s > LONG * np.median(length_s), float(np.median(length_s))
    cost_s = float((length_s[long] - median_s).sum())
    if long.mean() > 1 / 2 or cost_s < LEAST * length_s.sum():
        return None
    found = Long("", (), int(long.sum()), float(length_s[long].mean()), cost_s)
    if not run.own_s:
        return found

    def more_s(seconds: np.ndarray) -> float:
        return float(seconds[long].mean() - seconds[~long].mean())

    total_s = np.sum(list(run.own_s.values()), axis=0)
    parts = {name: own_s.max(axis=1) for name, own_s in run.own_s.items()} | {REST: length_s - total_s.max(axis=1)}
    cause = max(parts, key=lambda name: more_s(parts[name]))
    alone = cause != REST and more_s(np.median(total_s, axis=1)) < more_s(total_s.max(axis=1)) / 2
    at = sorted({run.ranks[one] for one in total_s[long].argmax(axis=1)}) if alone else ()
    return found._replace(cause=cause, ranks=tuple(at))


def _read(given: Namespace) -> Run:
    """The one run of all files.

    Raises:
        WrongSetting: a source without ranks and steps, or files of several runs.
    """
    named = parsed(given.run, given.source)
    kind = named[0].kind
    if any(one.kind != kind for one in named) or (kind != TORCH and len(named) > 1):
        raise WrongSetting(
            "RUN", " ".join(given.run), "one run: a file or folder, or torch.profiler's traces of its ranks"
        )
    if kind == TORCH:
        return _of_torch(named, given.ranks)
    if kind == STEPS:
        from calibration.importers import logged_steps

        found = logged_steps.logged(named[0].path, replace(log_options.about(given, named[0]), ranks=None))
        own_s = {} if found.compute_s is None else {COMPUTING: found.compute_s[1:]}
        return Run(found.length_s[1:], own_s, tuple(range(found.ranks)), given.ranks or found.ranks, named[0].path)
    from calibration import fit

    sources = fit.read(named[0].path, kind, log_options.about(given, named[0]))
    if kind == TRACE or len(sources) == 1:
        return _of_trace(sources[0].trace, named[0].path)
    raise WrongSetting("RUN", f"{named[0].path}, {len(sources)} runs", "one run")


def _of_torch(named: list[Named], ranks: int | None) -> Run:
    """Seconds in which nothing runs on a rank's GPU are its input's, or Python's."""
    from calibration import torch_traces

    run = torch_traces.run_of([one.path for one in named], ranks)
    own_s = {
        COMPUTING: np.column_stack([one.compute_s for one in run.ranks]),
        INPUT: np.column_stack([one.idle_s for one in run.ranks]),
    }
    length_s = np.median([one.length_s for one in run.ranks], axis=0)
    numbers = tuple(at if one.rank is None else one.rank for at, one in enumerate(run.ranks))
    return Run(length_s, own_s, numbers, run.world, named[0].path)


def _of_trace(trace: Trace, path: str) -> Run:
    from sim.answers import outcome
    from sim.job import replay

    head, protocol = trace.header, replay.protocol_of(trace.header)
    if protocol.by_arrival or protocol.uses("compute_until") or protocol.uses("compute_renewing"):
        raise WrongSetting(
            "RUN", f"{path}, of {head.protocol}", "a run whose ranks wait for one another in each step, as allreduce's"
        )
    length_s = outcome.of_trace(trace).step_s[0]
    rows = trace.rows[(trace.rows["step"] >= head.warmup) & (trace.rows["step"] < head.warmup + len(length_s))]
    ranks = sorted(rows["rank"][rows["activity"] == "compute"].unique())
    rows = rows.assign(seconds=rows["end_s"] - rows["start_s"])
    steps = range(head.warmup, head.warmup + len(length_s))
    own_s = {}
    for cause, activities in ACTIVITIES.items():
        if cause == NETWORK and not head.servers:
            continue  # a rank of a collective moves bytes when others do
        these = rows[rows["activity"].isin((*activities, *["update"] * (cause == COMPUTING and not head.servers)))]
        if len(these):
            table = these.pivot_table(index="step", columns="rank", values="seconds", aggfunc="sum", fill_value=0.0)
            own_s[cause] = table.reindex(index=steps, columns=ranks, fill_value=0.0).to_numpy()
    return Run(length_s, own_s, tuple(map(int, ranks)), len(ranks), path)


def _usd_per_hour(given: Namespace) -> float | None:
    if given.usd_per_hour is not None:
        check("--usd-per-hour", given.usd_per_hour, 0, MOST_USD)
        return float(given.usd_per_hour)
    if given.cluster is None:
        return None
    from sim.platform import cluster

    usd = cluster.read(given.cluster).usd_per_hour
    if usd is None:
        raise WrongSetting("--cluster", given.cluster, "hosts with prices (price_per_hour), or --usd-per-hour")
    return usd


def _lines(run: Run, found: Found, usd: float | None) -> list[str]:
    from sim.answers.summary import number, seconds

    whole_s = found.step_s * len(run.length_s)

    def cost(one: Slow | Long) -> str:
        paid = f", {number(one.cost_s / HOUR_S * usd)} USD" if usd else ""
        return f"{seconds(one.cost_s)} of {seconds(whole_s)} ({one.cost_s / whole_s:.1%}){paid}"

    several = f"{run.world} rank{'s' * (run.world != 1)}" + f", {len(run.ranks)} of them known" * (
        run.world > len(run.ranks)
    )
    said = [f"{several}: {len(run.length_s)} steps of {seconds(found.step_s)} in the mean"]
    for one in found.slow:
        times = (
            f"{one.times:.2f} times the median rank's"
            if np.isfinite(one.times)
            else "of which the median rank has none"
        )
        said.append(
            f"rank {one.rank}: {one.cause}, {times}, in {one.steps} of {len(run.length_s)} steps: costs {cost(one)}"
        )
    if found.slow:
        they = "it" if len(found.slow) == 1 else "them"
        saved = Long("", (), 0, 0.0, whole_s - found.without_s * len(run.length_s))
        said.append(
            f"without {they}: steps of {seconds(found.without_s)} in the mean, {found.step_s / found.without_s:.2f} times as fast: "
            f"saves {cost(saved)}"
        )
    elif not run.own_s:
        said.append(
            "no rank can be named: seconds of steps are those of all ranks; log what each rank computed (compute_s) too"
        )
    else:
        said.append(
            "no rank: none is slower than the others"
            if len(run.ranks) > 1
            else "no rank can be named: one alone is known"
        )
    if (long := found.long) is not None:
        cause = f", by {long.cause}" if long.cause else ""
        where = (
            f"now and then at rank {', '.join(map(str, long.ranks[:MOST_LISTED]))} alone" if long.ranks else "together"
        )
        said.append(
            f"steps are long {where}: {long.steps} of {len(run.length_s)} take {seconds(long.length_s)}{cause}: costs {cost(long)}"
        )
    return said


def _as_json(run: Run, found: Found, usd: float | None) -> dict[str, Any]:
    from sim.answers.summary import known

    def told(one: Slow | Long) -> dict:
        return one._asdict() | {"cost_usd": None if usd is None else one.cost_s / HOUR_S * usd}

    return known(
        {
            "schema": SCHEMA,
            "ranks": run.world,
            "steps": len(run.length_s),
            "step_s": found.step_s,
            "without_slow_ranks_s": found.without_s,
            "slow_ranks": [told(one) for one in found.slow],
            "long_steps": found.long and told(found.long),
            "usd_per_hour": usd,
        }
    )


if __name__ == "__main__":
    command.run("calibration.slow", main)
