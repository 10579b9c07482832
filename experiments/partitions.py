"""Seconds a step against the number of partitions of a minibatch and their size, as T. Adikari's test_perf_partitions.py measures them.

One worker of the anytime minibatch goes through all of its partitions, however long that takes. Fitted: other minibatches, whole, in one
partition, in 16 and in 48. Predicted: 1 to 64 partitions. All runs share one launch in random order, and every cell runs twice.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from experiments.kit import pages
from experiments.kit.cells import fitted, measure, predict
from experiments.kit.comparison import Comparison
from experiments.reports import validate_report
from real.cells import Cell, fitted_cells, interleaved
from sim import reports
from sim.answers.outcome import of_trace
from sim.base.home import installed
from sim.base.progress import each

MODELS = {"toy_fc": ((384, 768), (256, 1024)), "toy_conv": ((48, 96), (32, 128))}  # minibatches fitted, and predicted
PARTITIONS = (1, 2, 4, 8, 16, 32, 64)
DEMO_MODELS, DEMO_PARTITIONS = ("toy_fc",), (1, 4, 16, 64)
FOREVER_S = 3600.0  # a limit that is never reached
STEPS, REPEATS, REPLICATIONS = 30, 2, 20
FITTED = "1 worker, other minibatches, whole, in 1, 16 and 48 partitions"
MANY = 48  # partitions that are fitted: how long a turn of the loop takes, besides its samples
MARKERS = "osD^"


def predicted_cells(demo: bool, seed: int) -> list[Cell]:
    """The predicted cells; a minibatch has no more partitions than samples."""
    models, partitions = (DEMO_MODELS, DEMO_PARTITIONS) if demo else (tuple(MODELS), PARTITIONS)
    return [
        _of(count, batch, workload=model, data=None, steps=STEPS, seed=seed)
        for model in models
        for batch in MODELS[model][1]
        for count in partitions
        if count <= batch
    ]


def fit_cells(demo: bool, seed: int) -> list[Cell]:
    """The fitted cells, of one worker."""
    cells: list[Cell] = []
    for model in DEMO_MODELS if demo else MODELS:
        job: dict = {"workload": model, "data": None, "steps": STEPS, "seed": seed}
        cells += fitted_cells(batches=MODELS[model][0], **job)
        cells += [_of(MANY, batch, **job) for batch in MODELS[model][0]]
    return [cell for cell in cells if cell.workers == 1 and cell.stragglers == "none"]


def _of(partitions: int, batch: int, **job) -> Cell:
    """One worker that goes through so many partitions."""
    settings = (f"time_limit_s={FOREVER_S:g}", f"partitions={partitions}")
    return Cell("amb", 1, batch, partitions=partitions, settings=settings, called=f"{partitions} partitions", **job)


def run(out: Path, seed: int = 0, demo: bool = False, resume: bool = False, report: str | None = None) -> None:
    """Run everything; print the table, write out/partitions.csv and out/partitions.png, and the page `report` if it is asked for."""
    fits, predicted = fit_cells(demo, seed), predicted_cells(demo, seed)
    runs = [(f"fit-{i}", cell, REPEATS) for i, cell in enumerate(fits)]
    runs += [(f"predict-{i}", cell, REPEATS) for i, cell in enumerate(predicted)]
    traces = measure(interleaved(runs, seed), out / "traces", resume=resume)
    names = [name for name in traces if name.startswith("fit")]
    cluster = fitted(names, out / "traces", out / "profile.toml")
    rows = [
        Comparison(
            cell,
            predict(cell, cluster, REPLICATIONS),
            [of_trace(traces[f"predict-{i}-{r}"]) for r in range(REPEATS)],
            scenario=cell.scenario(cluster),
        )
        for i, cell in enumerate(each(predicted, "simulating", label=lambda cell: cell.label))
    ]
    validate_report.write_csv(rows, out / "partitions.csv")
    figure(rows, out / "partitions.png")
    show(rows, out)
    if report:
        from experiments.reports.validate_page import validate_page

        command = f"python -m {installed('experiments.run')} partitions --seed {seed}{' --demo' * demo}"
        reports.write(report, validate_page("Seconds a step against partitions", rows, [], FITTED, command))


def by_minibatch(rows: list[Comparison]) -> dict[str, list[Comparison]]:
    """The rows of each model and minibatch, from few partitions to many."""
    found: dict[str, list[Comparison]] = {}
    for row in sorted(rows, key=lambda row: row.cell.partitions):
        found.setdefault(f"{row.cell.workload}, batch {row.cell.batch}", []).append(row)
    return dict(sorted(found.items()))


def slowdown(rows: list[Comparison]) -> tuple[float, float]:
    """The ratio of a step with the most partitions to one with the fewest, simulated and measured; rows of one minibatch."""
    return rows[-1].said() / rows[0].said(), rows[-1].real() / rows[0].real()


def show(rows: list[Comparison], out: Path) -> None:
    """A line a cell, then what many partitions cost."""
    table = pages.table("Seconds a step: simulated and measured", *HEADINGS)
    for name, of in by_minibatch(rows).items():
        for row in of:
            table.add_row(name, *_line(row))
    table.columns[0].justify, table.columns[0].no_wrap = "left", True
    pages.show(table)
    for name, of in by_minibatch(rows).items():
        simulated, real = slowdown(of)
        pages.show(
            f"{name}: {of[-1].cell.partitions} partitions take {simulated:.2f} times as long (measured: {real:.2f})"
        )
    found = validate_report.figures_of(rows)
    pages.show(
        f"Mean absolute error {found['step_error']:.1%}, noise floor {found['floor']:.1%}, "
        f"90 % intervals hold {found['covered']} of {found['of']} runs. Fitted: {FITTED}. Files: {out}"
    )


HEADINGS = (
    "minibatch",
    "partitions",
    "of samples",
    "step, ms",
    "90 %",
    "real, ms",
    "error",
    "floor",
    "us a sample",
    "real",
)


def _line(row: Comparison) -> list[str]:
    low_s, high_s = row.interval_s()
    a_sample = [f"{seconds * 1e6 / row.cell.batch:.1f}" for seconds in (row.said(), row.real())]
    return [
        str(row.cell.partitions),
        str(row.cell.batch // row.cell.partitions),
        f"{row.said() * 1e3:.2f}",
        f"{low_s * 1e3:.1f}-{high_s * 1e3:.1f}",
        f"{row.real() * 1e3:.2f}",
        f"{row.error():+.1%}",
        f"{row.floor:.1%}",
        *a_sample,
    ]


def figure(rows: list[Comparison], path: Path) -> None:
    """Left: seconds a step against partitions. Right: seconds a sample against the size of a partition. Lines are simulated."""
    drawing, (left, right) = pages.figure(1, 2, (11, 4.5))
    for number, (name, of) in enumerate(by_minibatch(rows).items()):
        counts = np.array([row.cell.partitions for row in of])
        batch, style = of[0].cell.batch, {"color": f"C{number}"}
        for axes, x, scale in ((left, counts, 1e3), (right, batch // counts, 1e6 / batch)):
            low, high = np.array([row.interval_s() for row in of]).T * scale
            axes.plot(x, [row.said() * scale for row in of], label=f"{name}: simulated", **style)
            axes.fill_between(x, low, high, alpha=0.15, lw=0, **style)
            marker = MARKERS[number % len(MARKERS)]
            axes.plot(x, [row.real() * scale for row in of], marker, mfc="none", label=f"{name}: measured", **style)
            axes.set(xscale="log", yscale="log")
    left.set(xlabel="partitions of a minibatch", ylabel="milliseconds a step")
    right.set(xlabel="samples of a partition", ylabel="microseconds a sample")
    left.legend(frameon=False, fontsize=7)
    pages.save(drawing, path)
