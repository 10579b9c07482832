"""One host of several GPUs, from the step of one GPU: nothing was measured of the links within the host, or of what its GPUs share.

The step of one GPU is given, links are known by name, and the step of several GPUs is asked of `simulate`. Its interval contains two
unknowns: how much longer a byte takes than the link's name says (LOCAL), and how much longer a step takes where
GPUs share a host (HOST). Both are learned here, a source counting once. Gavel's Transformer and language model were in no choice.

Sources: TensorFlow's page and the T4 tables (this folder); Gavel (experiments/figures); pairs of one GPU and one host in issues of
horovod/horovod (416, 889, 288) and aws-samples/deep-learning-models (2), 2018 and 2019.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from math import log
from typing import NamedTuple

import numpy as np

from calibration.scaling.fitting import ANY
from experiments import figures
from experiments.extrapolation import sizes, t4
from sim import protocols
from sim.answers.quantities import END, WITHIN
from sim.base.interval import LEVEL, of_normal
from sim.job.scenario import Scenario
from sim.model import workload
from sim.model.sizes import ITEM_BYTES
from sim.platform import catalogue
from sim.platform.cluster import Cluster
from sim.platform.named_links import Spread
from sim.simulation import simulate

PCIE, NVLINK, NVLINK_P100 = "PCIe 3 x16", "NVLink 2", "NVLink 1"
PCIE_BYTES_PER_S = 12e9  # sim/platform/catalogue/links.toml
LATENCY_S = 30e-6  # nominal, as the catalogue's
STEPS = 1
GPUS = 8  # of the hosts of TensorFlow's page
HELD = ("Transformer", "LM")  # of Gavel: in no choice
GAVEL: dict[
    str, str | tuple[str, int]
] = {  # parameters and layers; those of the last two are not published, and these are usual ones
    "ResNet-18": "resnet18_cifar",
    "ResNet-50": "resnet50",
    "Transformer": ("60 M", 100),
    "LM": ("14 M", 10),
}


DIRECT = {  # bytes a second of links within a host that no PCIe is as fast as, and their names
    "A100, NVIDIA/nccl-tests issue 149": ("NVLink 3", 200e9),  # bus bandwidth of all_reduce_perf, as of the next three
    "H100, NVIDIA/nccl-tests issue 212, rings": ("NVLink 4", 370e9),
    "H200, NVIDIA/nccl-tests issue 272": ("NVLink 4", 475e9),
    "B200, NVIDIA/nccl issue 1807": ("NVLink 5", 830e9),
    "GB200, Azure/AI-benchmarking-guide issue 7": ("NVLink 5", 770e9),  # copies from GPU to GPU
}


class Pair(NamedTuple):
    """The step of one GPU, and that of several in one host.

    Args:
        model: of the zoo, or parameters and layers.
        link: within the host, by its name.
        single_s, step_s: seconds.
        hosts, network: and the rate by which their network is called.
    """

    source: str
    model: str | tuple[str, int]
    batch: int
    gpus: int
    link: str
    single_s: float
    step_s: float
    hosts: int = 1
    network: str = ""

    @property
    def workload(self) -> workload.Workload:
        """The model, with the step of one GPU as it was measured."""
        table: dict[str, object] = {}
        if isinstance(self.model, str):
            table["variables"] = workload.NAMED[self.model].variables
        else:
            table["parameters"], table["layers"] = self.model
        step = {"time": f"{self.single_s!r} s", "batch": self.batch}
        return workload.Workload.model_validate({"name": "one GPU's step", "step": step} | table)


ISSUES = (
    Pair("horovod 416, V100, PCIe", "resnet101", 64, 4, PCIE, 64 / 202.78, 4 * 64 / 650.92),
    Pair("horovod 889, V100, PCIe", "resnet50", 64, 4, PCIE, 1 / 3.81, 1 / 2.62),
    Pair("horovod 288, V100, NVLink", "resnet50", 128, 4, NVLINK, 128 / 641, 4 * 128 / 2380),
    Pair("aws-samples 2, p3.16xlarge", "resnet50", 256, 2, NVLINK, 256 / 740, 2 * 256 / 1481.3),
    Pair("aws-samples 2, p3.16xlarge", "resnet50", 256, 8, NVLINK, 256 / 740, 8 * 256 / 5000),
)


def pairs() -> list[Pair]:
    """All of them."""
    return [*_tensorflow(), *ISSUES, *_t4(), *_gavel(PCIE), *_gavel(NVLINK)]


def _tensorflow() -> Iterator[Pair]:
    """The largest hosts of TensorFlow's page, synthetic data."""
    for one in sizes.of_source("tensorflow_page", figures.table("sizes/tensorflow_page")):
        (system, _), rows = one.called.removeprefix(f"{one.model}, ").split(", "), one.rows
        platform, _, data = system.rpartition(" ")
        for single, whole in zip(np.flatnonzero(rows.gpus == 1), np.flatnonzero(rows.gpus == GPUS), strict=True):
            if data == "synthetic":
                link = NVLINK_P100 if platform == "DGX-1" else PCIE
                seconds = rows.step_s[[single, whole]].tolist()
                yield Pair(f"TensorFlow's page, {platform}", one.model, int(rows.batch[whole]), GPUS, link, *seconds)


def _t4() -> Iterator[Pair]:
    """The smallest, a middle and the largest batch of each model, on 4 GPUs."""
    for name, model in t4.MODELS.items():
        rows = t4.table(name)
        one = rows.where(rows.hosts == 1)
        batches = np.unique(one.batch)
        for batch in batches[[0, len(batches) // 2, -1]].tolist():
            single, four = (float(one.step_s[(one.batch == batch) & (one.gpus == gpus)][0]) for gpus in (1, 4))
            yield Pair("T4, PCIe (Pollux)", model or ("53 M", 20), int(batch), 4, PCIE, single, four)


def _gavel(link: str) -> Iterator[Pair]:
    found = figures.table("v100_gavel")
    here = found[found.placement == "one host"]
    rates = {(model, batch, gpus): rate for _, model, batch, gpus, rate in here.itertuples(index=False)}
    for (model, batch, gpus), rate in rates.items():
        if gpus > 1 and model in GAVEL:
            held = ", in no choice" if model in HELD else ""
            source = f"Gavel, V100, as if {link}{held}"
            yield Pair(source, GAVEL[model], batch, gpus, link, 1 / rates[model, batch, 1], gpus / rate)


class Asked(NamedTuple):
    """Seconds that are predicted, with their interval.

    Args:
        link: standard deviation of their logarithm that the name of the link within a host makes.
    """

    pair: Pair
    said_s: float
    low_s: float
    high_s: float
    link: float

    @property
    def off(self) -> float:
        """Logarithm of measured over predicted seconds."""
        return log(self.pair.step_s / self.said_s)

    @property
    def held(self) -> bool:
        """Whether the interval holds what was measured."""
        return self.low_s <= self.pair.step_s <= self.high_s


def asked(pair: Pair) -> Asked:
    """The answer of the simulator, without noise of steps."""
    each = pair.gpus // pair.hosts
    table: dict[str, object] = {"hosts": [{"count": pair.hosts, "cores": each, "gpus": each}], "local": pair.link}
    if pair.network:
        table["network"] = {"bandwidth_bytes_per_s": pair.network, "latency_s": LATENCY_S, "named": True}
    place = Cluster.model_validate(table)
    text = protocols.make("ddp")
    job = Scenario(text, pair.workload, pair.gpus, STEPS, 1, batch=pair.batch, cluster=place).without_stragglers()
    found, samples = simulate(job, replications=2), pair.batch * pair.gpus
    low, high = found.interval or (math.nan, math.nan)
    link = sum(found.outcome.ends.get(WITHIN, (0.0, 0.0))) / (2 * END)
    return Asked(pair, samples / found.samples_per_s, samples / high, samples / low, link)


@cache
def answers() -> tuple[Asked, ...]:
    """Of all pairs."""
    return tuple(map(asked, pairs()))


def sources(found: Sequence[Asked]) -> dict[str, list[Asked]]:
    """The answers of each source."""
    return {
        name: [one for one in found if one.pair.source == name]
        for name in dict.fromkeys(one.pair.source for one in found)
    }


def learned(found: Sequence[Asked]) -> Spread:
    """HOST: the logarithm of measured over predicted seconds of one more source; a normal one as wide as Student's t of so few.

    Without the variance that the names of links make, which intervals have besides. Rows that are held out, and Gavel's by another link
    again, are left out.
    """
    from scipy.stats import t

    used = [of for name, of in sources(found).items() if not name.endswith((NVLINK, "in no choice"))]
    offs = [[one.off for one in of] for of in used]
    means = np.array([np.mean(of) for of in offs])
    within = float(np.mean([np.var(of, ddof=1) for of in offs if len(of) > 1]))  # a single row tells nothing of it
    of_links = float(np.mean([np.mean([one.link**2 for one in of]) for of in used]))
    deviation = max(0.0, float(means.var(ddof=1)) * (1 + 1 / len(means)) + within - of_links) ** 0.5
    few = t.ppf((1 + LEVEL) / 2, len(means) - 1) / of_normal(1.0)
    return Spread(float(means.mean()), float(few * deviation))


def links() -> dict[str, float]:
    """Times as long as a byte takes over its time by the link's name: of hosts whose GPUs have PCIe, by the messages that do not hide."""
    fits = [t4.fitted(name, t4.table(name), ANY).within_s * PCIE_BYTES_PER_S for name in t4.MODELS]
    found = {"T4, PCIe (Pollux)": float(np.exp(np.log(fits).mean()))}
    for pair in ISSUES:
        if pair.link == PCIE:
            passed = 2 * (pair.gpus - 1) / pair.gpus * ITEM_BYTES * pair.workload.parameters
            hidden_s = 2 / 3 * pair.single_s  # back-propagation
            found[pair.source] = (hidden_s + pair.step_s - pair.single_s) * PCIE_BYTES_PER_S / passed
    return found


def direct() -> dict[str, float]:
    """The same of links that no PCIe is as fast as, by tests of them alone."""
    return {
        source: catalogue.find("links", link).bandwidth_bytes_per_s / rate for source, (link, rate) in DIRECT.items()
    }
