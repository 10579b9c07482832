"""Tables of rates by size, held out in turn: small sizes are fitted by calibration.fit, and large ones simulated, as users do both.

A table has several series: a model by a system at a precision. Each number of hosts of a series but the first and the last is once the
largest that is fitted, and all larger ones are predicted (a rolling origin). Likewise its rows of one host, by GPUs. What `sharded`
training and servers move is not fitted by this mechanism; these rows wait in their tables, and so do series with fewer sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calibration import fit
from calibration.scaling.changes import missed_by, unchanged_s
from calibration.scaling.table import Table, evenly
from experiments import figures
from experiments.extrapolation import t4
from experiments.extrapolation.held import Held, Refused
from sim import options, run, simulated_options, zoo
from sim.answers import paired
from sim.answers.ignorance import doublings
from sim.base.errors import WrongSetting
from sim.base.progress import advance
from sim.simulation import simulate

if TYPE_CHECKING:
    import pandas as pd

    from sim.answers.result import Result
    from sim.model.workload import Workload
    from sim.platform.cluster import Cluster
    from sim.sweeps.pools import Pool

LAYERS = 20  # of a model that the zoo does not have, all of one size
FEWEST = 3  # sizes of a series: two to fit, one to predict
MOST_ROWS = 40  # of a split that are predicted; few have as many
MOST_SERIES = 6  # of a source that are predicted: a mean of sources is not known better by more of one
MANY = 64  # GPUs: rows of more take up to minutes each, so that they are predicted once, from the fewest sizes
SERIES = ["model", "system", "precision"]
# Fitted steps have no noise: each is as long as the next. Answers are not cut short where other work keeps the machine busy.
STEPS = ("--steps", "1", "--warmup", "1", "--replications", "2", "--within", "600")


class Series(NamedTuple):
    """Steps of one model on several sizes.

    Args:
        million_parameters: of a model that is not of the zoo.
        link: the network of a host by its name, as --link of calibration.fit takes it; empty if it is not said.
    """

    source: str
    called: str
    model: str
    million_parameters: float
    rows: Table
    link: str = ""


class Split(NamedTuple):
    """Rows to fit and rows to predict.

    Args:
        doublings: of hosts or GPUs beyond the fitted ones, shape (rows of `out`,).
    """

    said: str
    seen: Table
    out: Table
    doublings: np.ndarray


def series_of(split: str) -> list[Series]:
    """All series of the sources of figures.sources() that are predicted with that split."""
    found = []
    for source in figures.sources():
        if source.predicted_with == split and source.name == "t4":
            found += [
                Series("t4", name, model or name, t4.MILLION_PARAMETERS, t4.even(name))
                for name, model in t4.MODELS.items()
            ]
        elif source.predicted_with == split and not source.module:
            found += spread(of_source(source.name, figures.table(f"sizes/{source.name}")))
    return found


def spread(series: Iterable[Series]) -> list[Series]:
    """Those of one source with rows to predict, up to MOST_SERIES of them at even distances."""
    found = [one for one in series if any(splits(one.rows))]
    return [found[place] for place in evenly(len(found), MOST_SERIES)]


def with_networks(split: str) -> list[Series]:
    """Those of sources whose network has a name, with that name, as far as they have several hosts."""
    networks = {source.name: source.network for source in figures.sources()}
    named = [one._replace(link=networks[one.source]) for one in series_of(split) if networks[one.source]]
    return [one for one in named if len(np.unique(one.rows.hosts)) >= FEWEST]


def of_source(name: str, table: pd.DataFrame) -> Iterator[Series]:
    """The series of one table."""
    alike = table[table.summed_by == "allreduce"].fillna({"million_parameters": 0})
    for (model, *which), rows in alike.groupby([*SERIES], sort=False):
        yield Series(name, ", ".join([model, *which]), model, rows.million_parameters.iloc[0], steps(rows))


def steps(rows: pd.DataFrame) -> Table:
    """Seconds of a step by hosts, GPUs and batch."""
    columns = "hosts", "gpus", "batch", "samples_per_s", "minibatches"
    hosts, gpus, batch, rate, minibatches = (rows[column].to_numpy(float) for column in columns)
    return Table(hosts, gpus, gpus / hosts, batch.round(), gpus * batch / rate, minibatches)


def splits(rows: Table) -> Iterator[Split]:
    """By hosts, and by GPUs of one host: each size but the first and the last is once the largest that is fitted."""
    one = rows.where(rows.hosts == 1)
    for unit, some, sizes in (("hosts", rows, rows.hosts), ("GPUs of a host", one, one.gpus)):
        known = np.unique(sizes)
        for fewer, most in pairwise(known[:-1]):
            left = (sizes > most) & ((some.gpus <= MANY) | (fewer == known[0]))
            beyond = np.array([doublings(size, most) for size in sizes[left]])
            if beyond.size:
                yield Split(f"1 to {most:.0f} {unit}, then more", some.where(sizes <= most), some.where(left), beyond)


def predicted(series: Sequence[Series], pool: Pool, takes_s: float = 0.0) -> tuple[list[Held], list[Refused]]:
    """The rows that were left out of all splits of these series, and those that a command refuses.

    Args:
        takes_s: seconds of all of them, for the time left.
    """
    tasks = [(one, split) for one in series for split in splits(one.rows)]
    found: list[Held] = []
    refused: list[Refused] = []
    with pool as places:
        futures = [places.submit(of_split, *task) for task in tasks]
        for (one, _), future in zip(tasks, futures, strict=True):
            rows, without = future.result()
            found += rows
            refused += without
            advance(takes_s / len(tasks), one.source)
    return found, refused


def of_split(series: Series, split: Split) -> tuple[list[Held], list[Refused]]:
    """The rows of a split that were left out, up to MOST_ROWS of them at even distances."""
    said, (out, seen) = f"{series.called}: {split.said}", (split.out, split.seen)
    found: list[Held] = []
    refused: list[Refused] = []
    places = evenly(out.size, MOST_ROWS)
    try:
        made = fitted(series, seen)
    except WrongSetting as error:
        return [], [Refused(series.source, said, len(places), _why(error))]
    trivial_off = missed_by(seen)
    for place in places:
        hosts, gpus, each, batch, step_s, minibatches = (float(column[place]) for column in out[:6])
        try:
            answer = answered(made, int(hosts), int(each), round(batch / minibatches), int(minibatches))
        except WrongSetting as error:
            refused.append(Refused(series.source, said, 1, _why(error)))
            continue
        where = int(hosts), int(gpus), int(batch), float(split.doublings[place])
        told_s = step_s, *seconds(answer), unchanged_s(seen, out.where(np.arange(out.size) == place))
        unknown = tuple(paired.of(answer.scenario, answer.outcome))
        found.append(Held(series.source, said, *where, *told_s, trivial_off, unknown))
    return found, refused


def _why(error: WrongSetting) -> str:
    """What is refused, without the folder of the table."""
    return f"{error.setting.rpartition('/')[2]}: given {error.given}"


def fitted(series: Series, rows: Table) -> Cluster:
    """The profile that `calibration.fit --from scaling` makes of some rows of a series.

    Raises:
        WrongSetting: the command refuses them.
    """
    import pandas as pd

    columns = {"hosts": rows.hosts, "gpus_per_host": rows.most, "batch": rows.batch, "step_s": rows.step_s}
    with TemporaryDirectory() as folder:
        table, model = Path(folder) / "table.csv", Path(folder) / "model.toml"
        pd.DataFrame(columns | {"minibatches": rows.minibatches}).to_csv(table, index=False)
        model.write_text(described(series.model, series.million_parameters), encoding="utf-8")
        named = series.model if series.model in zoo.names() else str(model)
        command = [str(table), "--from", "scaling", "--workload", named, "-o", "profile.toml"]
        return fit.fitted(fit.parser().parse_args(command + ["--link", series.link] * bool(series.link)))


def described(model: str, million_parameters: float) -> str:
    """A model that the zoo does not have, as a user describes it: so many parameters, in layers of one size."""
    step = 'time = "1 s"\nbatch = 1'  # not used: rows tell the seconds of computing
    return f'name = "{model}"\nparameters = "{million_parameters} M"\nlayers = {LAYERS}\n[step]\n{step}\n'


def workload(model: str, million_parameters: float) -> Workload:
    """The model of a series."""
    import tomllib

    from sim.model.workload import NAMED, Workload

    if model in zoo.names():
        return NAMED[model]
    return Workload.model_validate(tomllib.loads(described(model, million_parameters)))


def answered(profile: Cluster, hosts: int, gpus_per_host: int, batch: int, minibatches: int = 1) -> Result:
    """What `sim.run --cluster profile.toml` answers of so many hosts with so many GPUs each, minibatches of `batch` samples a GPU.

    A host with more GPUs than were fitted is one whose `gpus` and `cores` a user has raised in the profile.

    Raises:
        WrongSetting: the command refuses the job.
    """
    (host,) = profile.hosts
    larger = host.model_copy(update={name: max(gpus_per_host, getattr(host, name)) for name in ("gpus", "cores")})
    read, wide = options.Readers(), profile.model_copy(update={"hosts": (larger,)})
    read.cluster = lambda _: wide  # type: ignore[assignment]
    sizes = ["--hosts", str(hosts), "--per-host", str(gpus_per_host), "--batch", str(batch * minibatches)]
    sizes += ["--set", f"accumulate={minibatches}"] * (minibatches > 1)
    given = run.parser().parse_args(["--cluster", profile.name, *sizes, *STEPS])
    job = simulated_options.scenario(given, read)
    return simulate(job, given.world, options.replications(given, None), within_s=simulated_options.within_s(given))


def seconds(found: Result) -> tuple[float, float, float]:
    """Predicted, low and high seconds of a step."""
    samples, (low, high) = found.scenario.batch * found.scenario.workers, found.interval or (np.nan, np.nan)
    return samples / found.samples_per_s, samples / high, samples / low
