"""What a text asks of a rank's engine, learned from its first steps in simulated time: what is slow to make is made before the run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate

from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.language import event, mistakes
from sim.language.event.valueless import Valueless
from sim.language.job import Job, Laws
from sim.language.layers import Layer, Rows
from sim.language.library import Library
from sim.language.pieces import Piece
from sim.language.text import Text
from sim.model.sizes import HEADER_BYTES, ITEM_BYTES
from sim.protocols import is_ours
from sim.protocols.base import text_of
from sim.runs.job import Drawn, layers_of

TRIED = 3  # steps
PASS_S = 1e-3  # of a minibatch, in those
NOTHING = Laws()


@dataclass(frozen=True)
class Asked:
    """What a text asks for.

    Args:
        layered: passes through some layers by themselves.
        drops: weights are dropped.
        samples: of the gradients that ranks compute, by the rank.
        updates: pieces of the weights, (first item, behind the last), by the rank that updates them.
        sparse: those of layers of which rows travel.
    """

    layered: bool
    drops: bool
    samples: dict[int, set[int]]
    updates: dict[int, dict[tuple[int, int], None]]
    sparse: list[tuple[int, int]]

    def dense(self, rank: int) -> list[tuple[int, int]]:
        """The pieces that a rank updates and that have no sparse layer."""
        return [
            (start, stop)
            for start, stop in self.updates.get(rank, ())
            if not any(start < last and first < stop for first, last in self.sparse)
        ]

    def of(self, rank: int) -> list[tuple[int, int]]:
        """The pieces that a rank updates and none before it does."""
        return [
            piece for piece in self.updates[rank] if not any(piece in self.updates[before] for before in range(rank))
        ]


class Noting(Valueless):
    """Notes what texts ask for.

    Raises:
        WrongSetting: no engine has it.
    """

    def __init__(self, job: Job, text: Text):
        self._job, self._name = job, text.name
        self.layered = self.drops = False
        self.samples = defaultdict[int, set[int]](set)
        self.updates = defaultdict[int, dict[tuple[int, int], None]](dict)

    def forward(self, me, command) -> None:
        """A forward pass is over, or samples are fetched."""
        self.layered |= 0 < command.stop - command.first < len(me.layers)

    def backward(self, me, command) -> None:
        """A backward pass is over, or gradients are joined."""
        self.forward(me, command)
        if command.stop:
            self.samples[me.rank].add(len(self._job.micro_batch(command.micro, command.of)))

    def update(self, me, command) -> None:
        """An update is over."""
        if command.rate is not None:
            raise self._lacking("me.update without a rate of the text's own")
        start, stop = one = command.piece.start, command.piece.stop
        for first, last in self.updates[me.rank]:
            if max(start, first) < min(stop, last) and (first, last) != one:
                raise self._lacking("updates of pieces that do not overlap: an optimiser has a state for each")
        self.updates[me.rank][one] = None

    def drop(self, me, command) -> None:
        """A piece is dropped."""
        self.drops |= command.piece.vector == "weights"

    def read(self, me, piece: Piece) -> None:
        """A piece is sent."""
        if piece.vector.partition(" ")[0] in ("activation", "slope"):
            raise self._lacking("a text that sends no activations: engines give weights and gradients alone")

    def _lacking(self, allowed: str) -> WrongSetting:
        return WrongSetting("--protocol", self._name, f"{allowed}, in a real run")


def job_of(scenario: Scenario, replication: int = 0, placement: Sequence[int] = ()) -> Job:
    """The job of a run whose times nobody has to say.

    Args:
        placement: the host of each rank; the scenario's if empty.
    """
    laws = Drawn(scenario, text_of(scenario).delay_std_s)
    placement = tuple(placement or scenario.hosts)
    return _job(scenario, laws=laws, replication=replication, seed=scenario.seed, placement=placement)


def _job(scenario: Scenario, **more) -> Job:
    text, servers = text_of(scenario), scenario.servers
    shares = [(size - HEADER_BYTES) // ITEM_BYTES for size in scenario.traffic.server_bytes] if servers > 1 else []
    return Job(
        scenario.ranks,
        tuple(_without_law(layer) for layer in layers_of(scenario, text, PASS_S)),
        scenario.rounds,
        scenario.warmup,
        scenario.batch,
        item_bytes=ITEM_BYTES,
        header_bytes=HEADER_BYTES if servers else 0,
        evaluate_every=scenario.evaluate_every,
        shares=tuple(shares),
        library=Library(auto=scenario.algorithm("auto")),
        **more,
    )


def _without_law(layer: Layer) -> Layer:
    """A layer of which data say how many rows a minibatch touches."""
    return replace(layer, rows=layer.rows and Rows(layer.rows.count, _one))


def _one(minibatches: int) -> int:
    return 1


def asked_of(scenario: Scenario) -> Asked:
    """What the ranks of a scenario ask for.

    Raises:
        WrongSetting: no engine has it.
        WrongText: a user's text makes a mistake that is seen in its source.
        RunFailed: they wait for one another for ever, or do what no world can run.
    """
    if not is_ours(scenario.protocol):
        mistakes.check(text_of(scenario))
    job = _job(scenario, placement=tuple(scenario.hosts))
    return _tried(
        replace(job, steps=min(job.steps, TRIED), warmup=0, evaluate_every=1, laws=NOTHING), text_of(scenario)
    )


@lru_cache(maxsize=8)
def _tried(job: Job, text: Text) -> Asked:
    noted = Noting(job, text)
    event.run(job, text, noted)
    ends = [0, *accumulate(layer.items for layer in job.layers)]
    sparse = [(ends[layer], ends[layer + 1]) for layer in job.sparse]
    return Asked(noted.layered, noted.drops, noted.samples, noted.updates, sparse)
