"""The head of a trace: what was run, where, and how it ended. It is checked whenever a file is read."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationError

from sim.base.errors import WrongSetting, from_validation
from sim.base.files import read_json
from sim.base.models import validator
from sim.base.ranges import MOST, MOST_CORES, MOST_RANKS, Count, CountIfAny, Layers, Ranks, RanksIfAny

SCHEMA = "trace/2"  # in trace/1, where variables were placed and how a run trained were not said
WRITTEN = "a trace written by sim.run or real.run"
LONGEST_RUN_S = 1e12  # of a run
SIMULATED, IMPORTED = ("event", "engine", "learning"), "imported"  # worlds whose times no run of ours took
Seed = Annotated[int, Field(ge=0, lt=2**64)]
Positive = Annotated[float, Field(ge=0, le=MOST)]
OWN_TEXT = "mpi"  # the world in which ranks follow a protocol's text for real; any other name is another runtime's


@dataclass(frozen=True)
class Training:
    """The training of a real run.

    Args:
        data: digits, synthetic, words, or the path of files.
        optimiser: sgd, mom, rms or adm.
        learning_rate: of the first step; it falls by `decay_rate` every `decay_steps` steps, never if these are 0.
        device: cpu or gpu; `master_on_cpu` keeps master and servers off the GPU.
        threads: of the engine, for each rank.
        engine: the library that computed gradients and updates: tensorflow or numpy.
        weight_decay: times half the squared parameters is added to the loss.
    """

    __pydantic_config__: ClassVar[dict] = {"extra": "forbid", "strict": True}
    data: str
    optimiser: str
    learning_rate: Positive
    decay_steps: CountIfAny
    decay_rate: Positive
    device: str
    master_on_cpu: bool
    threads: Ranks
    engine: str = "tensorflow"  # the only one, in traces that do not say
    weight_decay: Positive = 5e-4  # likewise


@dataclass(frozen=True)
class Header:
    """The whole job of a run, except the cluster: a profile takes the cluster's place (sim.job.replay).

    Args:
        protocol: its name, or module:Class of a user's own; `settings` are its.
        world: that ran it: event, engine, or a runtime by its name; imported is somebody else's log.
        workload: its name; `model` describes it whole, unless it comes with the simulator; `digest` is of its description.
        batch: samples per worker and step.
        warmup: steps at the start that measurements leave out.
        stragglers: the user's name of the law of sleeps; `law` describes it whole.
        cluster: its name.
        servers: ranks before the workers: the master, or parameter servers; 0 where every rank is a worker.
        servers_on, placement, variable_partitions, test_size, evaluate_every, sleeps_of: see sim.job.scenario.Scenario.
        updates_per_step: of rank 0; as many as workers where each gradient is applied by itself.
        training: of a real run.
        hosts: the name and the cores of each rank's host, where ranks said so; shape (ranks, 2).
        gpus: of each host, which its ranks take in turn; 0 where none computes.
        cpu_s: processor seconds of the measured steps, by rank, where ranks counted them.
        ran_out: how often a worker had time left and no data.
        evaluations: step, loss and accuracy of each.
        sleep_in_compute: sleeps were not logged apart from the computation.
        communication_in_update: nor was the communication from the master's update.
        complete: whether the run came to its end.
        details: further facts for readers; no program depends on them.
    """

    __pydantic_config__: ClassVar[dict] = {"extra": "forbid", "strict": True}
    protocol: str
    world: str
    workload: str
    workers: RanksIfAny
    steps: Count
    warmup: CountIfAny
    batch: Count
    seed: Seed
    replication: CountIfAny = 0
    settings: dict[str, bool | int | float | str] = field(default_factory=dict)
    digest: str = ""
    model: dict[str, Any] | None = None
    stragglers: str = "none"
    law: dict[str, Any] = field(default_factory=lambda: {"kind": "constant", "value": 0.0})
    cluster: str = ""
    servers: RanksIfAny = 1
    servers_on: Literal["own", "workers"] = "own"
    placement: str = "round-robin"
    variable_partitions: Layers = 1
    test_size: CountIfAny = 0
    evaluate_every: Count = 10
    sleeps_of: CountIfAny | None = None
    updates_per_step: Ranks = 1
    training: Training | None = None
    hosts: tuple[tuple[str, int], ...] = ()
    gpus: Annotated[int, Field(ge=0, le=MOST_CORES)] = 0
    cpu_s: dict[str, float] = field(default_factory=dict)
    ran_out: CountIfAny = 0
    evaluations: tuple[tuple[int, float, float], ...] = ()
    sleep_in_compute: bool = False
    communication_in_update: bool = False
    complete: bool = True
    details: dict[str, Any] = field(default_factory=dict)
    schema: str = SCHEMA

    @property
    def ranks(self) -> int:
        """Processes: master or servers, and workers; or one alone."""
        return max(1, self.servers + self.workers)

    @property
    def by_all_ranks(self) -> bool:
        """Whether it is of a text without a master whose steps are those of all ranks (sim.job.scenario)."""
        from sim.protocols import PROTOCOLS

        found = PROTOCOLS.get(self.protocol)
        together = found.text_class.in_step if found else ":" not in self.protocol
        return self.servers == 0 and self.workers > 0 and not together

    @property
    def measured(self) -> bool:
        """Whether its times are those of a real run of ours."""
        return measured(self.world)

    @property
    def foreign(self) -> bool:
        """Whether somebody else's runtime ran it for real, in place of the protocol's text."""
        return self.measured and self.world != OWN_TEXT

    @property
    def engine(self) -> str | None:
        """The library that computed a real run; None of other runs."""
        return self.training.engine if self.training and self.measured else None

    @property
    def job(self) -> str:
        """What is equal in headers of the same job and world, whose hosts and outcomes may differ: as in a file, where tuples are lists.

        Operations that a run counted are no part of the job.
        """
        job = {name: value for name, value in asdict(self).items() if name not in RECORDED}
        if self.model is not None:
            job |= {"digest": "", "model": self.model | {"flops_per_sample": None}}
        return json.dumps(job)

    def text(self) -> str:
        """The header as JSON."""
        return json.dumps(asdict(self))


def measured(world: str) -> bool:
    """Whether times of a world are those of real runs of ours."""
    return world not in (*SIMULATED, IMPORTED)


# What is no part of the job: where it was, and how it went. A field that is added to Header is part of it.
RECORDED = (
    "cluster", "hosts", "gpus", "cpu_s", "ran_out", "evaluations", "complete", "details", "schema",
    "sleep_in_compute", "communication_in_update",
)  # fmt: skip


def checked(text: str | bytes, source: str) -> Header:
    """The header in JSON.

    Args:
        source: the file, as a complaint names it.

    Raises:
        WrongSetting: no JSON, another schema, a field missing, of another type or out of its range.
    """
    table = read_json(text, "trace file", source, WRITTEN)
    if table.get("schema") != SCHEMA:
        raise WrongSetting(f"{source}: schema", table.get("schema"), f"{SCHEMA} (record it again)")
    missing = [one.name for one in fields(Header) if one.name not in table]
    if missing:
        raise WrongSetting(f"{source}: {missing[0]}", None, "this key")
    try:
        header = validator(Header).validate_json(text)
    except ValidationError as error:
        raise from_validation(source, error) from error
    _check_ranks(header, source)
    return header


def _check_ranks(header: Header, source: str) -> None:
    """Check that names are there, and that facts about ranks are about existing ranks."""
    for name in ("protocol", "world", "workload", "placement"):
        if not getattr(header, name):
            raise WrongSetting(f"{source}: {name}", "", "a name")
    if header.updates_per_step > max(1, header.workers):
        raise WrongSetting(f"{source}: updates_per_step", header.updates_per_step, f"at most {max(1, header.workers)}")
    if header.hosts and len(header.hosts) != header.ranks:
        raise WrongSetting(f"{source}: hosts", f"{len(header.hosts)} of them", f"one for each of {header.ranks} ranks")
    for name, cores in header.hosts:
        if not 1 <= cores <= MOST_RANKS:
            raise WrongSetting(f"{source}: hosts", [name, cores], f"1 to {MOST_RANKS} cores")
    for rank, seconds in header.cpu_s.items():
        if not (rank.isdecimal() and int(rank) < header.ranks and 0 <= seconds <= LONGEST_RUN_S):
            raise WrongSetting(f"{source}: cpu_s", {rank: seconds}, f"seconds of ranks 0 to {header.ranks - 1}")
