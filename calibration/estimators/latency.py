"""The time of messages between hosts in training, where no other message delays them: runs of one worker and its master.

They may take longer than a probe's, which follow one another closely. Caches are cold, and a probe's medians leave out the bad
moments of a mean step. The difference is added to the link's latency.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibration.estimators.lines import trimmed_mean
from calibration.estimators.residuals import job_of, played
from calibration.evidence.seats import hosts_of
from sim.base.errors import RunFailed, WrongSetting
from sim.platform.cluster import Cluster
from sim.recording.traces import Trace
from sim.simulation import simulate

NUDGE_S = 1e-4  # by which latency is changed to see how many of it a message takes


def known(profile: Cluster, traces: list[Trace]) -> Cluster:
    """The profile, its latency such that simulated messages take as long as the runs' messages did; unchanged without such runs.

    Least squares of relative deviations, so that large models count little. The excess of a library's messages is not seen, and is
    taken to be the same.

    Args:
        profile: with links that were probed.
    """
    clear = [trace for trace in traces if is_clear(trace)]
    if not clear:
        return profile
    try:
        taken, more, latencies = _late(profile, clear)
    except (RunFailed, WrongSetting):  # a run that cannot be simulated, which calibration.estimators.residuals says
        return profile
    weight = latencies / taken
    more_s = float(weight @ (more / taken) / (weight @ weight))
    links = {
        name: link.model_copy(update={"latency_s": max(0.0, link.latency_s + more_s)})
        for name in ("network", "library")
        if (link := getattr(profile, name))
    }
    runs = f"{len(clear)} run{'s' * (len(clear) > 1)} of one worker"
    said = f"latency {more_s * 1e6:+.0f} us to that of the probe, from the messages of {runs}"
    return profile.model_copy(update=links).known(said)


def is_clear(trace: Trace) -> bool:
    """Whether a run was of one worker and one master, which had a host each and sent each other messages."""
    of_two = (trace.header.workers, trace.header.servers) == (1, 1) and len(hosts_of(trace)) == 2
    return of_two and len(taken_s(trace)) > 0


def taken_s(trace: Trace) -> np.ndarray:
    """Seconds from each send on to the end of its receive call, after the warm-up; shape (messages,)."""
    rows = trace.rows.sort_values("start_s")
    taken = []
    for sender, receiver in ((0, 1), (1, 0)):
        sent = rows[(rows["activity"] == "send") & (rows["rank"] == sender)]
        came = rows[(rows["activity"] == "receive") & (rows["rank"] == receiver)]
        pairs = min(len(sent), len(came))  # none overtakes another
        seconds = came["end_s"].to_numpy()[:pairs] - sent["start_s"].to_numpy()[:pairs]
        taken.append(seconds[came["step"].to_numpy()[:pairs] >= trace.header.warmup])
    return np.concatenate(taken)


def _late(profile: Cluster, traces: list[Trace]) -> np.ndarray:
    """Of each run the seconds of a message, their excess over a simulated one, and the number of latencies in it; shape (3, runs)."""
    network = profile.network
    nudged = network.model_copy(update={"latency_s": network.latency_s + NUDGE_S})
    later, simulated, found = profile.model_copy(update={"network": nudged}), {}, []
    for trace in traces:
        kind = replace(played(trace), seed=0, replication=0).job
        if kind not in simulated:
            traced = [simulate(job_of(trace, one), "event", 1, want_trace=True).trace for one in (profile, later)]
            simulated[kind] = [trimmed_mean(taken_s(one)) for one in traced]
        said_s, nudged_s = simulated[kind]
        real_s = trimmed_mean(taken_s(trace))
        found.append((real_s, real_s - said_s, (nudged_s - said_s) / NUDGE_S))
    return np.array(found).T
