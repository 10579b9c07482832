"""Which rank holds up a run, why, and what that costs: `python -m calibration.slow RUN`; or none, where steps are long at all ranks."""

from __future__ import annotations

import json
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING, Any

from calibration import log_options
from calibration.sources import STEPS, TORCH, TRACE, parsed
from sim import command
from sim.base.errors import WrongSetting
from sim.base.ranges import check
from sim.base.units import HOUR_S

if TYPE_CHECKING:
    from argparse import Namespace

    from calibration.evidence.slow_ranks import Found, Long, Run, Slow
    from calibration.sources import Named
    from sim.recording.traces import Trace

SCHEMA = "slow/1"
INPUT, COMPUTING, NETWORK, SLEEP = "input", "computing", "network", "sleep"
ACTIVITIES = {  # by cause
    INPUT: ("input",),
    COMPUTING: ("compute", "pack", "copy to device", "copy to host", "take_up"),
    SLEEP: ("sleep",),
    NETWORK: ("send", "receive"),
}
MOST_LISTED = 8  # ranks
MOST_USD = 1e9  # an hour


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
    from calibration.evidence.slow_ranks import slowness

    usd = _usd_per_hour(given)
    run = _read(given)
    found = slowness(run)
    if given.json:
        print(json.dumps(_as_json(run, found, usd)))
    else:
        print("\n".join(_lines(run, found, usd)))
    return 0


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
        from calibration.evidence.slow_ranks import Run
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
    import numpy as np

    from calibration import torch_traces
    from calibration.evidence.slow_ranks import Run

    run = torch_traces.run_of([one.path for one in named], ranks)
    own_s = {
        COMPUTING: np.column_stack([one.compute_s for one in run.ranks]),
        INPUT: np.column_stack([one.idle_s for one in run.ranks]),
    }
    length_s = np.median([one.length_s for one in run.ranks], axis=0)
    numbers = tuple(at if one.rank is None else one.rank for at, one in enumerate(run.ranks))
    return Run(length_s, own_s, numbers, run.world, named[0].path)


def _of_trace(trace: Trace, path: str) -> Run:
    from calibration.evidence.slow_ranks import Run
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
            f"{one.times:.2f} times the median rank's" if isfinite(one.times) else "of which the median rank has none"
        )
        said.append(
            f"rank {one.rank}: {one.cause}, {times}, in {one.steps} of {len(run.length_s)} steps: costs {cost(one)}"
        )
    if found.slow:
        they = "it" if len(found.slow) == 1 else "them"
        saved = found.slow[0]._replace(cost_s=whole_s - found.without_s * len(run.length_s))
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
