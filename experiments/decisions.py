"""Decisions, not errors: would predictions have picked the faster of two measured configurations, by how much, and is P(target) calibrated?

Published: anytime and fixed minibatches on 10 EC2 machines (experiments.published), the systems of Parallax's figure
(experiments.parallax), transports of 16 GPUs (extrapolation.transports), and kinds of GPU by name (kinds_of_gpu). At hand: cells of
validate, servers, collectives and testbed, from the folder of results or else from the results that are kept (docs/data). Pairs are of
one model with the same sleeps, which nobody may choose. Pairs that were both fitted are left out. So are pairs that differ by less than
the noise of repeats, or of reading a figure. For published tables without either, the noise is taken to be 2 %, and 10 % of kinds of GPU.
Intervals of differences are those of `sim.run --what-if`; those of published tables are judged by evidence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from experiments import kinds_of_gpu
from experiments.kit import kept, pages
from experiments.kit.choices import Choice, Pair, Ratio, pairs, planted, ratios, reliability
from sim.answers.extrapolation import Unknown
from sim.base.errors import WrongSetting
from sim.base.progress import Progress

if TYPE_CHECKING:
    from rich.table import Table

LEFT = ("validate", "servers", "collectives", "testbed")  # experiments that leave cells
KEPT = Path(__file__).parent.parent / "docs" / "data"
PUBLISHED_NOISE = 0.02
MOST_WRONG = 20  # pairs that are listed


def run(out: Path, seed: int = 0) -> None:
    """Print pairs by where they are from, those that are picked wrong, coverage of differences, and the reliability of P(target)."""
    with Progress("simulating"):
        choices = [*published(seed), *at_hand(out.parent), *kinds_of_gpu.choices()]
    pages.show(*tables(choices))


def tables(choices: list[Choice]) -> Iterator[Table | str]:
    """The printed tables."""
    found = pairs(choices)
    yield _pairs(found)
    wrong = [pair for pair in found if not pair.right]
    yield from (f"  wrong: {pair}" for pair in wrong[:MOST_WRONG])
    if len(wrong) > MOST_WRONG:
        yield f"  and {len(wrong) - MOST_WRONG} more"
    yield _ratios(ratios(choices))
    named = kinds_of_gpu.called(found)
    if named:
        yield pages.listed(
            "Kinds of GPU by name: how sure the faster one is, and how often it is", _reliability("pairs"), named
        )
    targets = planted(choices)
    if not targets:
        yield "P(target): no runs with intervals at hand; validate, servers and collectives leave some"
        return
    yield pages.listed("Targets between measured throughputs", _reliability("targets"), reliability(targets))


def _reliability(counted: str) -> tuple:
    """The columns of probabilities beside what came true."""
    return (
        ("P", lambda one: f"{one.low:g} to {one.high:g}"),
        (counted, lambda one: f"{one.targets}"),
        ("mean P", lambda one: f"{one.said:.2f}"),
        ("met", lambda one: f"{one.met:.2f}"),
        ("standard error", lambda one: f"{one.error:.2f}"),
    )


def _pairs(found: list[Pair]) -> Table:
    groups = {pair.faster.group: [one for one in found if one.faster.group == pair.faster.group] for pair in found}
    columns = (
        ("of", lambda item: item[0]),
        ("pairs", lambda item: str(len(item[1]))),
        ("picked right", lambda item: str(sum(pair.right for pair in item[1]))),
        ("share", lambda item: f"{sum(pair.right for pair in item[1]) / len(item[1]):.1%}" if item[1] else "-"),
    )
    return pages.listed("Pairs that differ by more than the noise", columns, (groups | {"all": found}).items())


def _ratios(found: dict[str, Ratio]) -> Table:
    columns = (
        ("of", lambda item: item[0]),
        ("pairs of runs", lambda item: str(item[1].pairs)),
        ("covered", lambda item: str(item[1].covered)),
        ("share", lambda item: f"{item[1].covered / item[1].pairs:.1%}"),
        ("median interval", lambda item: f"x or / {item[1].width:.3f}"),
    )
    title = "Differences of two configurations: the paired interval (90 %) and what was measured"
    return pages.listed(title, columns, found.items())


def published(seed: int) -> Iterator[Choice]:
    """Configurations of published tables."""
    yield from _ec2(seed)
    yield from _parallax()
    yield from _transports()


def _ec2(seed: int) -> Iterator[Choice]:
    from experiments import published as ec2
    from sim.answers import paired
    from sim.base import interval
    from sim.simulation import simulate

    profile = ec2.fitted()
    for name in ("fmb", "amb"):
        steps, _ = ec2.measured(name)
        found = simulate(ec2.scenario(name, profile, len(steps.step_s), seed), replications=ec2.REPLICATIONS)
        halves = [half.quantities()["samples/s"] for half in ec2.halves(steps)]
        speeds = found.outcome.throughput()
        noise = max(halves) / min(halves) - 1
        real = steps.quantities()["samples/s"]
        unknown, runs = tuple(paired.of(found.scenario, found.outcome)), tuple(map(float, speeds))
        said = interval.middle(speeds)
        yield Choice("10 EC2 machines", name, (real,), said, noise, found.interval, name == "fmb", runs, unknown)


def _parallax() -> Iterator[Choice]:
    from experiments import parallax

    for (model, system, machines), said in parallax.predicted(parallax.fitted()).items():
        real, fitted = parallax.MEASURED[model][system][machines - 1], (model, system, machines) in parallax.FITTED
        noise = 2 * parallax.TOLERANCE[model] / real
        yield Choice(f"Parallax, {model}", f"{system}, {machines} machines", (float(real),), said, noise, None, fitted)


def _transports() -> Iterator[Choice]:
    from experiments.extrapolation import transports

    for transport, measured in transports.SIXTEEN_GPUS.items():
        by_name = transports.over_tcp(transport)
        bandwidth = transports.fitted_bandwidth(measured[transports.FITTED], by_name)
        for model, real in measured.items():
            said = transports.images_per_s(model, bandwidth, by_name=by_name)
            fitted = model == transports.FITTED
            yield Choice(f"16 GPUs, {model}", transport, (real,), said, PUBLISHED_NOISE, None, fitted)


def at_hand(folder: Path) -> Iterator[Choice]:
    """Cells of experiments that were run before, from the folder of results, or else as they are kept.

    Raises:
        WrongSetting: a result there is not one of cells, or of another version.
    """
    for name in LEFT:
        left, stored = folder / name / f"{name}.json", KEPT / f"{name}.json"
        path = left if left.is_file() else stored
        try:
            if path.is_file():
                yield from _cells(name, kept.read(path).cells)
        except (KeyError, ValueError) as error:
            said = f"a result that {name} of this version wrote ({' '.join(str(error).split())})"
            raise WrongSetting("--out", str(path), said) from error


def _cells(name: str, rows: list[dict]) -> Iterator[Choice]:
    noise = sum(float(row["floor"]) for row in rows) / max(1, len(rows))
    for row in rows:
        measured, runs = (tuple(json.loads(row[f"{whose}_runs"])) for whose in ("measured", "predicted"))
        spread = tuple(row["predicted_samples"] / row[f"predicted_{end}_s"] for end in ("high", "low"))
        group = f"{name}, {row['where']}" if "where" in row else name
        yield Choice(
            group,
            row["cell"],
            measured,
            row["predicted_samples_per_s"],
            max(noise, row["floor"]),
            spread,
            runs=runs,
            unknown=tuple(_unknown(*one) for one in json.loads(row["unknown"])),
            job=_job(row["cell"]),
        )


def _job(cell: str) -> str:
    """What a cell's title says of its model and sleeps: "ps-sync, mnist 2w x 96, cedar*0.02" is "mnist, cedar*0.02"."""
    found = re.search(r", ([^ ,]+ )?\d+w[^,]*, ([^,]+)$", cell)
    return f"{(found[1] or 'toy_fc').strip()}, {found[2]}" if found else ""


def _unknown(slower: float, faster: float, _: str, shared: list) -> Unknown:
    return Unknown(slower, faster, tuple((cause, *sides) for cause, *sides in shared))
