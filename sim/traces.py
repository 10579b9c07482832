"""The record: one row an activity, the same for simulated and measured runs; parquet or JSON lines by the file's ending."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sim.errors import WrongSetting
from sim.files import reading, write_whole

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "trace/1"
NOBODY = -1  # the peer of an activity that has none
HEADER_FILE = "header.json"  # in the folder in which the ranks of a real run write their parts

# sleep: an induced straggler. input: fetching a minibatch. compute: gradients. pack: they are joined into one message.
# send, receive: bytes move. wait: nothing moves. reduce: a gradient joins the sum. update: new parameters are made, or
# taken up. evaluate: loss, accuracy.
ACTIVITIES = ("sleep", "input", "compute", "pack", "send", "receive", "wait", "reduce", "update", "evaluate")


class Activity(NamedTuple):
    """What one rank did from start_s to end_s (seconds since the run's common start).

    `version` counts the updates that the parameters at hand had seen.
    """

    start_s: float
    end_s: float
    rank: int
    step: int
    activity: str
    samples: int = 0
    bytes: int = 0
    peer: int = NOBODY
    version: int = 0


JOB = (
    "protocol",
    "world",
    "workload",
    "workers",
    "steps",
    "warmup",
    "batch",
    "seed",
    "settings",
    "stragglers",
    "servers",
    "updates_per_step",
)


@dataclass(frozen=True)
class Header:
    """What was run.

    Args:
        world: event, vector, mpi, horovod or tensorflow.
        settings: the protocol's.
        batch: samples per worker and step.
        warmup: steps at the start that measurements leave out.
        servers: ranks before the workers: the master, or parameter servers; 0 where every rank is a worker.
        updates_per_step: of rank 0; as many as workers where each gradient is applied by itself.
        details: versions, data set, host names; free.
    """

    protocol: str
    world: str
    workload: str
    workers: int
    steps: int
    warmup: int
    batch: int
    seed: int
    replication: int = 0
    settings: dict = field(default_factory=dict)
    stragglers: str = "none"
    cluster: str = ""
    details: dict = field(default_factory=dict)
    servers: int = 1
    updates_per_step: int = 1
    schema: str = SCHEMA

    @property
    def ranks(self) -> int:
        """Processes: master or servers, and workers; or one alone."""
        return self.servers + self.workers

    def same_job(self, other: Header) -> bool:
        """Whether both say the same of what was run, and in which world; of where it was, and how, they need not."""
        return self._job() == other._job()

    def _job(self) -> str:
        """As a file has it: of its settings, what is a tuple here is a list there."""
        return json.dumps([getattr(self, name) for name in JOB])


@dataclass
class Trace:
    """A header and its activities, in a table with the columns of `Activity`, ordered by end_s."""

    header: Header
    rows: pd.DataFrame

    @classmethod
    def of(cls, header: Header, activities: list[Activity]) -> Trace:
        """A trace of activities in any order."""
        import pandas as pd

        rows = pd.DataFrame(activities, columns=list(Activity._fields))
        return cls(header, rows.sort_values(["end_s", "rank", "start_s"], kind="stable", ignore_index=True))

    def write(self, path: str | Path) -> None:
        """Write the file whole, or not at all; `.parquet` or `.jsonl`.

        Raises:
            WrongSetting: another ending, or a folder that cannot be written.
        """
        check_path(path)
        write_whole(path, self._write_parquet if Path(path).suffix == ".parquet" else self._write_jsonl)

    def _write_jsonl(self, path: Path) -> None:
        with path.open("w") as file:
            file.write(json.dumps(asdict(self.header)) + "\n")
            file.writelines(json.dumps(row) + "\n" for row in self.rows.itertuples(index=False, name=None))

    def _write_parquet(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.Table.from_pandas(self.rows, preserve_index=False)
        pq.write_table(table.replace_schema_metadata({"header": json.dumps(asdict(self.header))}), path)


def part_file(folder: Path, rank: int) -> Path:
    """Where a rank writes its part of a growing trace."""
    return folder / f"rank-{rank:05d}.jsonl"


def read_parts(folder: Path) -> Trace:
    """What the ranks of a run have written so far; an activity that a crash cut short is dropped.

    Raises:
        WrongSetting: no parts there.
    """
    try:
        header = Header(**json.loads((folder / HEADER_FILE).read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise WrongSetting("trace folder", str(folder), "the parts of a trace that real.run has begun") from error
    activities = []
    for part in sorted(folder.glob("rank-*.jsonl")):
        lines = part.read_text().split("\n")
        activities += [
            Activity(*json.loads(line)) for line in lines[:-1]
        ]  # after the last newline: nothing, or a cut row
    return Trace.of(header, activities)


def check_path(path: str | Path) -> None:
    """Refuse a trace file whose ending says no format, before anything is run.

    Raises:
        WrongSetting: neither .parquet nor .jsonl.
    """
    if Path(path).suffix not in (".parquet", ".jsonl"):
        raise WrongSetting("trace file", str(path), "a name that ends in .parquet or .jsonl")


def read(path: str | Path) -> Trace:
    """The trace in a file.

    Raises:
        WrongSetting: no such file, no trace, or one of another schema.
    """
    if Path(path).is_dir():
        return read_parts(Path(path))
    check_path(path)
    with reading("trace file", path):
        try:
            header, rows = _read_parquet(path) if Path(path).suffix == ".parquet" else _read_jsonl(path)
        except (ValueError, KeyError, TypeError) as error:
            raise WrongSetting("trace file", str(path), "a trace written by sim.run or real.run") from error
    if header.get("schema") != SCHEMA:
        raise WrongSetting(f"{path}: schema", header.get("schema"), SCHEMA)
    return Trace(Header(**header), rows)


def _read_jsonl(path):
    import pandas as pd

    with open(path) as file:
        header = json.loads(file.readline())
        rows = [json.loads(line) for line in file]
    return header, pd.DataFrame(rows, columns=list(Activity._fields))


def _read_parquet(path):
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    return json.loads(table.schema.metadata[b"header"]), table.to_pandas()
