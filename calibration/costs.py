"""sim.model.costs.Costs of one workload from its measured rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calibration.estimators import lines
from calibration.evidence import common_steps, factors
from calibration.evidence import host_speeds as hosts
from calibration.evidence.work_rows import Rows
from sim.model.costs import Costs, Line

if TYPE_CHECKING:
    from pandas import Series

    from sim.laws import Law

SIDE = ("input", "pack", "take_up", "reduce", "update", "evaluate")  # all but the gradients
COMPUTING = ("compute", "partition")
OWN = (*COMPUTING, "input", "pack", "take_up", "update", "to_device", "to_host")  # work of a rank that computes
MOST, MOST_LISTED = 0.5, 8  # share of the ranks of a step that have a stall of one's own; ranks in a note
LEAST_INPUT = 0.02  # of all work, from which the noise of input is worth a law
STAGED = ("to_device", "to_host")  # copies, which few runs have
SPREAD_TURNS = 1.2  # mean turns of the loop must differ by this factor between groups for its base to be separated
SPREAD_COLD = 0.2  # standard deviation of how cold ranks were within a run, from which it tells what that costs,
FEWEST_COLD = 50  # in as many rows
CLEARLY = 3  # standard errors above 0, from which it is believed,
LEAST_COLD = 0.02  # of a row's seconds, below which it is a trifle
LEAST_WARM = 0.1  # of a row's seconds are what a warm rank would have taken, however cold this one was
QUANTILES = 199  # rows that stand for the noise of a rank whose sleeps were separated


class Learned(NamedTuple):
    """Costs, the hosts' speeds (by host), and what was fitted and assumed, in words."""

    costs: Costs
    speeds: np.ndarray
    notes: list[str]


def learn(rows: Rows, host_of_rank: list[int]) -> Learned:
    """Costs from rows; the factors on computation split into host, run, what all ranks have alike in a step, and noise."""
    table, host = rows.table, np.array(host_of_rank)
    stalled = _stalled(table)
    table, notes = table[~stalled], _stall_notes(table, stalled)
    slow = _speeds(table[table["activity"] != "input"] if rows.loaded else table, host)
    table = table.assign(seconds=table["seconds"] * slow.speeds[host[table["rank"]]])  # of a host of speed 1
    compute, loop_s, partition, side, more = _lines(table)
    factor = _factors(table, compute, loop_s, partition)
    mean = common_steps.usual(factor["factor"], [factor["run"], factor["rank"]])
    of_run = mean.index.get_level_values("run")
    drift = mean.groupby([of_run, host[mean.index.get_level_values("rank")]]).mean()  # ranks of one host drift together
    drift[:] = slow.left(drift.to_numpy(), drift.index.get_level_values(1).to_numpy())
    noise, common = _noise(factor, mean, rows.hidden)
    costs = Costs(
        compute=compute,
        loop_s=loop_s,
        partition=partition,
        noise=noise,
        common_noise=common,
        run=factors.law(drift.to_numpy()),
        **_side_noise(table, side, ("update",) if rows.loaded else ("input", "update")),
        **side,
    )
    free = ", ".join(name for name in SIDE if name != "evaluate" and not (table["activity"] == name).any())
    assumed = [f"no rows, so taken as free: {free}"] if free else []
    return Learned(
        costs,
        slow.speeds,
        [*notes, *more, slow.note + _slow_ranks(slow, host), *_of_common(costs), *assumed],
    )


def _lines(table) -> tuple[Line, float, Line, dict[str, Line | None], list[str]]:
    """compute, loop_s, partition, all other lines by activity, and how these of gradients were found."""
    compute, loop_s, partition, notes = _gradient(table)
    rows = dict(iter(table.groupby("activity")))
    side: dict[str, Line | None] = {name: _line(rows.get(name, table[:0])) for name in (*SIDE, *STAGED)}
    side["reduce_rows"] = _line(rows["reduce_rows"]) if "reduce_rows" in rows else None
    return compute, loop_s, partition, side, notes


def _speeds(table, host: np.ndarray) -> hosts.Slowness:
    """The hosts' speeds, by all work of ranks that compute, over what the lines say of it."""
    compute, loop_s, partition, side, _ = _lines(table)
    rows = table[table["activity"].isin(OWN)]
    rows = rows[rows["activity"].isin(COMPUTING).groupby([rows["run"], rows["rank"]]).transform("any")]
    said_s, warm_s = np.zeros((2, len(rows)))
    for name in rows["activity"].unique():
        these = (rows["activity"] == name).to_numpy()
        line = {"compute": compute, "partition": partition, **side}[name]
        said_s[these] = loop_s * (name == "partition") + rows["turns"][these] * line(rows["amount"][these])
        warm_s[these] = _warm_s(rows[these], line.cold_s)
    sums = rows.assign(host=host[rows["rank"]], said_s=said_s, warm_s=warm_s)
    factor = _ratio(sums, "run", "host")
    quarters = _ratio(sums, "host", "quarter").unstack()
    single = sums["run"].nunique() == 1 and len(quarters) > 1 and sums["quarter"].min() >= 0
    single = single and not quarters.isna().any(axis=None)
    of_host = factor.index.get_level_values("host").to_numpy()
    return hosts.tell_apart(factor.to_numpy(), of_host, max(host) + 1, quarters.to_numpy() if single else None)


def _ratio(sums, *by: str) -> Series:
    """The usual factor of groups."""
    found = sums.groupby([*dict.fromkeys((*by, "run", "step", "host"))])[["warm_s", "said_s"]].sum()
    return common_steps.usual(found["warm_s"] / found["said_s"], [*by])


def _slow_ranks(slow: hosts.Slowness, host: np.ndarray) -> str:
    """The ranks of slow hosts, the slowest first, and how slow they are."""
    times = 1 / slow.speeds[host]
    order = [rank for rank in np.argsort(-times, kind="stable") if times[rank] > 1][:MOST_LISTED]
    said = ", ".join(f"rank {rank} ({times[rank]:.3g} times as long as the median)" for rank in order)
    return f"; slow: {said}{' and others' * bool((times > 1).sum() > MOST_LISTED)}" if said else ""


def _of_common(costs: Costs) -> list[str]:
    """A note on what all ranks have alike in steps."""
    laws = {"computing": costs.common_noise, "input": costs.common_input_noise, "updates": costs.common_update_noise}
    found = [f"{name} p95 {law.quantile(0.95):.3g} times the mean" for name, law in laws.items() if law.sole is None]
    return [f"steps are long or short at all ranks together: {', '.join(found)}"] if found else []


def _stalled(table) -> np.ndarray:
    """The rows that are stalls, for each activity by itself, because a master's update may stall while computation does not.

    What most ranks of a step have is none, as a checkpoint.
    """
    found = np.zeros(len(table), bool)
    for _, rows in table.reset_index(drop=True).groupby("activity"):
        stalls = lines.stalled(rows["seconds"] / rows["turns"], rows["group"])
        of_step = rows.assign(stalls=stalls).groupby(["run", "step"])
        alone = (of_step["stalls"].transform("mean") <= MOST) | (of_step["rank"].transform("nunique") == 1)
        found[rows.index] = stalls & alone
    return found


def _stall_notes(table, stalled: np.ndarray) -> list[str]:
    if not stalled.any():
        return []
    rows = table[stalled]
    waited_s = rows.groupby(["run", "step"])["seconds"].max().sum()
    whole_s = table[~stalled].groupby(["run", "rank"])["seconds"].sum().groupby("run").max().sum()
    which = ", ".join(map(str, sorted(rows["rank"].unique())[:MOST_LISTED]))
    return [
        f"{len(rows)} of {len(table)} rows left out as stalls: above {lines.STALL} times the median of their group, at rank {which}; "
        f"where all ranks wait for them, steps take up to {waited_s / whole_s:.1%} longer"
    ]


def _line(rows, floors: bool = False) -> Line:
    if rows.empty:
        return Line()
    cold_s = _cold_s(rows)
    measured = rows["amount"].to_numpy(float), _warm_s(rows, cold_s).to_numpy()
    found = lines.floored(*measured, rows["run"].to_numpy()) if floors else lines.line(*measured)
    return Line(cold_s=cold_s, **dict(zip(("base_s", "slope_s", "floor_s"), found, strict=False)))


def _cold_s(rows) -> float:
    """The extra time of a rank that was idle: the slope of seconds over how cold it was, within runs whose idling is induced.

    Induced idling does not depend on how long work takes. Runs are not compared with one another, because the processor drifts. Least
    squares of relative deviations, because noise is a factor. The slope is 0 where there are too few rows, where it is a trifle, and
    where it is below three standard errors.
    """
    induced = rows[rows["induced"]]
    if len(induced) < FEWEST_COLD:
        return 0.0
    by_run = induced.groupby(["run", "rank", "amount", "turns"])
    mean_s = by_run["seconds"].transform("mean")
    cold, seconds = (induced[name] - by_run[name].transform("mean") for name in ("cold", "seconds"))
    if cold.std() < SPREAD_COLD:
        return 0.0
    cold, seconds = cold / mean_s, seconds / mean_s
    information = float((cold**2).sum())
    found_s = float((cold * seconds).sum()) / information
    error_s = float((seconds - found_s * cold).std()) / np.sqrt(information)
    least_s = LEAST_COLD * float((cold**2 * mean_s).sum()) / information
    return found_s if found_s > max(least_s, CLEARLY * error_s) else 0.0


def _gradient(table) -> tuple[Line, float, Line, list[str]]:
    """compute, loop_s, partition, and lines about them; the one that was not measured is made from the other."""
    whole, parts = table[table["activity"] == "compute"], table[table["activity"] == "partition"]
    compute = _line(whole, floors=True)
    notes = [f"compute fitted from {len(whole)} rows, batches {_levels(whole)}"] if len(whole) else []
    if compute.floor_s:
        notes.append(f"a floor of {compute.floor_s * 1e3:.3g} ms, which smaller batches take")
    if parts.empty:
        return compute, compute.base_s, compute.model_copy(update={"base_s": 0.0}), notes
    loop_s, partition = _loop(parts, compute)
    notes.append(f"loop and partition fitted from {len(parts)} rows, micro-batches {_levels(parts)}")
    if whole.empty:
        notes.append("compute assumed: one turn of the loop with the whole minibatch")
        compute = partition.model_copy(update={"base_s": loop_s + partition.base_s})
    return compute, loop_s, partition, notes


def _levels(rows) -> str:
    return ", ".join(f"{level:g}" for level in np.unique(rows["amount"]))


def _loop(parts, compute: Line) -> tuple[float, Line]:
    """loop_s and the line of a turn. One micro-batch alone cannot tell base from slope: the slope, and a floor, are then of `compute`.

    A cold rank takes as much more as for `compute`.
    """
    turns, amount = parts["turns"].to_numpy(float), parts["amount"].to_numpy(float)
    mean_turns = parts.groupby("group")["turns"].mean()
    several, warm_s = len(np.unique(amount)) > 1, _warm_s(parts, compute.cold_s).to_numpy()
    columns = [turns] + [turns * amount] * several
    columns += [np.ones(len(parts))] * bool(mean_turns.max() > SPREAD_TURNS * mean_turns.min())
    turn_s, *rest = lines.fit(np.column_stack(columns), warm_s, parts["group"].to_numpy())
    loop_s = float(rest[several]) if len(rest) > several else 0.0
    if several:
        return loop_s, Line(base_s=turn_s, slope_s=rest[0], cold_s=compute.cold_s)
    if compute.floor_s:
        more_s = turn_s - float(compute(amount[0]))  # whatever the amount
        longer = {name: max(0.0, getattr(compute, name) + more_s) for name in ("base_s", "floor_s")}
        return loop_s, compute.model_copy(update=longer)
    share_s = min(compute.slope_s, turn_s / amount[0]) or turn_s / amount[0]
    return loop_s, Line(base_s=max(0.0, turn_s - share_s * amount[0]), slope_s=share_s, cold_s=compute.cold_s)


def _factors(table, compute: Line, loop_s: float, partition: Line):
    """The rows of computation, with `factor`: seconds of a warm rank over what the costs say."""
    rows = table[table["activity"].isin(["compute", "partition"])]
    whole = rows["activity"] == "compute"
    said_s = compute(rows["amount"]).where(whole, loop_s + rows["turns"] * partition(rows["amount"]))
    return rows.assign(factor=_warm_s(rows, compute.cold_s) / said_s)


def _warm_s(rows, cold_s: float) -> Series:
    """Seconds that a warm rank would have taken."""
    return (rows["seconds"] - cold_s * rows["cold"]).clip(lower=LEAST_WARM * rows["seconds"])


def _side_noise(table, side: dict[str, Line | None], names: tuple[str, ...]) -> dict[str, Law]:
    """Laws of the noise of input and of updates, each of one rank's own and of all ranks alike; short ones have none."""
    found = {}
    for name in names:
        rows = table[table["activity"] == name]
        if rows["seconds"].sum() <= LEAST_INPUT * (name == "input") * table["seconds"].sum():
            continue
        warm_s = _warm_s(rows, side[name].cold_s)
        own, common = common_steps.split(
            _by_step(rows, warm_s / warm_s.groupby([rows["run"], rows["rank"]]).transform("mean"))
        )
        found |= {f"{name}_noise": factors.law(own), f"common_{name}_noise": factors.law(common)}
    return found


def _by_step(rows, factor) -> Series:
    return factor.set_axis(rows.set_index(["run", "step", "rank"]).index)


def _noise(factor, mean, hidden: dict) -> tuple[Law, Law]:
    """The laws of factors within each run and rank, mean 1, of a rank's own and of all ranks alike.

    Of those separated from sleeps, quantiles of their normal law.
    """
    from scipy.special import ndtri

    keys = list(zip(factor["run"], factor["rank"], strict=True))
    seen = np.array([key not in hidden for key in keys])
    within = _by_step(factor, factor["factor"] / mean.loc[keys].to_numpy())[seen]
    own, common = common_steps.split(within) if seen.any() else (within.to_numpy(), np.ones(1))
    quantiles = ndtri((np.arange(QUANTILES) + 0.5) / QUANTILES)
    return factors.law(np.concatenate([own, *(np.exp(cv * quantiles) for cv in hidden.values())])), factors.law(common)
