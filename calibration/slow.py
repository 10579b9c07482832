"""Which rank holds up a run, why, and what that costs: `python -m calibration.slow RUN`; or none, where steps are long at all ranks."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from calibration import log_options
from calibration.sources import PROFILES, STEPS, TORCH, Named, parsed
from sim import command
from sim.base.errors import WrongSetting, printable
from sim.base.ranges import check
from sim.base.units import HOUR_S

if TYPE_CHECKING:
    from argparse import Namespace

    from calibration.evidence.slow_ranks import Delay, Run
    from sim.recording.traces import Trace

SCHEMA = "slow/1"
CAUSES = {  # activities of each
    "input": ("input",),
    "computing": ("compute", "pack", "copy to device", "copy to host", "take_up"),
    "sleep": ("sleep",),
    "network": ("send", "receive"),  # of servers' workers: a rank of a collective moves bytes when others do
}
MOST_USD = 1e9  # an hour


def parser() -> command.Parser:
    """The command line."""
    found = command.Parser(
        prog="calibration.slow",
        description="Name the rank that holds up a run: by input, computing or network, in how many steps, and what it costs.",
        parents=[log_options.options()],
    )
    found.add_argument("run", nargs="+", metavar="RUN", help="a trace, or what --from says: steps, or torch's traces")
    found.add_argument("--usd-per-hour", type=float, metavar="USD", help="price of all hosts together")
    found.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    return found


def main(argv: list[str] | None = None) -> int:
    """Run the command.

    Raises:
        WrongSetting: a file that cannot be read, or a run whose ranks do not wait for one another.
    """
    given = parser().parse_args(argv)
    if given.usd_per_hour is not None:
        check("--usd-per-hour", given.usd_per_hour, 0, MOST_USD)
    run = _read(given)
    answer = _answer(run, given.usd_per_hour)
    print(json.dumps(answer) if given.json else "\n".join(_lines(run, answer)))
    return 0


def _read(given: Namespace) -> Run:
    """The one run of all files.

    Raises:
        WrongSetting: a source without ranks and steps, or files of several runs.
    """
    from calibration.evidence.slow_ranks import Run

    named = parsed(given.run, given.source)
    log_options.check(given, {one.kind for one in named})
    first = named[0]
    if {one.kind for one in named} == {TORCH}:
        return _of_torch(named, given.ranks)
    if len(named) > 1:
        raise WrongSetting(
            "RUN", " ".join(given.run), "one run: a file, a folder, or torch.profiler's traces of its ranks"
        )
    if first.kind in PROFILES:
        raise WrongSetting("RUN", str(first), "steps of each rank: a table, torch.profiler's traces, or a recorded run")
    about = log_options.about(given, first)
    if first.kind == STEPS:
        from calibration.importers import logged_steps

        logged = logged_steps.logged(first.path, replace(about, ranks=None))
        own_s = {} if logged.compute_s is None else {"computing": logged.compute_s[1:]}
        return Run(logged.length_s[1:], own_s, tuple(range(logged.ranks)), logged.notes)
    from calibration import fit

    return _of_trace(fit.read(first.path, first.kind, about)[0].trace, first.path)


def _of_torch(named: list[Named], ranks: int | None) -> Run:
    """Seconds in which nothing runs on a rank's GPU are its input's, or Python's."""
    import numpy as np

    from calibration import torch_traces
    from calibration.evidence.slow_ranks import Run

    found = torch_traces.run_of([one.path for one in named], ranks).ranks
    own_s = {
        "computing": np.column_stack([one.compute_s for one in found]),
        "input": np.column_stack([one.idle_s for one in found]),
    }
    length_s = np.median([one.length_s for one in found], axis=0)
    return Run(length_s, own_s, tuple(at if one.rank is None else one.rank for at, one in enumerate(found)))


def _of_trace(trace: Trace, path: str) -> Run:
    from calibration.evidence.slow_ranks import Run
    from sim.answers import outcome
    from sim.job import replay

    head, protocol = trace.header, replay.protocol_of(trace.header)
    if protocol.by_arrival or protocol.limits_computing:
        raise WrongSetting("RUN", f"{path}, of {head.protocol}", "a run whose ranks wait for one another in each step")
    length_s, rows, own_s = outcome.of_trace(trace).step_s[0], trace.rows, {}
    rows = rows.assign(seconds=rows["end_s"] - rows["start_s"])
    steps = range(head.warmup, head.warmup + len(length_s))
    ranks = sorted(rows["rank"][rows["activity"] == "compute"].unique())
    for cause, activities in CAUSES.items():
        these = rows[rows["activity"].isin((*activities, *["update"] * (cause == "computing" and not head.servers)))]
        if len(these) and (head.servers or cause != "network"):
            table = these.pivot_table(index="step", columns="rank", values="seconds", aggfunc="sum")
            own_s[cause] = table.reindex(index=steps, columns=ranks).fillna(0.0).to_numpy()
    return Run(length_s, own_s, tuple(map(int, ranks)))


def _answer(run: Run, usd: float | None) -> dict[str, Any]:
    from calibration.evidence.slow_ranks import slowness
    from sim.answers.summary import known

    slow, left_s, long = slowness(run)
    whole_s = float(run.length_s.sum())

    def told(one: Delay) -> dict:
        cost_usd = None if usd is None else one.cost_s / HOUR_S * usd
        return one._asdict() | {"cost_share": one.cost_s / whole_s, "cost_usd": cost_usd}

    answer = {
        "schema": SCHEMA,
        "ranks": len(run.ranks),
        "steps": len(run.length_s),
        "step_s": float(run.length_s.mean()),
    }
    answer |= {"without_slow_ranks_s": float(left_s.mean()), "slow_ranks": [told(one) for one in slow]}
    return known(answer | {"long_steps": long and told(long), "notes": [*run.notes]})


def _lines(run: Run, answer: dict[str, Any]) -> list[str]:
    from sim.answers.summary import number, seconds

    def cost(one: dict) -> str:
        paid = f", {number(one['cost_usd'])} USD" if one["cost_usd"] is not None else ""
        return f"costs {seconds(one['cost_s'])} ({one['cost_share']:.1%}{paid})"

    slow, long, steps = answer["slow_ranks"], answer["long_steps"], answer["steps"]
    each = f"{steps} step{'s' * (steps > 1)} of {seconds(answer['step_s'])}"
    said = [f"ranks known: {answer['ranks']}; {each} in the mean"]
    for one in slow:
        times = f"{one['times']:.2f} times the median rank's" if one["times"] else "of which the median rank has none"
        said.append(f"rank {one['ranks'][0]}: {one['cause']}, {times}, in {one['steps']} of {steps} steps: {cost(one)}")
    if slow:
        without_s = answer["without_slow_ranks_s"]
        said.append(f"without slow ranks: steps of {seconds(without_s)}, {1 - without_s / answer['step_s']:.1%} less")
    elif not run.own_s or len(run.ranks) < 2:
        said.append("no rank can be named: log the seconds that each of several ranks computed (compute_s)")
    elif steps < 2:
        said.append("no rank can be named: one step, behind the first, does not tell a slow rank from chance; log more")
    else:
        said.append("no rank: none is slower than the others")
    if long:
        where = f"now and then at rank {', '.join(map(str, long['ranks']))} alone" if long["ranks"] else "together"
        by = f", by {long['cause']}" if long["cause"] else ""
        said.append(
            f"steps are long {where}: {long['steps']} of {steps}, {long['times']:.3g} times the median{by}: {cost(long)}"
        )
    return [*said, *(f"note: {printable(note)}" for note in run.notes)]


if __name__ == "__main__":
    command.run("calibration.slow", main)
