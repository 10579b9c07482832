"""The table and the figure of the benchmark: throughput, scaling efficiency, and what real data cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments.kit import pages
from sim.base.files import write_whole

if TYPE_CHECKING:
    from experiments.reports.benchmark_rows import Row

HEADINGS = (
    "workers",
    "servers",
    "synthetic\nsamples/s",
    "\nspread",
    "\nscaling",
    "real\nsamples/s",
    "\nspread",
    "\nscaling",
)
HEADINGS += ("lost to input\nmedian (range)", "input, ms\nsynth. real")
FURTHER = ("predicted\nsamples/s", "\nerror", "\nscaling")


def best(rows: list[Row]) -> dict[int, Row]:
    """The row with the fastest number of servers on synthetic data, for each number of workers."""
    return {
        workers: max((row for row in rows if row.workers == workers), key=lambda row: row.synthetic.median)
        for workers in sorted({row.workers for row in rows})
    }


def efficiencies(row: Row, alone: Row) -> dict[str, float]:
    """Throughput over the number of workers times that of one, by synthetic, real, and predicted if it was."""
    found = {name: getattr(row, name).median / getattr(alone, name).median for name in ("synthetic", "real")}
    if row.predicted is not None:
        found["predicted"] = row.predicted_samples_per_s / alone.predicted_samples_per_s
    return {name: ratio / row.workers for name, ratio in found.items()}


def show(rows: list[Row], caption: str) -> None:
    """Every number of servers, the best of each number of workers marked."""
    from rich.table import Table

    table = Table(
        box=None, collapse_padding=True, pad_edge=False, header_style="bold", caption=caption, caption_justify="left"
    )
    for name in HEADINGS + (FURTHER if rows[0].predicted is not None else ()):
        table.add_column(name, justify="right", no_wrap=True)
    winners = best(rows)
    for row in rows:
        is_best = row is winners[row.workers]
        table.add_row(*_line(row, winners[1], is_best), style="bold" if is_best else None)
    pages.show(table)
    pages.show("*: the number of servers that is fastest on synthetic data. Scaling: efficiency against 1 worker.")
    pages.show("Lost to input: 1 - real / synthetic, repeat by repeat. Spread: of the repeats, over their median.")


def _line(row: Row, alone: Row, is_best: bool) -> list[str]:
    shares, lost = efficiencies(row, alone), row.input_cost
    cells = [str(row.workers), f"{'*' if is_best else ''}{row.servers}"]
    for name in ("synthetic", "real"):
        runs = getattr(row, name)
        cells += [f"{runs.median:,.0f}", f"{runs.spread:.0%}", f"{shares[name]:.1%}"]
    cells.append(f"{np.median(lost):+.1%} ({lost.min() * 100:+.0f} to {lost.max() * 100:+.0f})")
    cells.append(f"{np.median(row.synthetic.input_s) * 1e3:.2f} {np.median(row.real.input_s) * 1e3:.2f}")
    if row.predicted is not None:
        cells += [f"{row.predicted_samples_per_s:,.0f}", f"{row.error:+.0%}", f"{shares['predicted']:.1%}"]
    return cells


def write_csv(rows: list[Row], path: Path) -> None:
    """One line a number of workers and servers; samples/s of every repeat, shares, seconds."""
    import pandas as pd

    winners = best(rows)
    table = pd.DataFrame(_record(row, winners) for row in rows)
    write_whole(path, lambda temporary: table.to_csv(temporary, index=False))


def _record(row: Row, winners: dict[int, Row]) -> dict:
    record = {"workers": row.workers, "servers": row.servers, "best": row is winners[row.workers]}
    for name in ("synthetic", "real"):
        runs = getattr(row, name)
        record |= {f"{name}_samples_per_s": runs.median, f"{name}_spread": runs.spread}
        record |= {f"{name}_samples_per_s_{i}": speed for i, speed in enumerate(runs.samples_per_s)}
        record[f"{name}_input_s"] = np.median(runs.input_s)
    record["lost_to_input"] = np.median(row.input_cost)
    record |= {f"{name}_efficiency": share for name, share in efficiencies(row, winners[1]).items()}
    if row.predicted is not None:
        record |= {"predicted_samples_per_s": row.predicted_samples_per_s, "error": row.error}
    return record


def figure(rows: list[Row], path: Path) -> None:
    """Throughput with the best number of servers beside ideal scaling, and throughput by number of servers."""
    drawing, (left, right) = pages.figure(1, 2, (11, 4.5))
    _draw_scaling(left, best(rows))
    for workers in sorted({row.workers for row in rows}):
        mine = [row for row in rows if row.workers == workers]
        _draw(
            right,
            [row.servers for row in mine],
            [row.synthetic for row in mine],
            label=f"{workers} worker{'s' * (workers > 1)}",
        )
    right.set(xlabel="servers", ylabel="samples/s, synthetic data", title="Number of servers", ylim=(0, None))
    for axes in (left, right):
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.legend(frameon=False)
    pages.save(drawing, path)


def _draw_scaling(axes, winners: dict[int, Row]) -> None:
    counts, chosen = list(winners), list(winners.values())
    axes.plot(counts, np.array(counts) * winners[1].synthetic.median, color="black", ls="--", lw=0.8, label="ideal")
    _draw(axes, counts, [row.synthetic for row in chosen], label="synthetic data")
    _draw(axes, counts, [row.real for row in chosen], label="real data")
    if chosen[0].predicted is not None:
        axes.plot(counts, [row.predicted_samples_per_s for row in chosen], "kx", label="predicted")
    axes.set(xlabel="workers", ylabel="samples/s", title="Best number of servers", ylim=(0, None))


def _draw(axes, x: list[int], runs: list, label: str) -> None:
    """Medians, and the range of the repeats."""
    middle = np.array([r.median for r in runs])
    ends = np.array([(r.samples_per_s.min(), r.samples_per_s.max()) for r in runs]).T
    axes.errorbar(x, middle, yerr=np.abs(ends - middle), fmt="o-", ms=4, capsize=2, label=label)
