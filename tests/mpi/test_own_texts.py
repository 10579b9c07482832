"""Texts of one's own that the simulated worlds run, over MPI: the same record, and gradients that add up to the same parameters."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import event
import numpy as np
import pytest

from sim import protocols, stragglers
from sim.job.scenario import Scenario
from sim.model import workload
from sim.recording.conformance import order, record
from sim.recording.traces import read

pytestmark = [pytest.mark.mpi, pytest.mark.tensorflow]
ROOT = Path(__file__).parents[2]
TEXTS = '''
from dataclasses import dataclass

from sim.collectives.base import Exchange
from sim.protocols.base import Protocol
from sim.verbs import allreduce, answer, gather, hear, pull, take, tell
from sim.verbs.me import GRADIENT, PARAMETERS, Partition


@dataclass(frozen=True)
class Swap(Protocol):
    """Two workers swap whole gradients; the longest are sent only once the peer receives."""

    def worker(self, me):
        whole, peer = slice(0, sum(variable.size for variable in me.scenario.summed) + 1), me.rank ^ 1
        for _ in me.steps():
            yield from me.compute()
            yield from me.exchange(Exchange(peer, whole, peer, whole))
            yield from me.update()


@dataclass(frozen=True)
class Neighbours(Protocol):
    """Two neighbours sum their gradients; a last worker without one has its own."""

    def worker(self, me):
        whole, peer = slice(0, sum(variable.size for variable in me.scenario.summed) + 1), me.rank ^ 1
        for _ in me.steps():
            yield from me.compute()
            if peer < len(me.hosts):
                yield from me.exchange(Exchange(peer, whole, peer, whole, adds=True))
            yield from me.update()


@dataclass(frozen=True)
class InParts(Protocol):
    """Workers without a master compute in parts, after two sleeps each."""

    parts: int = 4

    def worker(self, me):
        for _ in me.steps():
            for index in range(self.parts):
                yield from me.sleep()
                yield from me.compute(Partition(index, self.parts))
            yield from allreduce(me, "ring")
            yield from me.update()
            yield from me.evaluate()


@dataclass(frozen=True)
class Leader(Protocol):
    """The first worker adds up all gradients, and hands the sum back."""

    def worker(self, me):
        whole, (first, *others) = slice(0, sum(variable.size for variable in me.scenario.summed) + 1), me.workers
        for _ in me.steps():
            yield from me.sleep()
            yield from me.compute()
            if me.rank == first:
                for other in others:
                    yield from me.exchange(Exchange(source=other, taken=whole, adds=True))
                for other in others:
                    yield from me.exchange(Exchange(to=other, sent=whole))
            else:
                yield from me.exchange(Exchange(to=first, sent=whole))
                yield from me.exchange(Exchange(source=first, taken=whole))
            yield from me.update()


@dataclass(frozen=True)
class Master(Protocol):
    """Workers send to the master."""

    def worker(self, me):
        for _ in me.steps():
            yield from me.take_up((yield from me.receive(me.master)))
            yield from me.compute()
            yield from me.send(GRADIENT, me.master)

    def master(self, me):
        for _ in me.steps():
            yield from me.send(PARAMETERS, me.workers)
            yield from gather(me, me.workers)
            yield from me.update()


@dataclass(frozen=True)
class Rounds(Protocol):
    """Several gradients a step; the master takes them as they come, or one after another."""

    rounds: int = 2
    apart: bool = False

    def worker(self, me):
        for _ in me.steps():
            yield from me.take_up((yield from me.receive(me.master)))
            yield from me.sleep()
            for _ in range(self.rounds):
                yield from me.compute()
                yield from me.send(GRADIENT, me.master)

    def master(self, me):
        for _ in me.steps():
            for worker in list(me.workers)[::-1] if self.apart else [me.workers]:
                yield from me.send(PARAMETERS, worker)
            for _ in range(self.rounds):
                for worker in me.workers if self.apart else [me.workers]:
                    yield from gather(me, worker)
            yield from me.update()
            yield from me.evaluate()


@dataclass(frozen=True)
class Drops(Master):
    """The master uses the first gradient of its parameters; at the end nobody receives those that are late."""

    def master(self, me):
        for _ in me.steps():
            yield from me.send(PARAMETERS, me.workers, wait=False)
            letter = yield from take(me, me.workers)
            while letter.version < me.version:
                letter = yield from take(me, me.workers)
            yield from me.add(letter)
            yield from me.update()


@dataclass(frozen=True)
class Racks(Master):
    """The first worker of a rack adds up its workers' gradients; one of them goes on before its gradient has left."""

    def worker(self, me):
        first, *others = me.workers
        for _ in me.steps():
            yield from me.take_up((yield from me.receive(me.master)))
            yield from me.compute()
            if me.rank == first:
                yield from gather(me, others)
                yield from me.send(GRADIENT, me.master)
            else:
                yield from me.send(GRADIENT, first, wait=me.rank == others[0])

    def master(self, me):
        for _ in me.steps():
            yield from me.send(PARAMETERS, me.workers)
            yield from gather(me, me.workers[:1])
            yield from me.update()


@dataclass(frozen=True)
class Servers(Protocol):
    """Servers hand out parameters, wait until these have left, and gather gradients."""

    by_rack: bool = False

    def server(self, me):
        for _ in me.steps():
            yield from me.send(PARAMETERS, me.workers)
            yield from gather(me, me.workers[:1] if self.by_rack else me.workers)
            yield from me.update()

    def worker(self, me):
        first, *others = me.workers
        for _ in me.steps():
            for server in me.servers:
                yield from me.take_up((yield from me.receive(server)))
            for index in range(2):
                yield from me.compute(Partition(index, 2))
            if not self.by_rack:
                yield from me.send(GRADIENT, me.servers, wait=False)
            elif me.rank == first:
                for worker in others:
                    yield from hear(me, worker)
                    yield from gather(me, worker)
                yield from me.send(GRADIENT, me.servers)
            else:
                yield from tell(me, first)
                yield from me.send(GRADIENT, first)


@dataclass(frozen=True)
class Rows(Protocol):
    """Servers of sparse rows, which workers ask for once they have a minibatch."""

    parts: int = 1
    by_rack: bool = False

    def server(self, me):
        for _ in me.steps():
            left = set(me.workers)
            while left:  # the gradient of one may come before another one asks
                note = yield from me.receive(left)
                left.discard(note.sender)
                yield from answer(me, [note.sender])
            yield from gather(me, me.workers[:1] if self.by_rack else me.workers)
            yield from me.update()

    def worker(self, me):
        first, *others = me.workers
        for _ in me.steps():
            yield from me.fetch()
            yield from pull(me, me.servers)
            for index in range(self.parts):
                yield from me.compute(Partition(index, self.parts) if self.parts > 1 else None)
            if not self.by_rack:
                yield from me.send(GRADIENT, me.servers, wait=False)
            elif me.rank == first:
                for worker in others:
                    yield from gather(me, worker)
                yield from me.send(GRADIENT, me.servers)
            else:
                yield from me.send(GRADIENT, first)
'''
CELLS = {  # a class and its options: how many workers, and further ones
    "Swap": ("Swap", 2, {}),
    "InParts": ("InParts", 2, {}),
    "Allreduce": ("InParts", 2, {"parts": 1}),
    "Ring": ("InParts", 3, {"parts": 1}),
    "Leader": ("Leader", 3, {}),
    "Master": ("Master", 3, {}),
    "Racks": ("Racks", 3, {}),
    "Rounds": ("Rounds", 2, {}),
    "Apart": ("Rounds", 2, {"apart": True}),
    "Drops": ("Drops", 3, {}),
    "Servers": ("Servers", 3, {}),
    "ByRack": ("Servers", 3, {"by_rack": True}),
    "Rows": ("Rows", 2, {}),
    "RowsInParts": ("Rows", 2, {"parts": 2}),
    "RowsByRack": ("Rows", 2, {"by_rack": True}),
}
MODELS = {"Rows": "bigram"}
EVALUATED = ("Allreduce", "Rounds", "Apart")
EVALUATION = {"test_size": 10, "evaluate_every": 3}
EQUAL = (
    ("Rows", "RowsInParts"),
    ("Rows", "RowsByRack"),
    ("InParts", "Allreduce"),
    ("Ring", "Leader"),
    ("Master", "Racks"),
    ("Rounds", "Apart"),
    ("Servers", "ByRack"),
    ("Master", "Servers"),
)


@pytest.fixture
def module(module):
    """The name of a user's module with these texts."""
    return module(TEXTS)


def test_what_is_simulated_runs(module, campaign, tmp_path):
    cells = []
    for cell, (name, workers, settings) in CELLS.items():
        line = ["--protocol", f"{module}:{name}", "--workers", str(workers), "--batch", "32"]
        line += ["--workload", MODELS.get(name, "mlp")]
        line += [word for key, value in settings.items() for word in ("--set", f"{key}={str(value).lower()}")]
        line += ["--servers", "2"] if name == "Servers" else []
        line += ["--test-size", "10", "--evaluate-every", "3"] if cell in EVALUATED else []
        line += ["--steps", "5", "--warmup", "2", "--optimiser", "sgd", "--stragglers", "exponential(mean=2ms)"]
        cells.append([*line, "--parameters", tmp_path / f"{cell}.npz", "--trace", tmp_path / f"{cell}.parquet"])
    campaign(cells, tmp_path)
    for cell, (name, workers, settings) in CELLS.items():
        real = read(tmp_path / f"{cell}.parquet")
        protocol = protocols.make(f"{module}:{name}", [f"{key}={value}" for key, value in settings.items()])
        job = {"workers": workers, "batch": 32, "steps": 5, "warmup": 2, "servers": 2 if name == "Servers" else 1}
        job |= EVALUATION if cell in EVALUATED else {}
        scenario = Scenario(
            protocol, workload.read(MODELS.get(name, "mlp")), stragglers=stragglers.read("exponential(mean=2ms)"), **job
        )
        assert real.header.complete
        assert (real.header.protocol, real.header.world) == (f"{module}:{name}", "mpi")
        if name in (
            "Drops",
            "Rows",
        ):  # whose gradient is first, and how many rows a minibatch reads, no world tells another
            continue
        found, expected = record(real), record(event.trace(scenario))
        if name == "Servers":  # whether a worker's last gradient has left before its next one is the machine's to say
            found, expected = (
                Counter({row: count for row, count in of.items() if row[2] != "wait"}) for of in (found, expected)
            )
        assert found == expected, cell
        assert cell not in EVALUATED or order(real) == order(event.trace(scenario)), cell
        if name == "InParts":
            _sleeps_are_those_that_were_drawn(real, scenario)
    kept = {cell: np.load(tmp_path / f"{cell}.npz") for cell in CELLS}
    for one, other in EQUAL:  # the same gradients, in another order
        for key in kept[one].files:
            np.testing.assert_allclose(kept[one][key], kept[other][key], rtol=1e-4, atol=1e-5, err_msg=f"{one} {other}")


def test_the_check_runs_two_three_and_four_workers_and_compares_replicas(module):
    line = [sys.executable, "-m", "sim.protocols.check", f"{module}:Neighbours"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=1200, check=False, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    said = "; ".join(
        rf"{workers} workers trained, and their record is the simulated one \(\d+ activities\)" for workers in (2, 3, 4)
    )
    assert re.search(rf"^real run      {said}$", done.stdout, re.MULTILINE)
    assert re.search(
        r"^replicas      the parameters of 3 ranks end as 2 different ones: replicas drift", done.stdout, re.MULTILINE
    )


def _sleeps_are_those_that_were_drawn(real, scenario) -> None:
    rows = real.rows[(real.rows["activity"] == "sleep") & (real.rows["rank"] == 1)].sort_values("start_s")
    slept_s = (rows["end_s"] - rows["start_s"]).to_numpy().reshape(scenario.rounds, -1)
    for call in range(slept_s.shape[1]):
        drawn_s = scenario.draws.sleeps(0, 2, call).first(scenario.rounds)
        assert (slept_s[:, call] >= drawn_s - 1e-6).all()
