"""The bottleneck of a job with parameter servers: how busy its parts are, and which of them is busiest."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sim.model.costs import TO_DEVICE, TO_HOST

if TYPE_CHECKING:
    import pandas as pd

    from sim.job.scenario import Scenario
    from sim.recording.traces import Trace


class Arrivals(NamedTuple):
    """Figures that follow from the order in which gradients arrive.

    Args:
        missed: gradients that the first server added, by the updates that they had missed.
        busy: share of the measured time in which each part is busy.
    """

    missed: dict[int, int]
    busy: dict[str, float]


def of_trace(trace: Trace, scenario: Scenario) -> Arrivals:
    """The arrivals of a trace, simulated or measured."""
    missed, gradients = np.unique(staleness(trace), return_counts=True)
    return Arrivals(dict(zip(missed.tolist(), gradients.tolist(), strict=True)), utilisation(trace, scenario))


SATURATED = 0.85  # a part that is busy for more of the time than this is what bounds throughput


def utilisation(trace: Trace, scenario: Scenario) -> dict[str, float]:
    """Share of the measured time in which each part is busy: its busiest worker, port or server.

    `compute` counts induced sleeps; `server apply` is adding gradients and updating; ports are those of hosts, in the
    direction that is busier.
    """
    rows = _measured(trace)
    window_s = rows["end_s"].max() - rows["start_s"].min()
    seconds = (
        (rows["end_s"] - rows["start_s"])
        .groupby([rows["rank"] >= scenario.servers, rows["rank"], rows["activity"]])
        .sum()
    )
    ports = _ports_s(rows, scenario)
    serving = scenario.hosts[: scenario.servers]
    busy_s = {
        "compute": _busiest(seconds, True, ("compute", "sleep", "input", "pack", TO_DEVICE, TO_HOST)),
        "worker port": max((s for host, s in ports.items() if host not in serving), default=0.0),
        "server port": max((s for host, s in ports.items() if host in serving), default=0.0),
        "server apply": _busiest(seconds, False, ("reduce", "update")),
    }
    return {part: min(1.0, float(s / window_s)) for part, s in busy_s.items()}


def staleness(trace: Trace) -> np.ndarray:
    """Updates that each gradient had missed when the first server added it, shape (gradients,), after warm-up."""
    rows = trace.rows[trace.rows["rank"] == 0]
    rows = rows[rows["activity"].isin(["reduce", "update"])].sort_values(["end_s", "start_s"], kind="stable")
    made = (rows["activity"] == "update").cumsum()
    added = rows["activity"] == "reduce"
    warm = made >= trace.header.warmup * trace.header.updates_per_step
    return (made - rows["version"])[added & warm].to_numpy(int)


def warning(shares: dict[str, float]) -> str:
    """The busiest part, in a line."""
    part = max(shares, key=shares.__getitem__)
    listed = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
    verb = "bounds throughput" if shares[part] > SATURATED else "is the busiest part"
    return f"{part} {verb} ({listed})"


def _measured(trace: Trace) -> pd.DataFrame:
    """Rows between the first server's last update of warm-up and its last of all."""
    rows = trace.rows
    ends_s = rows[(rows["rank"] == 0) & (rows["activity"] == "update")]["end_s"].sort_values().to_numpy()
    first = trace.header.warmup * trace.header.updates_per_step
    start_s = ends_s[first - 1] if first else 0.0
    return rows[(rows["start_s"] >= start_s) & (rows["end_s"] <= ends_s[-1])]


def _busiest(seconds: pd.Series, works: bool, activities: tuple[str, ...]) -> float:
    chosen = seconds[seconds.index.get_level_values(2).isin(activities) & (seconds.index.get_level_values(0) == works)]
    return float(chosen.groupby(level=1).sum().max()) if len(chosen) else 0.0


def _ports_s(rows: pd.DataFrame, scenario: Scenario) -> dict[int, float]:
    """Seconds that the busier direction of each host's port is taken; messages within a host take none.

    A port that needs credit is taken while it earns it.
    """
    host = np.array(scenario.hosts)
    moved = rows[rows["activity"].isin(["send", "receive"])]
    here, there = host[moved["rank"].to_numpy(int)], host[moved["peer"].to_numpy(int)]
    link = scenario.network
    sizes_bytes = moved["bytes"].to_numpy(float)
    credit_s = sizes_bytes / (link.sustained_bytes_per_s or np.inf)  # in which a port earns the credit for a message
    needs_s = np.stack([link.occupancy_s(sizes_bytes), credit_s])
    found: dict[int, float] = {}
    for index in set(here):
        ways = [
            needs_s[:, (here == index) & (there != index) & (moved["activity"] == way).to_numpy()].sum(axis=1).max()
            for way in ("send", "receive")
        ]
        found[index] = float(max(ways))
    return found
