"""TensorFlow's benchmark page of 2017: the cost of distribution is nearly constant for each step, whatever the model computes.

One GPU computes a step as measured. A step of more GPUs is longer by a constant and by the bytes of a port. On h hosts these are the
parameters of other hosts, (h - 1) / h of all, twice (parameters come, gradients go). On one host of n GPUs, of a page of one host, they
pass a GPU's port, (n - 1) / n. Where hosts of 8 GPUs are compared with one such host, what passes within a host is in the constant.
Two constants are fitted, and their covariance is in the intervals.
Synthetic and real data, 32 and 64 images a GPU and step.

What makes ResNet-50 slow from four hosts on (2 hosts: as fast as one; 4 and 8: 0.1 s longer, with 32 as with 64 images) was looked for
and not found. It is neither the bytes of the busiest server (variables in turn, on as many servers as the page says), which are fewer
than InceptionV3's, nor the number of variables, nor the slowest of several hosts, which would be in proportion to computing.

Source: TensorFlow documentation, performance benchmarks, 2017.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from experiments.extrapolation.held import Held, doublings
from sim.base.interval import LEVEL, of_normal
from sim.model.sparse_rows import ITEM_BYTES

# (platform, data, images a GPU, model): images/s by number of GPUs
GPUS = (1, 2, 4, 8)
ONE_HOST = {
    ("DGX-1", "synthetic", 64, "inception_v3"): (142, 284, 569, 1131),
    ("DGX-1", "synthetic", 64, "resnet50"): (219, 422, 852, 1734),
    ("DGX-1", "real", 64, "inception_v3"): (142, 278, 551, 1079),
    ("DGX-1", "real", 64, "resnet50"): (218, 425, 853, 1630),
    ("DGX-1", "synthetic", 32, "inception_v3"): (128, 259, 520, 995),
    ("DGX-1", "synthetic", 32, "resnet50"): (195, 368, 768, 1485),
    ("DGX-1", "real", 32, "inception_v3"): (130, 257, 507, 966),
    ("DGX-1", "real", 32, "resnet50"): (193, 369, 760, 1410),
    ("GCE K80", "synthetic", 64, "inception_v3"): (30.5, 57.8, 116, 227),
    ("GCE K80", "synthetic", 64, "resnet50"): (51.9, 99.0, 195, 387),
    ("GCE K80", "real", 64, "inception_v3"): (30.6, 58.4, 115, 225),
    ("GCE K80", "real", 64, "resnet50"): (51.2, 98.8, 194, 381),
    ("p2.8xlarge", "synthetic", 64, "inception_v3"): (30.8, 58.7, 117, 230),
    ("p2.8xlarge", "synthetic", 64, "resnet50"): (51.5, 98.0, 195, 384),
    ("p2.8xlarge", "real", 64, "inception_v3"): (30.5, 59.0, 118, 228),
    ("p2.8xlarge", "real", 64, "resnet50"): (51.3, 94.9, 188, 373),
}
# p2.8xlarge, distributed_replicated, synthetic data, 8 GPUs a host
GPUS_OF_HOSTS = (1, 8, 16, 32, 64)
SEVERAL_HOSTS = {
    ("p2.8xlarge", "synthetic", 64, "inception_v3"): (29.7, 229, 459, 902, 1783),
    ("p2.8xlarge", "synthetic", 64, "resnet50"): (52.4, 378, 751, 1388, 2744),
    ("p2.8xlarge", "synthetic", 32, "inception_v3"): (29.2, 219, 427, 820, 1608),
    ("p2.8xlarge", "synthetic", 32, "resnet50"): (48.4, 333, 667, 1180, 2315),
}
MOST_A_HOST = 8
HERE, BYTES_PER_S = "p2.8xlarge, 10 Gbit/s, TensorFlow's servers", 10e9 / 8


class Row(NamedTuple):
    """A rate of the page as seconds of a step, beside that of one GPU."""

    platform: str
    data: str
    batch: int
    model: str
    gpus: int
    step_s: float
    single_s: float
    several: bool

    @property
    def hosts(self) -> int:
        """Hosts, of 8 GPUs each."""
        return -(-self.gpus // MOST_A_HOST)

    @property
    def elsewhere_bytes(self) -> float:
        """Bytes of parameters and gradients through a port in a step: a host's, or a GPU's on a page of one host."""
        from sim.model import workload

        parts = self.hosts if self.several else self.gpus
        return 2 * ITEM_BYTES * workload.NAMED[self.model].parameters * (parts - 1) / parts

    @property
    def named(self) -> str:
        """In a table."""
        return f"{self.platform}, {self.data}, {self.model}, batch {self.batch}, {self.gpus} GPUs"


def rows(page: dict, gpus: Sequence[int]) -> list[Row]:
    """Those of more than one GPU."""
    several = gpus[-1] > MOST_A_HOST
    return [
        Row(platform, data, batch, model, number, batch * number / rate, batch / rates[0], several)
        for (platform, data, batch, model), rates in page.items()
        for number, rate in zip(gpus[1:], rates[1:], strict=True)
    ]


class Cost(NamedTuple):
    """The cost of distribution for a step.

    Args:
        step_s: seconds, whatever is computed.
        byte_s: seconds of a byte that passes a port between hosts.
        residual: of fitted rows, standard deviation of the logarithm of a step.
        covariance: of both constants, shape (2, 2).
        alone: each constant as if the other were 0, which neither is below.
        freedom: degrees of it that the rows left.
        hosts: the largest number that was fitted.
    """

    step_s: float
    byte_s: float
    residual: float
    covariance: np.ndarray
    alone: tuple[float, float]
    freedom: int
    hosts: int

    def predicted_s(self, row: Row) -> float:
        """Seconds of its step."""
        return row.single_s + self.step_s + self.byte_s * row.elsewhere_bytes

    def unknown(self, row: Row) -> float:
        """Deviation of the logarithm of its step: of fitted rows, and of the constants; a normal one as wide as Student's t of few rows."""
        from scipy.stats import t

        slopes, whole_s = np.array([1.0, row.elsewhere_bytes]), self.predicted_s(row)
        of_constants = np.sqrt(slopes @ self.covariance @ slopes) / whole_s
        furthest = np.abs(np.log((row.single_s + slopes * self.alone) / whole_s)).max()
        few = t.ppf((1 + LEVEL) / 2, self.freedom) / of_normal(1.0)
        return float(few * np.hypot(self.residual, min(of_constants, furthest)))

    def slower(self, row: Row, byte_s: float) -> float:
        """Deviation of the logarithm by which its step may take longer alone.

        Two hosts are one pair, and hide messages that more hosts may not hide. What passes a port besides may then take what it takes
        elsewhere.

        Args:
            byte_s: seconds of a byte as on other clusters.
        """
        if not self.hosts == 2 < row.hosts:
            return 0.0
        further = row.elsewhere_bytes - row._replace(gpus=self.hosts * MOST_A_HOST).elsewhere_bytes
        return float(np.log1p(further * max(0.0, byte_s - self.byte_s) / self.predicted_s(row)))


def fitted(seen: Sequence[Row]) -> Cost:
    """Both constants, of what steps take more than on one GPU; neither below 0."""
    from scipy.optimize import nnls

    design = np.array([[1.0, row.elsewhere_bytes] for row in seen]) / np.array([[row.step_s] for row in seen])
    scale = design.max(axis=0)
    longer = np.array([1 - row.single_s / row.step_s for row in seen])
    found, off = nnls(design / scale, longer)
    step_s, byte_s = (found / scale).tolist()
    freedom = max(1, len(seen) - len(found))
    residual = float(off) / freedom**0.5
    scaled = np.linalg.inv((design / scale).T @ (design / scale)) / np.outer(scale, scale)
    one, other = (float(column @ longer / (column @ column)) for column in design.T)
    return Cost(step_s, byte_s, residual, residual**2 * scaled, (one, other), freedom, max(row.hosts for row in seen))


def held_out() -> Iterator[Held]:
    """Several hosts by model and by number; one host by model and by number of GPUs."""
    several, one = rows(SEVERAL_HOSTS, GPUS_OF_HOSTS), rows(ONE_HOST, GPUS)
    yield from _by_model("several hosts", several)
    yield from _by_size("several hosts", several, 16)
    for platform in dict.fromkeys(row.platform for row in one):
        here = [row for row in one if row.platform == platform]
        yield from _by_model("one host", here)
        yield from _by_size("one host", here, 2)


def _by_model(where: str, page: list[Row]) -> Iterator[Held]:
    for model in ("resnet50", "inception_v3"):
        seen = [row for row in page if row.model != model]
        cost = fitted(seen)
        for row in page:
            if row.model == model:
                yield _held(f"{where}, {seen[0].model}, then {model}", row, cost, 0.0, row.single_s)


def _by_size(where: str, page: list[Row], up_to: int) -> Iterator[Held]:
    from experiments.extrapolation import links  # which reads this page, too

    seen = [row for row in page if row.gpus <= up_to]
    cost = fitted(seen)
    of_seen = {row[:4]: row.step_s for row in seen}  # the largest comes last
    byte_s = links.elsewhere(HERE) / BYTES_PER_S if cost.hosts > 1 else 0.0
    for row in page:
        if row.gpus > up_to:
            split = f"{where}, 1 to {up_to} GPUs, then more"
            held = _held(split, row, cost, doublings(row.gpus, up_to), of_seen[row[:4]])
            yield held._replace(slower=cost.slower(row, byte_s))


def _held(split: str, row: Row, cost: Cost, beyond: float, unchanged_s: float) -> Held:
    given = row.step_s, cost.predicted_s(row), cost.unknown(row), unchanged_s
    return Held("TensorFlow page", split, row.named, beyond, *given)
