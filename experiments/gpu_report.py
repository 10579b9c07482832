"""The tables of predicted against measured on a GPU, and its rates beside the catalogue's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments.kit import pages, report
from sim.base.interval import of_normal
from sim.model.nominal import TRAINING
from sim.model.workload import NAMED
from sim.platform.catalogue import gpu_of

if TYPE_CHECKING:
    from pandas import Series

    from experiments.kit.comparison import Comparison
    from sim.platform.cluster import Cluster
    from sim.recording.traces import Trace


def show(rows: list[Comparison], fits: list[Trace], cluster: Cluster, out: Path, fitted: str) -> None:
    """Every cell; errors by regime, protocol and model; partitions; rates; and what was `fitted`."""
    gpus = fits[0].header.details.get("gpus", [])
    pages.show(f"Device: {', '.join(gpus) or 'CPU, no GPU'}; JAX {fits[0].header.details['versions']['jax']}")
    pages.keep([report.record(row) for row in rows])
    pages.show(report.cells_table(rows))
    pages.show(report.groups_table(by_regime(rows, len(gpus)), "regime"))
    pages.show(report.groups_table(report.groups_of(rows), "protocol"))
    pages.show(report.groups_table(_by(rows, lambda row: row.cell.workload), "model"))
    pages.show(_costs(cluster, micro_batch_of(fits)))
    show_rates(fits, gpus)
    pages.show(f"Fitted: {fitted}. Tables, traces: {out}")


def by_regime(rows: list[Comparison], gpus: int) -> dict[str, list[Comparison]]:
    """Rows where sleeps dominate, where each worker has a GPU (or a core), and where they share."""
    import os

    several, what = (gpus, "GPU") if gpus else (os.cpu_count() or 1, "core")

    def regime(row: Comparison) -> str:
        if row.cell.stragglers != "none":
            return report.SLEEPS
        return f"a {what} for each worker" if row.cell.workers <= several else f"workers share a {what}"

    return _by(rows, regime)


def _by(rows: list[Comparison], key) -> dict[str, list[Comparison]]:
    return {name: [row for row in rows if key(row) == name] for name in dict.fromkeys(map(key, rows))}


def micro_batch_of(fits: list[Trace]) -> int:
    """Samples of a partition in the runs of amb."""
    return next(
        head.batch // int(head.settings["partitions"])
        for head in (t.header for t in fits)
        if "partitions" in head.settings
    )


def _costs(cluster: Cluster, samples: int):
    """What the profile learned that a CPU's has not, or has otherwise; of a turn of amb's loop, of so many samples."""
    headings = (
        "model",
        "floor\nms",
        "a sample\nus",
        "to device\nGB/s",
        "to host\nGB/s",
        "loop\nms",
        f"{samples} samples\nms",
        "as a turn\nms",
    )
    table = pages.table(f"Costs; switching {cluster.hosts[0].switching:.2f}", *headings)
    for name, costs in cluster.costs.items():
        rates = (1e-9 / line.slope_s if line.slope_s else np.inf for line in (costs.to_device, costs.to_host))
        table.add_row(
            name,
            f"{costs.compute.floor_s * 1e3:.2f}",
            f"{costs.compute.slope_s * 1e6:.2f}",
            *(f"{rate:.1f}" for rate in rates),
            f"{costs.loop_s * 1e3:.2f}",
            *(f"{line(samples) * 1e3:.2f}" for line in (costs.compute, costs.partition)),
        )
    return table


def show_rates(fits: list[Trace], gpus: list[str]) -> None:
    """What the first GPU reaches, of its peak, and beside the share that the catalogue has."""
    gpu = gpu_of(gpus[0]) if gpus else None
    if gpu is None:
        pages.show(f"No entry of the catalogue for {gpus[0] if gpus else 'a CPU'}: rates are compared with none")
        return
    reached, precision = gpu.reached(None), gpu.format_of(None)
    factor = np.exp(of_normal(reached.spread or 0.0))
    table = pages.table(
        f"Measured on {gpus[0]}, beside the catalogue's {gpu.name}, {precision}: share {reached.share:.2f}, within a factor {factor:.1f}",
        *("model", "batch", "samples/s", "share of peak", "over the catalogue's", "within"),
    )
    for name, batch, per_s in rates(fits):
        share = TRAINING * (NAMED[name].flops_per_sample or 0.0) * per_s / reached.peak
        off = share / (reached.share or 1.0)
        held = "yes" if 1 / factor <= off <= factor else "no"
        table.add_row(name, f"{batch:,}", f"{per_s:,.0f}", f"{share:.4f}", f"{off:.3f}", held)
    pages.show(table)


def rates(fits: list[Trace]) -> list[tuple[str, int, float]]:
    """Samples a second of computing alone, of one worker without sleeps, by model and batch: the median step."""
    found: dict[tuple[str, int], list[float]] = {}
    for trace in fits:
        head = trace.header
        if (head.protocol, head.workers, head.stragglers) == ("fmb", 1, "none"):
            found.setdefault((head.workload, head.batch), []).append(head.batch / float(computed(trace).median()))
    return [(name, batch, float(np.mean(several))) for (name, batch), several in sorted(found.items())]


def computed(trace: Trace) -> Series:
    """Seconds of each computation after the warm-up."""
    rows = trace.rows[(trace.rows["activity"] == "compute") & (trace.rows["step"] >= trace.header.warmup)]
    return rows["end_s"] - rows["start_s"]
