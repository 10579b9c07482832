"""Decisions, not errors: would the predictions have picked the faster of two measured configurations, and is P(target) calibrated?

Published: anytime and fixed minibatches on 10 EC2 machines (experiments.published), the systems of Parallax's figure
(experiments.parallax), and transports of 16 GPUs (experiments.allreduce). At hand: what validate, servers and collectives have left in
the folder of results. Pairs that were both fitted are left out, and so are those that differ by less than the noise: of repeats, or of
reading a figure; of published tables without either it is taken to be 2 %.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.kit import pages
from experiments.kit.choices import Choice, Pair, pairs, planted, reliability
from sim.base.errors import WrongSetting
from sim.base.progress import Progress

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

LEFT = ("validate", "servers", "collectives")  # experiments that leave a table of cells
PUBLISHED_NOISE = 0.02
MOST_WRONG = 20  # pairs that are listed


def run(out: Path, seed: int = 0) -> None:
    """Print the pairs by where they are from, those that are picked wrong, and the reliability of P(target)."""
    with Progress("simulating"):
        choices = [*published(seed), *at_hand(out.parent)]
    pages.show(*tables(choices))


def tables(choices: list[Choice]) -> Iterator[Table | str]:
    """What is printed."""
    found = pairs(choices)
    yield _pairs(found)
    wrong = [pair for pair in found if not pair.right]
    yield from (f"  wrong: {pair}" for pair in wrong[:MOST_WRONG])
    if len(wrong) > MOST_WRONG:
        yield f"  and {len(wrong) - MOST_WRONG} more"
    targets = planted(choices)
    if not targets:
        yield "P(target): no runs with intervals at hand; validate, servers and collectives leave some"
        return
    table = pages.table(
        "Targets between measured throughputs", "P(target)", "targets", "mean P", "met", "standard error"
    )
    for one in reliability(targets):
        cells = (
            f"{one.low:g} to {one.high:g}",
            f"{one.targets}",
            f"{one.said:.2f}",
            f"{one.met:.2f}",
            f"{one.error:.2f}",
        )
        table.add_row(*cells)
    yield table


def _pairs(found: list[Pair]) -> Table:
    table = pages.table("Pairs that differ by more than the noise", "of", "pairs", "picked right", "share")
    for group in dict.fromkeys(pair.faster.group for pair in found):
        _add(table, group, [pair for pair in found if pair.faster.group == group])
    _add(table, "all", found)
    return table


def _add(table: Table, group: str, found: list[Pair]) -> None:
    right = sum(pair.right for pair in found)
    table.add_row(group, str(len(found)), str(right), f"{right / len(found):.1%}" if found else "-")


def published(seed: int) -> Iterator[Choice]:
    """Configurations of published tables."""
    yield from _ec2(seed)
    yield from _parallax()
    yield from _transports()


def _ec2(seed: int) -> Iterator[Choice]:
    import numpy as np

    from experiments import published as ec2
    from sim.answers import interval

    profile = ec2.fitted()
    for name in ("fmb", "amb"):
        steps, _ = ec2.measured(name)
        runs = [
            one.quantities()["samples/s"] for one in ec2.predicted(ec2.scenario(name, profile, len(steps.step_s), seed))
        ]
        halves = [half.quantities()["samples/s"] for half in ec2.halves(steps)]
        speeds = np.array(runs)
        noise = max(halves) / min(halves) - 1
        real = steps.quantities()["samples/s"]
        yield Choice(
            "10 EC2 machines", name, (real,), interval.middle(speeds), noise, interval.of_runs(speeds), name == "fmb"
        )


def _parallax() -> Iterator[Choice]:
    from experiments import parallax

    for (model, system, machines), said in parallax.predicted(parallax.fitted()).items():
        real, fitted = parallax.MEASURED[model][system][machines - 1], (model, system, machines) in parallax.FITTED
        noise = 2 * parallax.TOLERANCE[model] / real
        yield Choice(f"Parallax, {model}", f"{system}, {machines} machines", (float(real),), said, noise, None, fitted)


def _transports() -> Iterator[Choice]:
    from experiments import allreduce

    for transport, measured in allreduce.SIXTEEN_GPUS.items():
        by_name = allreduce.over_tcp(transport)
        bandwidth = allreduce.fitted_bandwidth(measured[allreduce.FITTED], by_name)
        for model, real in measured.items():
            said = allreduce.images_per_s(model, bandwidth, by_name=by_name)
            fitted = model == allreduce.FITTED
            yield Choice(f"16 GPUs, {model}", transport, (real,), said, PUBLISHED_NOISE, None, fitted)


def at_hand(folder: Path) -> Iterator[Choice]:
    """Cells of experiments that were run before, by what is in the folder of results.

    Raises:
        WrongSetting: a table there is not one of cells.
    """
    import pandas as pd

    for name in LEFT:
        path = folder / name / f"{name}.csv"
        if path.is_file():
            try:
                yield from _cells(name, pd.read_csv(path))
            except (KeyError, ValueError, UnicodeDecodeError) as error:
                raise WrongSetting("--out", str(path), f"a table that {name} wrote ({error})") from error


def _cells(name: str, table: pd.DataFrame) -> Iterator[Choice]:
    noise = float(table["floor"].mean())
    repeats = [column for column in table if column.startswith("measured_step_s_")]
    for row in table.to_dict("records"):
        runs = tuple(row["measured_samples"] / row[column] for column in repeats if row[column] > 0)
        low, high = (row["predicted_samples"] / row[f"predicted_{end}_s"] for end in ("high", "low"))
        said = row["predicted_samples_per_s"]
        yield Choice(f"this machine, {name}", row["cell"], runs, said, max(noise, row["floor"]), (low, high))
