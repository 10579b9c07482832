"""Seconds a step against the number of partitions of a minibatch and their size, as T. Adikari's test_perf_partitions.py measures them.

One worker of the anytime minibatch goes through all of its partitions, however long that takes. Fitted: other minibatches, whole, in one
partition, in 16 and in 48. Predicted: 1 to 64 partitions. All runs share one launch in random order, and every cell runs twice.
"""

from __future__ import annotations

from pathlib import Path

from experiments.kit import pages, report
from experiments.kit.cells import Plan
from experiments.kit.comparison import Comparison
from real.cells import Cell, fitted_cells

MODELS = {"toy_fc": ((384, 768), (256, 1024)), "toy_conv": ((48, 96), (32, 128))}  # minibatches fitted, and predicted
PARTITIONS = (1, 2, 4, 8, 16, 32, 64)
FOREVER_S = 3600.0  # a limit that is never reached
STEPS, REPEATS, REPLICATIONS = 30, 2, 20
FITTED = "1 worker, other minibatches, whole, in 1, 16 and 48 partitions"
MANY = 48  # partitions that are fitted: how long a turn of the loop takes, besides its samples


def plan(seed: int) -> Plan:
    """One worker; a minibatch has no more partitions than samples."""
    fits, predicted = [], []
    for model, (known, asked) in MODELS.items():
        job: dict = {"workload": model, "data": None, "steps": STEPS, "seed": seed}
        fits += [one for one in fitted_cells(batches=known, **job) if one.workers == 1 and one.stragglers == "none"]
        fits += [_of(MANY, batch, **job) for batch in known]
        predicted += [_of(count, batch, **job) for batch in asked for count in PARTITIONS if count <= batch]
    return Plan(fits, predicted, REPEATS, REPEATS)


def _of(partitions: int, batch: int, **job) -> Cell:
    """One worker that goes through so many partitions."""
    settings = (f"time_limit_s={FOREVER_S:g}", f"partitions={partitions}")
    return Cell("amb", 1, batch, partitions=partitions, settings=settings, called=f"{partitions} partitions", **job)


def run(out: Path, seed: int = 0, resume: bool = False) -> None:
    """Run everything, and print the table."""
    chosen = plan(seed)
    traces, cluster = chosen.run(out, seed, resume), chosen.profile(out)
    show(chosen.compared(traces, lambda _: cluster, REPLICATIONS), out)


def by_minibatch(rows: list[Comparison]) -> dict[str, list[Comparison]]:
    """The rows of each model and minibatch, from few partitions to many."""
    found: dict[str, list[Comparison]] = {}
    for row in sorted(rows, key=lambda row: row.cell.partitions):
        found.setdefault(minibatch(row), []).append(row)
    return dict(sorted(found.items()))


def minibatch(row: Comparison) -> str:
    """A model and a minibatch in words."""
    return f"{row.cell.workload}, batch {row.cell.batch}"


def slowdown(rows: list[Comparison]) -> tuple[float, float]:
    """The ratio of a step with the most partitions to one with the fewest, simulated and measured; rows of one minibatch."""
    return rows[-1].said() / rows[0].said(), rows[-1].real() / rows[0].real()


COLUMNS = (
    ("minibatch", minibatch),
    ("partitions", lambda row: str(row.cell.partitions)),
    ("of samples", lambda row: str(row.cell.batch // row.cell.partitions)),
    ("step, ms", lambda row: f"{row.said() * 1e3:.2f}"),
    ("90 %", lambda row: "{:.1f}-{:.1f}".format(*(1e3 * end_s for end_s in row.interval_s()))),
    ("real, ms", lambda row: f"{row.real() * 1e3:.2f}"),
    ("error", lambda row: f"{row.error():+.1%}"),
    ("floor", lambda row: f"{row.floor:.1%}"),
    ("us a sample", lambda row: f"{row.said() * 1e6 / row.cell.batch:.1f}"),
    ("real", lambda row: f"{row.real() * 1e6 / row.cell.batch:.1f}"),
)


def show(rows: list[Comparison], out: Path) -> None:
    """A line a cell, then what many partitions cost."""
    pages.keep([report.record(row) for row in rows])
    groups = by_minibatch(rows)
    pages.show(
        pages.listed("Seconds a step: simulated and measured", COLUMNS, [row for of in groups.values() for row in of])
    )
    for name, of in groups.items():
        simulated, real = slowdown(of)
        pages.show(
            f"{name}: {of[-1].cell.partitions} partitions take {simulated:.2f} times as long (measured: {real:.2f})"
        )
    found = report.figures_of(rows)
    pages.show(
        f"Mean absolute error {found['step']:.1%}, noise floor {found['floor']:.1%}, "
        f"90 % intervals hold {found['covered']} of {found['of']} runs. Fitted: {FITTED}. Files: {out}"
    )
