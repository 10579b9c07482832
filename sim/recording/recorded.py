"""The run in a folder that `trainsim.Recorder` has written, as a trace: of each rank what is known of it, and its rows.

Each rank counts from the moment at which it began to record. The clocks of the hosts say how far these are apart, as exactly as they agree;
costs are fitted to durations, each by one clock.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from sim.base.activity import MODEL_FILE, Activity, facts_file, part_file
from sim.base.errors import WrongSetting
from sim.base.files import read_json, reading, validated
from sim.base.models import Checked
from sim.base.ranges import MOST, MOST_BYTES, MOST_CORES, MOST_RANKS, CountIfAny
from sim.job.header import LONGEST_RUN_S, Header, Training
from sim.recording import pauses, traces
from sim.recording.traces import Trace

if TYPE_CHECKING:
    from sim.job.scenario import Scenario
    from sim.model.workload import Workload

WORLDS = ("torch", "keras", "loop")  # in which such a run took place: by the library that computed, if one was seen
UNSEEN = "loop"  # the name of a model that nobody described
CARRIED = ("input", "compute")
OF_TRAINING = ("optimiser", "learning_rate", "weight_decay", "device", "threads", "engine")  # that a recorder knows
LATE = 0.05  # of a minibatch's computing, within which its first sum begins so late that all might begin at its end
Text = Annotated[str, Field(max_length=1000)]


class Summing(Checked):
    """How DistributedDataParallel sums: the bytes of its buckets, and the library."""

    bucket_bytes: Annotated[int, Field(ge=0, le=MOST_BYTES)]
    backend: Text = ""


class Facts(Checked):
    """What a rank's recorder knew; its words are those of the file.

    Args:
        began_unix_s: when it began to record, by its host's clock.
        workload: as the user named it; None if the model was seen.
        summing: None where no allreduce was seen.
        loader_workers: processes that load minibatches while the loop computes; None where the loader does not say.
        complete: whether the loop came to its end; False while it goes on, or if it was left before.
    """

    schema_: Literal["recorded/1"] = Field(alias="schema")
    rank: Annotated[int, Field(ge=0, lt=MOST_RANKS)]
    world: Annotated[int, Field(ge=1, le=MOST_RANKS)]
    host: Annotated[str, Field(min_length=1, max_length=300)]
    cores: Annotated[int, Field(ge=1, le=MOST_CORES)]
    began_unix_s: Annotated[float, Field(ge=0, le=LONGEST_RUN_S)]
    warmup: CountIfAny
    workload: Text | None = None
    versions: dict[Text, Text] = Field(default={})
    engine: Text = UNSEEN
    optimiser: Text = "unknown"
    learning_rate: Annotated[float, Field(ge=0, le=MOST)] = 0.0
    weight_decay: Annotated[float, Field(ge=0, le=MOST)] = 0.0
    threads: Annotated[int, Field(ge=1, le=MOST_RANKS)] = 1
    device: Literal["cpu", "gpu"] = "cpu"
    gpu: Text = ""
    gpus: Annotated[int, Field(ge=0, le=MOST_CORES)] = 0
    summing: Summing | None = None
    loader_workers: CountIfAny | None = None
    steps: CountIfAny = 0
    complete: bool = False
    notes: tuple[Text, ...] = ()


def read(folder: Path) -> Trace:
    """The trace of a recorded run, up to the last block that each rank has written.

    Raises:
        WrongSetting: a rank without its files, ranks of several runs, a file that was damaged, or no step after warm-up.
    """
    first = _facts(folder, 0)
    ranks = [first, *(_facts(folder, rank) for rank in range(1, first.world))]
    if odd := next((one for one in ranks if (one.world, one.workload) != (first.world, first.workload)), None):
        allowed = f"{first.world}, as rank 0 says: one run in a folder"
        raise WrongSetting(f"{facts_file(folder, odd.rank)}: world", odd.world, allowed)
    began_s = min(one.began_unix_s for one in ranks)
    rows: list[Activity] = []
    notes: dict[str, int] = {}
    for one in ranks:
        of_rank, note = pauses.found(_rows(folder, one, one.began_unix_s - began_s), one.warmup)
        rows += of_rank
        notes |= {note: one.rank} if note and not notes else {}
    head = _header(folder, ranks, rows)
    head.details["notes"] += [f"rank {rank}: {note}" for note, rank in notes.items()]
    trace = Trace.of(head, rows)
    traces.check(trace.header, trace.rows, str(folder))
    return trace


def _facts(folder: Path, rank: int) -> Facts:
    path, allowed = facts_file(folder, rank), f"what trainsim.Recorder has written of rank {rank}"
    with reading("trace folder", path):
        text = path.read_bytes()
    table = read_json(text, "trace folder", str(path), allowed)
    if table.get("rank") != rank:
        raise WrongSetting("trace folder", str(path), allowed)
    return validated(Facts, table, str(path))


def _rows(folder: Path, facts: Facts, later_s: float) -> list[Activity]:
    """A rank's rows, in seconds since the first rank began; one that was cut is dropped."""
    path = part_file(folder, facts.rank)
    with reading("trace folder", path):
        lines = path.read_bytes().split(b"\n")
    found = [Activity(*row) for row in traces.parsed(lines[:-1], str(path))]
    return [row._replace(start_s=row.start_s + later_s, end_s=row.end_s + later_s) for row in found]


def _header(folder: Path, ranks: list[Facts], rows: list[Activity]) -> Header:
    first = ranks[0]
    updates = sum(row.rank == 0 and row.activity == "update" for row in rows)
    warmup = min(first.warmup, max(0, updates - 1))
    if updates <= warmup:
        raise WrongSetting("trace folder", str(folder), "a run of one step or more: rank 0 has recorded none")
    batch = max(row.samples for row in rows if row.activity in CARRIED)
    model, order = _workload(folder, first), _order(rows, warmup)
    job = _scenario(first, model, updates - warmup, warmup, batch, order if len(model.variables) > 1 else "parameters")
    world = first.engine if first.engine in WORLDS else UNSEEN
    blind = first.world > 1 and first.summing is None
    training = Training(
        data="the user's own",
        decay_steps=0,
        decay_rate=0.0,
        master_on_cpu=False,
        **{name: getattr(first, name) for name in OF_TRAINING},
    )
    head = job.header(
        world,
        training=None if first.engine == UNSEEN else training,
        hosts=tuple((one.host, one.cores) for one in ranks),
        gpus=first.gpus,
        complete=all(one.complete for one in ranks),
        communication_in_update=blind,
        details={name: getattr(first, name) for name in ("versions", "began_unix_s", "gpu", "loader_workers")}
        | {
            "backend": first.summing.backend if first.summing else "",
            "notes": [f"rank {one.rank}: {note}" for one in ranks for note in one.notes],
        },
    )
    return replace(head, cluster=", ".join(dict.fromkeys(one.host for one in ranks)))


def _order(rows: list[Activity], warmup: int) -> str:
    """When gradients are ready (sim.model.nominal): at the end, if computing is all but over when the first sum of a step begins."""
    computed: dict[tuple[int, int], Activity] = {}
    called: dict[tuple[int, int], float] = {}
    for row in rows:
        if row.activity == "compute":
            computed[row.rank, row.step] = row  # of several minibatches the last
        elif row.activity == "receive":
            called[row.rank, row.step] = min(row.start_s, called.get((row.rank, row.step), row.start_s))
    left = [
        (computed[at].end_s - begun_s) / (computed[at].end_s - computed[at].start_s)
        for at, begun_s in called.items()
        if at in computed and at[1] >= warmup and computed[at].end_s > computed[at].start_s
    ]
    return "end" if left and median(left) < LATE else "parameters"


def _scenario(first: Facts, workload: Workload, steps: int, warmup: int, batch: int, order: str) -> Scenario:
    """The job: DistributedDataParallel sums buckets one by one while back-propagation goes on; each is one variable of the model."""
    from sim import protocols
    from sim.job.scenario import Scenario

    if first.summing is None:
        protocol = protocols.make("allreduce")
    elif order == "end":
        protocol = protocols.make("allreduce", ["algorithm=ring", "fused=false"])
    else:
        protocol = protocols.make("ddp", ["bucket_mb=0"])
    return Scenario(protocol, workload, first.world, steps, warmup, batch)


def _workload(folder: Path, first: Facts) -> Workload:
    """The trained model: as the user named it, as it was seen, or one of a single number if nothing showed it."""
    from sim.model import workload
    from sim.model.workload import Variable, Workload

    if first.workload:
        return workload.read(first.workload)
    path = folder / MODEL_FILE
    if path.exists():
        return workload.read(str(path))
    return Workload(name=UNSEEN, variables=(Variable(name=UNSEEN, shape=(1,)),))
