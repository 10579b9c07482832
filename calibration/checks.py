"""The runs that can be fitted: complete, of a possible job, and long enough to have a speed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

import numpy as np
from pydantic import ValidationError

from sim.answers import outcome
from sim.base.errors import RunFailed, WrongSetting, WrongValue, from_validation
from sim.job import replay
from sim.job.header import RECORDED
from sim.model.costs import TO_DEVICE, TO_HOST
from sim.protocols import PROTOCOLS
from sim.recording.traces import Trace

ONE_BY_ONE = ("input", "compute", "pack", TO_DEVICE, TO_HOST)
CLOCKS_S = 1e-3  # a clock may be set back by so many seconds
MOST_MESSAGES = 16  # all parameters of the model, times this and the ranks, are more bytes than any row has
OF_WORLDS = (*RECORDED, "training", "world", "replication")  # settings that a scenario does not have


def check(trace: Trace, name: str) -> None:
    """Refuse what is no run that can be fitted.

    Args:
        name: of the trace, as a complaint has it.

    Raises:
        WrongSetting: ranks without rows, work that cannot be, a job that cannot be, steps that are not there or take no time.
    """
    head, rows = trace.header, trace.rows
    present = rows["rank"].unique()
    if len(present) < head.ranks:
        missing = next(rank for rank in range(len(present) + 1) if rank not in set(present))
        raise WrongSetting(
            name, f"no row of rank {missing}", f"rows of each of the {head.ranks} ranks that its header says"
        )
    with replay.said_of(name):
        again = asdict(replay.scenario_of(head).header(head.world))
        for setting, given in asdict(head).items():
            if setting not in OF_WORLDS and given != again[setting]:
                raise WrongSetting(setting, given, f"{again[setting]!r} with {head.protocol}")
        overlaps = replay.protocol_of(head).overlaps
        with np.errstate(all="ignore"):
            speed = outcome.of_trace(trace).throughput()[0]
    if head.world == "mpi" and overlaps:
        allowed = (
            "runs whose messages wait for computing, or Horovod's own: which part is hidden by computing is not fitted"
        )
        raise WrongSetting(name, f"{head.protocol} over MPI", allowed)
    _check_work(trace, name)
    if not (np.isfinite(speed) and speed > 0):
        raise WrongSetting(name, f"{speed:g} samples/s", "a run whose updates have samples, and whose steps take time")


def _check_work(trace: Trace, name: str) -> None:
    """A rank does one computation at a time, and as many samples of it as its protocol and its batch say."""
    head, rows = trace.header, trace.rows
    for activity, work in rows[rows["activity"].isin(ONE_BY_ONE)].groupby("activity"):
        ordered = work.sort_values(["rank", "start_s", "end_s"])
        same = ordered["rank"].to_numpy()[1:] == ordered["rank"].to_numpy()[:-1]
        early = same & (ordered["start_s"].to_numpy()[1:] < ordered["end_s"].to_numpy()[:-1] - CLOCKS_S)
        if early.any():
            at = ordered.iloc[int(np.argmax(early)) + 1]
            given = f"{activity} of step {at['step']} at {at['start_s']:g} s"
            raise WrongSetting(f"{name}: rank {at['rank']}", given, "after the end of the one before")
    computes = (rows["activity"] == "compute") & (rows["step"] >= head.warmup)
    if not (rows["end_s"] - rows["start_s"])[computes].sum() > 0:
        raise WrongSetting(name, f"{len(rows)} rows", "a trace with computation after its warm-up steps")
    computed = rows.loc[rows["activity"] == "compute", "samples"]
    least = head.batch // max(1, int(head.settings.get("partitions", 1)))
    if head.protocol in PROTOCOLS and computed.any() and computed.max() < least:
        allowed = f"{least} or more in some, with batches of {head.batch}"
        raise WrongSetting(name, f"computations of {computed.max()} samples", allowed)
    if rows["bytes"].max() > MOST_MESSAGES * head.ranks * replay.workload_of(head).message_bytes:
        raise WrongSetting(name, f"{rows['bytes'].max()} bytes in a row", f"what a {head.workload} has to send")


@contextmanager
def fitting(names: str) -> Iterator[None]:
    """Within it, numbers that no cost can be are a failure of the fit, and not a profile full of them.

    Raises:
        RunFailed: a division by 0, an overflow, a cost that is negative or no number.
    """
    try:
        with np.errstate(divide="raise", over="raise", invalid="raise"):
            yield
    except (ArithmeticError, ValidationError, WrongValue) as error:
        said = from_validation("found", error) if isinstance(error, ValidationError) else error
        raise RunFailed(f"no costs fit {names}: {said}") from error
