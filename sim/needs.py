"""What simulations may take here: cores, memory, and a user's patience."""

from __future__ import annotations

import math
import os
import resource
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sim.base.errors import WrongSetting

if TYPE_CHECKING:
    from sim.job.scenario import Scenario

ROW_BYTES = 40  # of a row of a sparse variable: how often it is drawn
SHARE = 0.5  # of the machine's memory that may be taken
LEAST_PATIENCE_S, PATIENCE_S, TIMES = 30.0, 120.0, 10  # that a user is assumed to wait, by times of what was said
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of a container


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def most_bytes() -> float:
    """Bytes of memory that a simulation may take on this machine."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return SHARE * min(_bytes_here(), math.inf if limit == resource.RLIM_INFINITY else limit)


@cache
def _bytes_here() -> int:
    """Bytes of the machine's memory, or of the container's."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    said = (path.read_text().strip() for path in map(Path, LIMITS) if path.exists())
    return min(found + [int(text) for text in said if text.isdecimal()])


def patience_s(within_s: float) -> float:
    """Seconds that the least of an answer may take, where one is wanted within so many; of the processor, where it is ended."""
    return max(LEAST_PATIENCE_S, min(TIMES * within_s, PATIENCE_S), within_s)


def check_rows(scenario: Scenario) -> None:
    """Refuse sparse variables of which it would take more memory than there is to know how many rows are drawn.

    Raises:
        WrongSetting: naming the workload.
    """
    served = scenario.served if scenario.traffic.sends_rows else ()
    rows = sum(one.rows.of or one.shape[0] for one in (*served, *scenario.gathered_variables) if one.rows)
    size_bytes, most = ROW_BYTES * rows, most_bytes()
    if size_bytes > most:
        takes = f"about {size_bytes / 1e9:,.1f} GB of memory, and {most / 1e9:,.1f} GB are the most here"
        raise WrongSetting("--workload", scenario.workload.name, f"smaller variables: their rows would take {takes}")
