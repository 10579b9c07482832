"""The costs of a library's allreduce for the ranks of one host, from runs of so few ranks that each has a core.

A library works, moves bytes and sleeps from a rank's gradient, or the last rank's if that is later, until the sum is there. That
time is a line in four amounts: calls, bytes that they sum, messages and bytes that a rank takes from others. The processor time of a
step beyond the rank's own work is a line in the same amounts. Elapsed time beyond processor time is sleep;
processor time beyond elapsed time is background work. A single rank takes no messages. Its runs separate the cost of a call from that
of its exchanges.

Where sums overlap with computing, their duration cannot be seen. Two times are known: the processor time of all sums, and the time of
the last sum after the computation, when cores idle. The part of the latter that is no work is the latency of its messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from calibration.estimators.lines import trimmed_mean
from sim.base.errors import WrongSetting
from sim.job.replay import protocol_of, workload_of
from sim.language.moves import moves
from sim.model.costs import Line
from sim.model.nominal import layer_shares
from sim.model.sizes import ITEM_BYTES
from sim.model.workload import Variable
from sim.platform.cluster import Link
from sim.recording.traces import Trace

OWN = ("input", "compute", "pack", "update", "evaluate")  # a rank's work that is not the library's
BEFORE = ("compute", "pack")  # activities that a sum comes after
# A call costs several ranks more than one. In these libraries the difference is negotiation, and not the messages of a ring.
NEGOTIATE = ("horovod",)
MESSAGES_OF_TWO = 2  # that each of two ranks takes in a ring
SOFT_S = 1e-4  # standard deviation of every run in seconds, whatever it measured
DRIFT = 0.1  # a run with a much larger error counts less: the processor was elsewhere


class Amounts(NamedTuple):
    """The amounts of a rank's sums in one step: calls, bytes that they sum, messages and bytes that it takes."""

    calls: float
    call_bytes: float
    messages: float
    taken_bytes: float


class Sums(NamedTuple):
    """One run's: means over its ranks and steps.

    Args:
        elapsed_s: from the last gradient to the sum.
        processor_s: of a rank and step, less its own work.
    """

    amounts: Amounts
    elapsed_s: float
    processor_s: float
    last: Amounts  # of the last call
    cycle_s: float = 0.0


class Fitted(NamedTuple):
    """The costs of a call (fields of sim.model.costs.Costs), the link between ranks of a host, and a description of the fit."""

    of_calls: dict
    local: Link
    notes: list[str]


def is_of_a_library(trace: Trace) -> bool:
    """Whether somebody else's allreduce summed: Horovod's, TensorFlow's, or MPI's own."""
    header = trace.header
    ours = not header.foreign and header.settings.get("algorithm") != "auto"
    return bool(header.measured and header.servers == 0 and header.cpu_s and not ours)


def fit(traces: list[Trace], names: list[str], cores: int, contention: float) -> Fitted:
    """Costs of a library from runs of one rank and of more.

    Args:
        cores: of the host.
        contention: of them (sim.platform.cluster.Host).

    Raises:
        WrongSetting: more ranks than cores, or different libraries.
    """
    _check(traces, names, cores)
    sums = [_slowed_less(sums_of(trace), trace.header.ranks, cores, contention) for trace in traces]
    design = np.array([s.amounts for s in sums])
    processor_s = _nonnegative(design, np.array([s.processor_s for s in sums]))
    overlap = protocol_of(traces[0].header).overlaps
    elapsed_s = processor_s if overlap else _nonnegative(design, np.array([s.elapsed_s for s in sums]))
    chained_s, behind_s = np.minimum(elapsed_s, processor_s), np.maximum(0.0, processor_s - elapsed_s)
    asleep_s = elapsed_s - chained_s
    if overlap:
        asleep_s[2] = _latency(sums, chained_s)
    negotiates = traces[0].header.world in NEGOTIATE
    local = Link(
        latency_s=asleep_s[2],
        overhead_s=0.0 if negotiates else chained_s[2],
        bandwidth_bytes_per_s=1 / max(elapsed_s[3], 1e-14),
        background_s=behind_s[2] / 2,  # which a message takes at each of its ends
        wakes=True,
    )
    ranks = sorted({trace.header.ranks for trace in traces})
    said = f"{traces[0].header.world}: a call and its exchanges fitted from {len(traces)} runs of {' and '.join(map(str, ranks))}"
    of_calls = {
        "call": Line(base_s=chained_s[0], slope_s=elapsed_s[1]),
        "agree_s": asleep_s[0],
        "negotiate_s": MESSAGES_OF_TWO * chained_s[2] if negotiates else 0.0,
    }
    return Fitted(of_calls, local, [said])


def _check(traces: list[Trace], names: list[str], cores: int) -> None:
    for trace, name in zip(traces, names, strict=True):
        if trace.header.ranks > cores:
            allowed = f"at most {cores}, so that each has a core of its own"
            raise WrongSetting(name, f"{trace.header.ranks} ranks", allowed)
    if len({protocol_of(trace.header).overlaps for trace in traces}) > 1:
        given = "sums apart and sums that overlap with computing"
        raise WrongSetting("TRACE", given, "one of the two, because a call has other costs in each")
    libraries = sorted({trace.header.world for trace in traces})
    if len(libraries) > 1:
        raise WrongSetting("TRACE", " and ".join(libraries), "one library: a profile has one cost of a call")


def _latency(sums: list[Sums], chained_s: np.ndarray) -> float:
    """Seconds a message, where two ranks' last calls, begun half a cycle late, took longer than they worked."""
    of_two = [s for s in sums if s.last.messages]
    messages = [s.last.messages + MESSAGES_OF_TWO for s in of_two]  # a negotiation's besides
    idle_s = [s.elapsed_s - s.cycle_s / 2 - np.dot(s.last, chained_s) for s in of_two]
    return max(0.0, float(np.median(np.divide(idle_s, messages)))) if of_two else 0.0


def pieces_of(trace: Trace) -> list[slice]:
    """The piece that each call of a step sums, in order."""
    protocol = protocol_of(trace.header)
    variables = protocol.summed(workload_of(trace.header))
    if protocol.overlaps:
        return _cycles(trace, protocol, variables)[::-1]
    return _pieces(variables, protocol.fused)


def _pieces(variables: Sequence[Variable], fused: bool) -> list[slice]:
    """The pieces that calls sum: the items of all variables, or of each if there are any; the last ends with the number of samples."""
    bounds = [0, *accumulate(variable.size for variable in variables)]
    bounds[-1] += 1
    return [slice(*ends) for ends in pairwise([0, bounds[-1]] if fused or not variables else bounds)]


def amounts_of(trace: Trace, pieces: list[slice]) -> Amounts:
    """Count the amounts of some calls, by a library's ring or by the algorithm that MPI takes."""
    algorithm = trace.header.settings["algorithm"] if not trace.header.foreign else "ring"
    hosts = [0] * trace.header.ranks
    taken = [
        move.bytes
        for piece in pieces
        for move in moves(algorithm, 0, hosts, piece.stop - piece.start)
        if move.frm is not None
    ]
    summed = [ITEM_BYTES * (piece.stop - piece.start) for piece in pieces]
    return Amounts(len(pieces), sum(summed), len(taken), sum(taken))


def _cycles(trace: Trace, protocol, variables) -> list[slice]:
    """The variables that each cycle finds ready. The protocol says when gradients are ready, the last variable's first."""
    rows = trace.rows[(trace.rows["activity"] == "compute") & (trace.rows["step"] >= trace.header.warmup)]
    shares = layer_shares([variable.size for variable in variables], protocol.order)
    after_s = np.cumsum(shares[::-1])[::-1] * (rows["end_s"] - rows["start_s"]).median()
    cycle = after_s // protocol.cycle_s if protocol.cycle_s else after_s
    pieces = _pieces(variables, fused=False)
    of = {number: [piece for piece, own in zip(pieces, cycle, strict=True) if own == number] for number in cycle}
    return [slice(found[0].start, found[-1].stop) for found in of.values()]


def sums_of(trace: Trace) -> Sums:
    """Measured times of the sums of one run, after its warm-up."""
    rows = trace.rows.assign(seconds=lambda r: r["end_s"] - r["start_s"])
    rows = rows[rows["step"] >= trace.header.warmup]
    processor_s = sum(trace.header.cpu_s.values()) / rows.groupby("rank")["step"].nunique().sum()
    before = rows["activity"].isin(BEFORE if not trace.header.foreign else ("compute",))
    last_s = rows[before].groupby("step")["end_s"].max()
    summed_s = rows[rows["activity"] == "receive"].groupby(["step", "rank"])["end_s"].max()
    if summed_s.empty:  # one rank alone sums nothing with MPI
        summed_s = last_s.rename_axis("step").to_frame().set_index([np.zeros(len(last_s), int)], append=True)["end_s"]
    elapsed_s = (summed_s - last_s.reindex(summed_s.index.get_level_values(0)).to_numpy()).groupby(level=0).mean()
    own_s = rows[rows["activity"].isin(OWN)].groupby(["step", "rank"])["seconds"].sum()
    pieces = pieces_of(trace)
    return Sums(
        amounts_of(trace, pieces),
        trimmed_mean(elapsed_s),
        max(0.0, processor_s - trimmed_mean(own_s)),
        last=amounts_of(trace, pieces[-1:]),
        cycle_s=getattr(protocol_of(trace.header), "cycle_s", 0.0),
    )


def _slowed_less(sums: Sums, ranks: int, cores: int, contention: float) -> Sums:
    """The core seconds of these rows if no other core were busy."""
    share = min(1.0, sums.processor_s / sums.elapsed_s) if sums.elapsed_s else 0.0
    by = 1 + contention * min(cores - 1, (ranks - 1) * share)
    return sums._replace(elapsed_s=sums.elapsed_s / by, processor_s=sums.processor_s / by)


def _nonnegative(design: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Coefficients of 0 or more; runs weigh alike whatever they took, those gone astray less."""
    from scipy.optimize import least_squares

    if not seconds.any():  # sums that took no time cost nothing
        return np.zeros(design.shape[1])
    used = design.max(axis=0) > 0
    scale = design[:, used].max(axis=0) / seconds.max()
    unit, size = design[:, used] / scale, DRIFT * seconds + SOFT_S
    found = least_squares(
        lambda b: (unit @ b - seconds) / size, np.full(used.sum(), 0.3), bounds=(0, np.inf), loss="soft_l1"
    )
    coefficients = np.zeros(design.shape[1])
    coefficients[used] = np.where(found.x > 1e-6, found.x, 0.0) / scale
    return coefficients
