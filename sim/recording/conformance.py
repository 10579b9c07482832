"""The record of a run without its times, on which worlds that run one text must agree."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from sim.recording.all_ranks import rounds_of
from sim.recording.traces import NOBODY, Header, Trace


class Gradients(NamedTuple):
    """Samples of all gradients of a run.

    Args:
        computed: by all workers.
        applied: in the updates of rank 0; of a user's text without a master, in those of any rank, each once.
    """

    computed: int
    applied: int


def record(trace: Trace) -> Counter:
    """Counts of each (rank, step, activity, samples, bytes, peer).

    The order of arrival numbers a server's steps where each gradient is applied by itself; its steps then count as step 0.
    """
    rows = trace.rows[["rank", "step", "activity", "samples", "bytes", "peer"]].copy()
    if trace.header.updates_per_step > 1:
        rows.loc[rows["rank"] == 0, "step"] = 0
    return Counter(rows.itertuples(index=False, name=None))


def settled(trace: Trace, fuses: bool) -> Counter:
    """The record of a run whose messages travel while ranks compute, without the parts that depend on timing.

    These parts are waits, and the pieces into which they cut a rank's computing: its samples count once a step.

    Args:
        fuses: whether ranks sum whatever is ready. Messages, sums and copies are then cut by time too, and left out.
    """
    by_time = ("wait", "compute", *(("send", "receive", "reduce", "pack") if fuses else ()))
    rows = trace.rows
    computed = rows[rows["activity"] == "compute"].groupby(["rank", "step"])["samples"].sum()
    left = record(Trace(trace.header, rows[~rows["activity"].isin(by_time)]))
    return left + Counter((rank, step, "compute", samples, 0, NOBODY) for (rank, step), samples in computed.items())


def drifted(header: Header) -> list[str]:
    """Whether ranks that update their own parameters ended with different ones, in a line; none if they are equal, or not known."""
    checksums = header.details.get("parameters_crc32", ())
    different = len(set(checksums))
    if header.servers or different < 2:
        return []
    said = f"the parameters of {len(checksums)} ranks end as {different} different ones"
    return [f"{said}: replicas drift apart where gradients are not summed alike at all ranks"]


def order(trace: Trace) -> dict[int, list[str]]:
    """The activities of each rank but rank 0, one after another; rank 0's depend on the order of arrival."""
    rows = trace.rows[trace.rows["rank"] > 0].sort_values(["start_s", "end_s"], kind="stable")
    return {rank: list(of["activity"]) for rank, of in rows.groupby("rank")}


def gradients(trace: Trace) -> Gradients:
    """The samples that were computed, and those that were applied."""
    samples, activity = trace.rows["samples"], trace.rows["activity"]
    computed, applied = int(samples[activity == "compute"].sum()), (activity == "update") & (trace.rows["rank"] == 0)
    if not trace.header.by_all_ranks:
        return Gradients(computed, int(samples[applied].sum()))
    rounds = rounds_of(trace)
    return Gradients(computed, max(rounds.largest, int(rounds.samples.sum())))
