"""Traces as the rows that a fit needs: rank, activity, amount, and seconds of a core."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibration.evidence import sleeps
from calibration.evidence.core_seconds import core_seconds
from calibration.evidence.host_speeds import QUARTERS
from calibration.evidence.seats import Placement
from sim.base.errors import WrongSetting
from sim.job import replay
from sim.model.costs import COLD_AFTER_S, COLD_FROM_S, TO_DEVICE, TO_HOST, Costs
from sim.recording.traces import Trace

if TYPE_CHECKING:
    import pandas as pd

FOLLOWING = ("pack", TO_HOST)  # a computation, without a pause
RENEWING = "amb-dg"  # the protocol whose workers never wait, and adopt new parameters between partitions
LEAST_OF_A_QUARTER = 50  # so many steps separate sleeps from the computation
SLEEP_LEVELS = 3  # groups of induced sleeps, besides none at all


@dataclass(frozen=True)
class Rows:
    """Measured rows of one workload.

    Args:
        table: a row an activity after warm-up: run (index of the trace), rank, step, quarter of the run (0 to 3; -1 in shorter ones),
            activity (a field of sim.model.costs.Costs, for computation `compute` or `partition`), amount (samples or bytes), turns
            (of the loop; 1), seconds (of a core), cold (the rank's coldness, 0 to 1), induced
            (whether the rank's idling in that run is induced), group (by the run, its settings and the induced sleep, which do not
            depend on noise).
        hidden: relative spread of the computation, for each (run, rank) whose sleeps had to be separated.
        loaded: whether other processes load data beside computing, so that input is a wait for these (calibration.profiles).
    """

    table: pd.DataFrame
    hidden: dict[tuple[int, int], float]
    loaded: bool = False


def measured(traces: list[Trace], place: Placement, contention: float = 0.0, switching: float = 0.0) -> Rows:
    """The rows of traces of one workload.

    Args:
        place: where the ranks sat.
        contention, switching: of their hosts' cores and GPUs.
    """
    import pandas as pd

    tables, hidden = [], {}
    for run, trace in enumerate(traces):
        table = _table(trace, place, contention, switching).assign(run=run)
        table["quarter"] = _quarter(table, LEAST_OF_A_QUARTER if trace.header.sleep_in_compute else 1)
        if trace.header.sleep_in_compute:
            table, spread = _told_apart(table, trace)
            hidden.update({(run, rank): cv for rank, cv in spread.items()})
        tables.append(table)
    table = pd.concat(tables, ignore_index=True)
    table["group"] = table.groupby(["run", "run_settings", "activity", "amount", "level"], sort=True).ngroup()
    return Rows(table, hidden, any(trace.header.details.get("loader_workers") for trace in traces))


def _table(trace: Trace, place: Placement, contention: float, switching: float) -> pd.DataFrame:
    header, rows = trace.header, trace.rows
    seconds = core_seconds(rows, place, contention, switching)
    idling = np.log(np.clip(idle_s(rows, header.servers), COLD_FROM_S, COLD_AFTER_S) / COLD_FROM_S)
    rows = rows.assign(
        seconds=seconds,
        turns=1,
        level=_sleep_level(rows),
        amount=rows["bytes"],
        cold=idling / math.log(COLD_AFTER_S / COLD_FROM_S),  # it grows by as much with each doubling
    )
    # Ranks idle for reasons of their own where some sleep, or workers never wait. Others wait long where they work fast.
    induced = header.protocol == RENEWING or bool((rows["activity"] == "sleep").any())
    rows = rows[rows["step"] >= header.warmup].assign(induced=induced)
    by_samples = rows["activity"].isin(["input", "compute", "evaluate"])
    rows.loc[by_samples, "amount"] = rows["samples"]
    rows.loc[_taken_up(rows, header.servers), "activity"] = "take_up"
    rows["activity"] = rows["activity"].replace({TO_DEVICE: "to_device", TO_HOST: "to_host"})
    if header.protocol == "hybrid":  # what it adds up is rows, or pieces of an allreduce, which know of no samples
        rows.loc[(rows["activity"] == "reduce") & (rows["samples"] > 0), "activity"] = "reduce_rows"
    partitions = header.settings.get("partitions")
    if partitions and header.protocol != RENEWING:  # whose partitions are small minibatches, each with a row of its own
        micro_batch, computed = header.batch // partitions, rows["activity"] == "compute"
        rows.loc[computed, "turns"] = rows["samples"] // micro_batch
        rows.loc[computed, "amount"] = micro_batch
        rows.loc[computed, "activity"] = "partition"
        rows = rows[rows["turns"] > 0]
    settings = f"{header.protocol} {header.batch} {sorted(header.settings.items())}"
    rows = rows[rows["activity"].isin([*Costs.model_fields])]
    columns = ["rank", "step", "activity", "amount", "turns", "seconds", "level", "cold", "induced"]
    return rows.loc[rows["seconds"] > 0, columns].assign(run_settings=settings)


def _taken_up(rows: pd.DataFrame, servers: int) -> pd.Series:
    """The updates in which a worker adopts received parameters; workers of the hybrid make updates of their own too."""
    of_workers = (rows["activity"] == "update") & (rows["rank"] >= servers) & (servers > 0)
    return of_workers & (rows["samples"] == 0)


def idle_s(rows: pd.DataFrame, servers: int) -> np.ndarray:
    """Seconds from the end of the rank's last gradient, update or packing to the start of the next; 0 of other rows.

    The simulator counts alike. Packing is work, and leaves a rank warm.
    """
    heavy = rows["activity"].isin(["compute", "pack", TO_HOST, "update"]) & ~_taken_up(rows, servers)
    found = rows[heavy].sort_values(["rank", "start_s"], kind="stable")
    before_s = found.groupby("rank")["end_s"].shift(fill_value=0.0)
    seconds = (found["start_s"] - before_s).clip(lower=0.0).where(~found["activity"].isin(FOLLOWING), 0.0)
    return seconds.reindex(rows.index, fill_value=0.0).to_numpy()


def _sleep_level(rows: pd.DataFrame) -> pd.Series:
    """0 where the rank did not sleep in that step, else 1 to 3 from short sleeps to long ones."""
    import pandas as pd

    asleep = rows[rows["activity"] == "sleep"]
    seconds = (asleep["end_s"] - asleep["start_s"]).groupby([asleep["rank"], asleep["step"]]).sum()
    level = np.ceil(seconds.rank(pct=True) * SLEEP_LEVELS).astype(int)
    keys = pd.MultiIndex.from_frame(rows[["rank", "step"]])
    return pd.Series(level.reindex(keys).fillna(0).to_numpy(int), index=rows.index)


def _told_apart(table: pd.DataFrame, trace: Trace) -> tuple[pd.DataFrame, dict[int, float]]:
    """The rows with the mean of each rank's computation in place of computation and sleep; its relative spread by rank.

    Raises:
        WrongSetting: partitions done until a deadline, whose number depends on the sleep that is not known.
    """
    if (table["activity"] == "partition").any():
        allowed = "logs with sleep_time; from those without, only the runs of fixed minibatches can be fitted"
        raise WrongSetting(trace.header.cluster, "sleeps hidden in the computation of an amb run", allowed)
    law, table, spread = replay.law_of(trace.header), table.copy(), {}
    for rank, rows in table[table["activity"] == "compute"].groupby("rank"):
        mean_s, std_s = sleeps.net(rows["seconds"].to_numpy(), law)
        spread[int(rank)] = std_s / mean_s
        for _, part in rows.groupby("quarter"):
            own_s = sleeps.net(part["seconds"].to_numpy(), law)[0] if len(part) < len(rows) else mean_s
            table.loc[part.index, "seconds"] = own_s
    return table, spread


def _quarter(table: pd.DataFrame, least: int) -> pd.Series:
    """The quarter of the run that each row is in, or the half or third if a quarter is fewer steps than the least; -1 if a half is."""
    order = table["step"].rank(method="dense").astype(int) - 1
    steps = order.max() + 1
    parts = min(QUARTERS, steps // least)
    return order * parts // steps if parts > 1 else order * 0 - 1
