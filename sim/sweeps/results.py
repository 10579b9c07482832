"""The rows of a sweep, one a scenario, and their parquet file; while the sweep is under way its rows are in parts beside it.

A part is written whole, every few seconds. A crash therefore costs the rows of a few seconds. At the end the parts become one file.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sim.base.errors import RunFailed, WrongSetting, of_system
from sim.base.files import check_output, reading, write_whole
from sim.base.home import need
from sim.version import VERSION

if TYPE_CHECKING:
    import pyarrow as pa

    from sim.sweeps.jobs import Job

SETTING = "set_"  # before the name of a protocol's setting, of which each has a column

ASKED = {
    "digest": "string",  # of the scenario and how it is simulated: a row is known again by it
    "protocol": "string",
    "workload": "string",
    "workload_digest": "string",
    "model": "string",  # JSON, of a workload that does not come with the simulator
    "workers": "int64",
    "servers": "int64",
    "servers_on": "string",
    "placement": "string",
    "variable_partitions": "int64",
    "steps": "int64",
    "warmup": "int64",
    "batch": "int64",
    "seed": "uint64",
    "stragglers": "string",
    "law": "string",  # JSON
    "cluster": "string",
    "network": "string",  # between hosts
    "cluster_told": "string",  # JSON, without costs
    "test_size": "int64",
    "evaluate_every": "int64",
    "sleeps_of": "int64",
    "world_asked": "string",
    "runs_asked": "int64",
    "within_s": "float64",
    "assumed": "string",  # the options that were chosen because nobody gave them
}
ANSWERED = {
    "world": "string",
    "runs_done": "int64",
    "steps_done": "int64",
    "warmup_done": "int64",
    "samples_per_s": "float64",
    "samples_per_s_se": "float64",  # standard error over the replications; what is unknown of costs and links is not in it
    "samples_per_s_runs": "string",  # JSON, of each replication: those of one number have the same random numbers in every row
    "samples_per_s_low": "float64",  # of the 90 % interval of one more run, which contains what is unknown of costs and links
    "samples_per_s_high": "float64",
    "why_no_interval": "string",
    "tokens_per_s": "float64",  # these four where they are known (sim.answers.worth)
    "usd_per_hour": "float64",
    "usd_per_million_samples": "float64",
    "mfu": "float64",
    "step_mean_s": "float64",
    "step_p50_s": "float64",
    "step_p95_s": "float64",
    "step_p99_s": "float64",
    "samples_per_step": "float64",
    "samples_per_step_sd": "float64",
    "idle_fraction_servers": "float64",  # the mean of master or servers
    "idle_fraction_workers": "float64",
    "gpu_memory_fraction": "float64",  # of the fullest GPU's, that a worker takes as far as is known; above 1 it does not fit
    "notes": "string",
    "error": "string",
    "wall_s": "float64",
}


def kinds(jobs: Iterable) -> dict[str, str]:
    """The type of each column, in order, for these jobs (sim.sweeps.jobs.Job).

    A setting has the type that holds its values in all possible scenarios.
    """
    jobs, values = list(jobs), cast("dict[str, set[str]]", {})
    for job in jobs:
        for name, value in job.asked.items():
            if name.startswith(SETTING):
                known = values.setdefault(name, set())
                if job.scenario is not None and value is not None:
                    known.add(type(value).__name__)
    return ASKED | {name: _kind(types) for name, types in sorted(values.items())} | ANSWERED


def _kind(types: set[str]) -> str:
    if types and types <= {"int", "float"}:
        return "int64" if types == {"int"} else "float64"
    return "bool" if types == {"bool"} else "string"


def fitted(value: object, kind: str) -> object:
    """A value as a column of this type holds it; None if it cannot, as a number of thousands of digits that a user gave."""
    if value is None:
        return None
    try:
        return _AS[kind](value)
    except (ValueError, OverflowError):
        return None


def _integer(least: int, most: int):
    return lambda value: int(value) if least <= int(value) <= most else None


def _number(value: Any) -> float | None:
    return None if math.isnan(float(value)) else float(value)


_AS = {
    "string": lambda value: str(value).encode(errors="backslashreplace").decode(),
    "bool": lambda value: value if isinstance(value, bool) else None,
    "int64": _integer(-(2**63), 2**63 - 1),
    "uint64": _integer(0, 2**64 - 1),
    "float64": _number,
}


ABOUT = {"schema": "sweep-rows/1", "version": VERSION}
BLOCK_S, BLOCK_ROWS = 5.0, 10_000  # at most, between two parts


class Results:
    """The rows of a sweep.

    Args:
        path: of the file.
        jobs: of the sweep, in order, each once.

    Raises:
        WrongSetting: the file cannot be written.
        MissingExtra: what writes it is not installed.
    """

    def __init__(self, path: str, jobs: Iterable[Job]):
        check_output("--output", path, (".parquet",))
        need("pyarrow")
        import pyarrow as pa

        self.path, self.parts = Path(path), Path(f"{path}.parts")
        self._jobs = {job.digest: job for job in jobs}
        self._kinds = kinds(self._jobs.values())
        self._schema = pa.schema(list(self._kinds.items()), metadata={"sweep": json.dumps(ABOUT)})
        self._tables: list[pa.Table] = []
        self._rows: list[dict] = []
        self._written_s, self._number = time.monotonic(), 0

    def begin(self, resume: bool) -> set[str]:
        """Make room for parts; the digests of the rows that are there already, if the sweep goes on.

        Raises:
            WrongSetting: rows are there, and it does not go on; or they are of another sweep or version.
        """
        files = [*sorted(self.parts.glob("part-*.parquet")), *([self.path] if self.path.exists() else [])]
        if files and not resume:
            raise WrongSetting(
                "--output", str(files[0]), "a file that is not there; or --resume, to go on with this one"
            )
        self._tables, self._number = [self._read(file) for file in files], len(files)
        try:
            self.parts.mkdir(exist_ok=True)
        except OSError as error:
            raise WrongSetting(
                "--output", str(self.path), f"a file with room beside it ({of_system(error)})"
            ) from error
        return {digest for table in self._tables for digest in table["digest"].to_pylist()}

    def add(self, rows: Iterable[dict]) -> None:
        """Keep answers; write a part if it is time.

        Args:
            rows: with the digest of the job.

        Raises:
            RunFailed: the system does not take the part.
        """
        self._rows += [self._jobs[row["digest"]].asked | row for row in rows]
        if time.monotonic() - self._written_s > BLOCK_S or len(self._rows) >= BLOCK_ROWS:
            self._write_part()

    def finish(self) -> pa.Table:
        """Write the file, in the order of the sweep, and take the parts away; its rows. Without any there is no file.

        Raises:
            RunFailed: the system does not take the file; the parts stay.
        """
        self._take_in()
        table = self._joined()
        try:
            if len(table):
                write_whole(self.path, lambda file: _write(table, file))
        except RunFailed:
            self.keep()
            raise
        shutil.rmtree(self.parts, ignore_errors=True)
        return table

    def keep(self) -> None:
        """Leave what there is in parts, as far as the system takes it."""
        with suppress(RunFailed):
            self._write_part()
        if self.parts.is_dir() and not any(self.parts.iterdir()):
            self.parts.rmdir()

    def _write_part(self) -> None:
        table = self._take_in()
        self._written_s = time.monotonic()
        if len(table):
            try:
                write_whole(self.parts / f"part-{self._number:06d}.parquet", lambda file: _write(table, file))
            except RunFailed as error:
                raise RunFailed(f"{error}; --resume goes on") from error
            self._number += 1

    def _take_in(self) -> pa.Table:
        """The rows that were added of late, from now on one of the tables."""
        import pyarrow as pa

        kinds = self._kinds.items()
        rows = [{name: fitted(row.get(name), kind) for name, kind in kinds} for row in self._rows]
        self._tables.append(pa.Table.from_pylist(rows, self._schema))
        self._rows = []
        return self._tables[-1]

    def _joined(self) -> pa.Table:
        """Every row once, in the order of the sweep."""
        import pyarrow as pa

        table = pa.concat_tables([self._schema.empty_table(), *self._tables])
        rows = {digest: row for row, digest in enumerate(table["digest"].to_pylist())}
        order = [rows[digest] for digest in self._jobs if digest in rows]
        return table.take(pa.array(order, pa.int64()))  # of none, whose type is not seen, too

    def _read(self, path: Path) -> pa.Table:
        """The rows of an earlier go.

        Raises:
            WrongSetting: of another sweep, of another version, or no rows at all.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        with reading("--resume", path):
            path.open("rb").close()
        try:
            table = pq.read_table(path, partitioning=None)
            self._check(table, path)
            names = table.column_names
            found = [table[name] if name in names else pa.nulls(len(table)) for name in self._schema.names]
            return pa.table(found, names=self._schema.names).cast(self._schema)
        except WrongSetting:
            raise
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            why = " ".join(str(error).split())[:200]
            raise WrongSetting("--resume", str(path), f"the rows of a sweep ({why})") from error

    def _check(self, table: pa.Table, path: Path) -> None:
        about = json.loads((table.schema.metadata or {}).get(b"sweep", b"{}"))
        for key, value in ABOUT.items():
            if about.get(key) != value:
                raise WrongSetting(f"{path}: {key}", about.get(key), f"{value} (sweep again into another file)")
        foreign = sum(digest not in self._jobs for digest in table["digest"].to_pylist())
        if foreign:
            allowed = f"rows of this sweep: {foreign} of its {len(table)} are of other scenarios"
            raise WrongSetting("--resume", str(path), allowed)


def _write(table: pa.Table, path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, path)
