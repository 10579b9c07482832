"""The tests of a profile's own text, simulated with it: how far it is off."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibration.importers.nccl_tests import Measured
from calibration.nccl_fits import Fit, place
from sim.base.ranges import MOST_PARAMETERS
from sim.model.costs import Costs, Line
from sim.model.sizes import ITEM_BYTES
from sim.platform.cluster import Cluster

MOST_RANKS, SIZES = 256, 5  # that are simulated: of ranks at most, and of sizes of each test
STEPS = 2


def added(made: Cluster, tests: list[Measured], found: Fit, sum_s_per_byte: float) -> Cluster:
    """The profile with a note on its own rows; unchanged where there are too many ranks to simulate them in no time."""
    off = [one for test in tests for one in _off(made, test, found, sum_s_per_byte)]
    if not off:
        return made
    rows = f"{len(off)} of the rows are" if len(off) > 1 else "one of the rows is"
    return made.known(f"simulated with the profile, {rows} off by {min(off):+.1%} to {max(off):+.1%}")


def _off(made: Cluster, test: Measured, found: Fit, sum_s_per_byte: float) -> list[float]:
    """Simulated over measured seconds, less 1, of some sizes of a test, the smallest and the largest among them."""
    measured_s, simulated_s = seconds_of(
        made, test, lambda size: found.algorithms[int(size > found.until_bytes)], sum_s_per_byte
    )
    return (simulated_s / measured_s - 1).tolist()


def seconds_of(
    made: Cluster, test: Measured, algorithm: Callable[[float], str], sum_s_per_byte: float
) -> tuple[np.ndarray, np.ndarray]:
    """Measured and simulated seconds of some sizes of a test, the smallest and the largest among them; of none on too many ranks.

    Args:
        algorithm: that sums so many bytes.
    """
    ranks, (hosts, each) = len(test.hosts), place(test)
    able = np.flatnonzero((test.sizes >= ITEM_BYTES * ranks) & (test.sizes <= ITEM_BYTES * MOST_PARAMETERS))
    if ranks > MOST_RANKS or hosts * each != ranks or not len(able):
        return np.zeros(0), np.zeros(0)
    rows = able[np.unique(np.linspace(0, len(able) - 1, SIZES).round().astype(int))]
    like = made.hosts[0].model_copy(update={"count": hosts, "slots": each})
    costs = {"summed": Costs(reduce=Line(slope_s=sum_s_per_byte))}
    where = made.model_copy(update={"hosts": (like,), "provenance": None, "costs": costs})
    return test.seconds[rows], np.array(
        [_simulated_s(where, ranks, size, algorithm(size)) for size in test.sizes[rows]]
    )


def _simulated_s(where: Cluster, ranks: int, size_bytes: float, algorithm: str) -> float:
    """Seconds of one allreduce of so many bytes."""
    from sim import protocols
    from sim.job.scenario import Scenario
    from sim.model.workload import Workload
    from sim.simulation import simulate

    summed = Workload(name="summed", parameters=round(size_bytes / ITEM_BYTES), layers=1, costs=Costs())
    job = Scenario(protocols.make("allreduce", [f"algorithm={algorithm}"]), summed, ranks, STEPS, 0, 1, where)
    return float(simulate(job, replications=1).step_s.mean())
