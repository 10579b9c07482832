"""Steps of protocols that have no closed form, such as parameter servers': they are simulated, and linear around their constants.

All seconds of a job twice as long make its step twice as long. By Euler's theorem a step is therefore the sum of its seconds of computing,
and of a byte between and within hosts, each times the step's derivative by it. A fit counts these derivatives anew before each pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.scaling import replay
from calibration.scaling.fitting import BETWEEN, Before
from calibration.scaling.steps import Scaling
from calibration.scaling.table import Table
from sim.base.ranges import MOST_BYTES
from sim.model.costs import Costs, Line
from sim.model.workload import NAMED, Workload
from sim.platform.cluster import FREE, Cluster, Host, Link

FAR = 1e-2  # of a link's seconds, a change by which its derivative is told
WITHIN = BETWEEN._replace(start=0.5e-9)  # of a byte, which passes two processes of a host
HELD = {"both_ways": Before(1.0, 1.0, 1.0)} | dict.fromkeys(("contention", "round_s"), Before(0.0, 0.0, 0.0))


@dataclass(frozen=True)
class Simulated(Scaling):
    """The constants of a protocol whose steps are simulated; servers have hosts of their own, or are on the workers'.

    Args:
        model: that is trained.
        protocol: by its name.
    """

    model: Workload = NAMED["mlp"]
    protocol: str = "ps-sync"

    def before(self, rows: Table, between: Before) -> dict[str, Before]:
        """Servers and workers that have hosts of their own tell of the link between them."""
        apart = (rows.hosts > 1).any() or rows.beside is None or not rows.beside.all()
        within = WITHIN if (rows.most > 1).any() else HELD["round_s"]
        return HELD | {"between_s": between if apart else HELD["round_s"], "within_s": within}

    def calls(self, rows: Table) -> Any:
        """The derivatives of a step by seconds of computing, and of a byte between and within hosts, shape (3, rows)."""
        here_s = self._simulated_s(rows)
        found = [
            (self._simulated_s(rows, **{name: FAR}) - here_s) / (FAR * value)
            if (value := getattr(self, name))
            else 0 * here_s
            for name in ("between_s", "within_s")
        ]
        between, within = (np.maximum(0.0, one) for one in found)
        rest_s = np.maximum(0.0, here_s - between * self.between_s - within * self.within_s)
        told = np.stack([rest_s / (self.computing_s(rows) + self.waits_s(rows)), between, within])
        return told * here_s / self.step_s(rows, told)

    def messages_s(self, rows: Table, calls: Any = None) -> np.ndarray:
        """Seconds in which the gradients pass a link once, shape (rows,)."""
        return self.gradient_bytes * np.where(rows.hosts > 1, self.between_s, self.within_s or self.between_s)

    def step_s(self, rows: Table, calls: Any = None) -> np.ndarray:
        """Seconds of a step, shape (rows,); see Scaling."""
        if calls is None:
            return self._simulated_s(rows)
        of_computing, of_between, of_within = calls
        computing_s = of_computing * (self.computing_s(rows) + self.waits_s(rows))
        return computing_s + of_between * self.between_s + of_within * self.within_s

    def _simulated_s(self, rows: Table, **slower: float) -> np.ndarray:
        """Seconds of simulated steps, shape (rows,).

        Args:
            slower: by constant of a link, the share by which it is longer.
        """
        links = {name: getattr(self, name) * (1 + slower.get(name, 0.0)) for name in ("between_s", "within_s")}
        found, whole = [], rows._replace(minibatches=np.ones(rows.size))
        model = self.model.model_copy(update={"reading": None})
        for row, compute_s in enumerate(self.computing_s(rows) + self.waits_s(rows)):
            costs = {self.model.name: Costs(compute=Line(base_s=float(compute_s)))}
            network, local = map(link_of, links.values())
            place = Cluster(name="table", hosts=(Host(),), network=network, local=local, costs=costs)
            found += replay.steps_s(place, model, self.protocol, (), whole.where(np.array([row])))
        return np.array(found)


def link_of(byte_s: float) -> Link:
    """One that takes so long for a byte, and nothing else."""
    return FREE if byte_s * MOST_BYTES <= 1 else FREE.model_copy(update={"bandwidth_bytes_per_s": 1 / byte_s})
