"""Tests of nccl-tests, simulated with a profile."""

from __future__ import annotations

import numpy as np

from calibration.importers.nccl_tests import Measured
from calibration.nccl_fits import place
from sim.base.ranges import MOST_PARAMETERS
from sim.model.costs import Costs, Line
from sim.model.sizes import ITEM_BYTES
from sim.platform.cluster import Cluster

MOST_RANKS, SIZES = 256, 5  # that are simulated: of ranks at most, and of sizes of each test
STEPS = 2


def seconds_of(made: Cluster, test: Measured, sum_s_per_byte: float) -> tuple[np.ndarray, np.ndarray]:
    """Measured and simulated seconds of some sizes of a test, the smallest and the largest among them; of none on too many ranks."""
    ranks, (hosts, each) = len(test.hosts), place(test)
    able = np.flatnonzero((test.sizes >= ITEM_BYTES * ranks) & (test.sizes <= ITEM_BYTES * MOST_PARAMETERS))
    if ranks > MOST_RANKS or hosts * each != ranks or not len(able):
        return np.zeros(0), np.zeros(0)
    rows = able[np.unique(np.linspace(0, len(able) - 1, SIZES).round().astype(int))]
    like = made.hosts[0].model_copy(update={"count": hosts, "slots": each})
    costs = {"summed": Costs(reduce=Line(slope_s=sum_s_per_byte))}
    where = made.model_copy(update={"hosts": (like,), "provenance": None, "costs": costs})
    simulated_s = [_simulated_s(where, ranks, size) for size in test.sizes[rows]]
    return test.seconds[rows], np.array(simulated_s)


def _simulated_s(where: Cluster, ranks: int, size_bytes: float) -> float:
    """Seconds of one allreduce of so many bytes."""
    from sim import protocols
    from sim.job.scenario import Scenario
    from sim.model.workload import Workload
    from sim.simulation import simulate

    summed = Workload(name="summed", parameters=round(size_bytes / ITEM_BYTES), layers=1, costs=Costs())
    job = Scenario(protocols.make("allreduce", ["algorithm=ring"]), summed, ranks, STEPS, 0, 1, where)
    return float(simulate(job, replications=1).step_s.mean())
