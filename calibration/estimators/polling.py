"""Seconds of a core for one poll of a waiting rank (sim.platform.polling), from runs of one worker and its master.

Their processes used more processor time than they worked. A fixed time for each poll explains the excess, on one host or two, with
links of any rate, and with models of 0.3 MB and 4 MB. The number of bytes adds nothing.
"""

from __future__ import annotations

import numpy as np

from calibration.evidence.core_seconds import BUSY
from calibration.evidence.seats import hosts_of
from sim.platform.polling import polls
from sim.recording.traces import Trace

PROTOCOLS = ("fmb", "amb")  # whose ranks do one thing at a time


def tells(trace: Trace) -> bool:
    """Whether a run had one worker and one master with a core each, and says how much processor time they used."""
    header = trace.header
    cores = sum(dict(header.hosts).values())
    of_two = header.protocol in PROTOCOLS and (header.world, header.workers, header.servers) == ("mpi", 1, 1)
    return of_two and cores > 1 and bool(header.cpu_s)


def poll_s(traces: list[Trace], oversleep_s: float, overhead_s: float) -> float:
    """Seconds of a core that a poll takes; the median of runs.

    Args:
        traces: which tell.
        oversleep_s: by which a sleep between polls is longer than asked.
        overhead_s: of a core at either end of a message between hosts, which is no poll's.
    """
    found = [_of(trace, oversleep_s, overhead_s) for trace in traces]
    return max(0.0, float(np.median(found))) if found else 0.0


def _of(trace: Trace, oversleep_s: float, overhead_s: float) -> float:
    rows = trace.rows[trace.rows["step"] >= trace.header.warmup]
    seconds, activity = (rows["end_s"] - rows["start_s"]).to_numpy(), rows["activity"]
    here = len(hosts_of(trace)) == 1  # where the receiver copies
    works, waits = (*BUSY, *["receive"] * here), ("wait", "send", *["receive"] * (not here))
    ends = 0 if here else int(activity.isin(("send", "receive")).sum())
    used_s, worked_s = sum(trace.header.cpu_s.values()), seconds[activity.isin(works)].sum()
    count = polls(seconds[activity.isin(waits)], oversleep_s).sum()
    return (used_s - worked_s - ends * overhead_s) / count if count else 0.0
