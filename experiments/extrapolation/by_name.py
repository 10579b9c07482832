"""Several hosts of GPUs from the step of one GPU, all links known by name: answers where nobody measured more than one GPU.

The rows of published tables that have a step of one GPU and name their network. All are asked of `simulate` as rings of
DistributedDataParallel, whatever library summed. None of them is fitted. A cluster counts once: its sources share its links.

What a network's name is worth (sim.platform.named_links.LINK) was learned on the T4 hosts, on TensorFlow's page and on shaped links, and
what a link within a host is (LOCAL) on T4 and V100 hosts of PCIe. For all other clusters of this list both are predictions.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from experiments import figures
from experiments.extrapolation import sizes, t4
from experiments.extrapolation.one_host import NVLINK, PCIE, Asked, Pair, asked

NVLINK_A100 = "NVLink 3"
MOST = 128  # GPUs: larger rings take long, and the page has the same three models
TABLES = {  # sizes/SOURCE.csv: cluster, link within a host, network
    "tensorflow_page": ("TensorFlow's page, p2.8xlarge", PCIE, "10 Gbit/s"),
    "horovod_page": ("Horovod's page", PCIE, "25 Gbit/s"),
    "p3_jeffwan": ("p3.16xlarge", NVLINK, "25 Gbit/s"),
    "p3_markmp": ("p3.16xlarge", NVLINK, "25 Gbit/s"),
    "p3_wskinner": ("p3.16xlarge", NVLINK, "25 Gbit/s"),
    "csc_puhti": ("Puhti", NVLINK, "100 Gbit/s"),
    "csc_mahti": ("Mahti", NVLINK_A100, "200 Gbit/s"),
    "pytorch_ddp": ("DGX V100 of PyTorch", NVLINK, "400 Gbit/s"),
}


def pairs() -> Iterator[Pair]:
    """All of them."""
    for name in t4.MODELS:
        yield from _of_table(
            "T4, g4dn.12xlarge", t4.MODELS[name] or ("53 M", 20), _few(t4.table(name)), PCIE, "50 Gbit/s"
        )
    for name, (cluster, local, network) in TABLES.items():
        alike = figures.table(f"sizes/{name}").fillna({"million_parameters": 0})
        for (model, *_), rows in alike[alike.summed_by == "allreduce"].groupby([*sizes.SERIES], sort=False):
            millions = rows.million_parameters.iloc[0]
            known = (f"{millions} M", sizes.LAYERS) if millions else model
            yield from _of_table(cluster, known, sizes.steps(rows[rows.minibatches == 1]), local, network)


def _few(rows: t4.Table) -> t4.Table:
    """The smallest and the largest batch, on full hosts and on one GPU."""
    full = (rows.gpus == 4 * rows.hosts) | (rows.gpus == 1)
    return rows.where(full & ((rows.batch == rows.batch.min()) | (rows.batch == rows.batch.max())))


def _of_table(cluster: str, model: str | tuple[str, int], rows: t4.Table, local: str, network: str) -> Iterator[Pair]:
    singles = rows.where(rows.gpus == 1)
    for hosts, gpus, _, batch, step_s, _ in zip(*rows[:6], strict=True):
        single = singles.step_s[singles.batch == batch]
        if hosts > 1 and gpus <= MOST and single.size:
            yield Pair(
                cluster, model, int(batch), int(gpus), local, float(single.mean()), float(step_s), int(hosts), network
            )


@cache
def answers() -> tuple[Asked, ...]:
    """Of all pairs."""
    return tuple(asked(pair) for pair in pairs())
