"""Tables of rates by size (figures/sizes): fitted on small sizes, and predicted for large ones, as `--from scaling` fits a user's table.

A table has several series: a model by a system at a precision. A series with three numbers of hosts is fitted on some of them from the
smallest on, at least two, and predicted beyond. Likewise its rows of one host, by GPUs. What `sharded` training and servers move is not
fitted by this mechanism; these rows wait in their tables, and so do series with fewer sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calibration.scaling.changes import MOST_SPREAD, growth_of, missed_by, unchanged_s
from calibration.scaling.fitting import BETWEEN, Before, fit, named
from calibration.scaling.overlap import Overlap
from calibration.scaling.steps import Scaling
from calibration.scaling.table import Table
from experiments import figures
from experiments.extrapolation.held import Held, doublings
from sim import zoo
from sim.base.interval import of_normal
from sim.model.sparse_rows import ITEM_BYTES
from sim.platform import other_sizes

if TYPE_CHECKING:
    import pandas as pd

    from sim.model.workload import Workload

LAYERS = 20  # of a model that the zoo does not have, all of one size
FEWEST = 3  # sizes of a series: two to fit, one to predict
SERIES = ["model", "system", "precision"]


class Split(NamedTuple):
    """Rows to fit and rows to predict.

    Args:
        doublings: of hosts or GPUs beyond the fitted ones, shape (rows of `out`,).
    """

    said: str
    seen: Table
    out: Table
    doublings: np.ndarray


def of_split(split: str) -> Iterator[Held]:
    """All predicted rows of the sources that are in that split of figures.sources()."""
    for source in figures.sources():
        if not source.module and source.split == split:
            yield from of_source(source.name, figures.table(f"sizes/{source.name}"))


def with_networks(split: str) -> Iterator[tuple[figures.Source, list[Held]]]:
    """The same of sources whose network has a name, as far as rows are of several hosts, predicted with it."""
    for source in figures.sources():
        if source.network and not source.module and source.split == split:
            table = figures.table(f"sizes/{source.name}")
            between = named(other_sizes.link(source.network, f"{source.name}: network"))
            rows = [row for row in of_source(source.name, table, between) if not row.row.startswith("1 hosts")]
            if rows:
                yield source, rows


def of_source(name: str, table: pd.DataFrame, between: Before = BETWEEN) -> Iterator[Held]:
    """The predicted rows of one table.

    Args:
        between: what is known of a byte between hosts before any row.
    """
    alike = table[table.summed_by == "allreduce"].fillna({"million_parameters": 0})
    for (called, *which), rows in alike.groupby([*SERIES], sort=False):
        model = workload(called, rows.million_parameters.iloc[0])
        fitted = once(
            partial(
                fit, gradient_bytes=float(ITEM_BYTES * model.parameters), overlap=Overlap.of(model), between=between
            )
        )
        for one in splits(series(rows)):
            yield from predicted(name, one._replace(said=f"{', '.join([called, *which])}: {one.said}"), fitted)


def once(fitted: Callable[[Table], Scaling]) -> Callable[[Table], Scaling]:
    """The same, that fits the same rows once: larger sizes of a series have smaller ones in common."""
    found: dict[tuple[bytes, ...], Scaling] = {}

    def of(rows: Table) -> Scaling:
        key = tuple(column.tobytes() for column in rows[:6])
        if key not in found:
            found[key] = fitted(rows)
        return found[key]

    return of


def workload(name: str, million_parameters: float) -> Workload:
    """A model of the zoo; another one has that many parameters, in layers of one size."""
    from sim.model import workload

    if name in zoo.names():
        return workload.NAMED[name]
    step = {"time": "1 s", "batch": 1}  # not used: rows tell the seconds of computing
    table = {"name": name, "parameters": f"{million_parameters} M", "layers": LAYERS, "step": step}
    return workload.Workload.model_validate(table)


def series(rows: pd.DataFrame) -> Table:
    """Seconds of a step by hosts, GPUs and batch."""
    columns = "hosts", "gpus", "batch", "samples_per_s", "minibatches"
    hosts, gpus, batch, rate, minibatches = (rows[column].to_numpy(float) for column in columns)
    return Table(hosts, gpus, gpus / hosts, batch, gpus * batch / rate, minibatches)


def splits(rows: Table) -> Iterator[Split]:
    """By hosts, and by GPUs of one host: each size but the first and the last is once the largest that is fitted."""
    for unit, some, sizes in (
        ("hosts", rows, rows.hosts),
        ("GPUs of a host", *_of_one_host(rows)),
    ):
        for most in np.unique(sizes)[1:-1]:
            seen, out = some.where(sizes <= most), some.where(sizes > most)
            beyond = np.array([doublings(size, most) for size in sizes[sizes > most]])
            yield Split(f"1 to {most:.0f} {unit}, then more", seen, out, beyond)


def _of_one_host(rows: Table) -> tuple[Table, np.ndarray]:
    one = rows.where(rows.hosts == 1)
    return one, one.gpus


def predicted(source: str, split: Split, fitted: Callable[[Table], Scaling]) -> Iterator[Held]:
    """The rows of a split that were left out, by a fit of the others."""
    out, seen = split.out, split.seen
    found, grown = fitted(seen), growth_of(seen, fitted)
    columns = found.step_s(out), split.doublings, *_ends(found, out)
    trivial_off = missed_by(seen)
    for index in range(out.size):
        hosts, gpus, _, batch, step_s, _ = (float(column[index]) for column in out[:6])
        said_s, beyond, slower, faster = (float(column[index]) for column in columns)
        asked = out.where(np.arange(out.size) == index)
        yield Held(
            source,
            split.said,
            f"{hosts:.0f} hosts, {gpus:.0f} GPUs, batch {batch:.0f}",
            beyond,
            step_s,
            said_s,
            found.residual,
            unchanged_s(seen, asked),
            slower=slower,
            faster=faster,
            changed=grown.per_doubling if grown else None,
            trivial_off=trivial_off,
        )


def _ends(found: Scaling, rows: Table) -> tuple[np.ndarray, np.ndarray]:
    """By how much steps take longer and shorter where messages do, as far as fitted rows leave them unknown: deviations of the logarithm.

    A profile has that spread of messages, and an answer is simulated at both of its ends (sim.answers.quantities).
    """
    unknown = np.minimum(found.unknown(rows, Scaling.messages_s), MOST_SPREAD)
    said, calls = np.log(found.step_s(rows)), found.calls(rows)
    end = of_normal(1.0)
    slower, faster = (
        side * (np.log(found.step_s(rows, calls, np.exp(side * end * unknown))) - said) / end for side in (1, -1)
    )
    return slower, faster
