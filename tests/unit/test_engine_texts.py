"""Users' own texts in the engine: those of the subset give the event world's digits, others are refused with their line."""

from __future__ import annotations

import importlib
import math
import os
import random
import sys
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from drawn_statements import HELPERS, Statements
from engines import assert_alike
from scenarios import CLUSTERS, EXACT_S
from sim.engine import choose
from sim.protocols.fmb import FixedMinibatch
from sim.verbs import allreduce, gather, let_go, pull, push, take, training
from sim.verbs.me import GRADIENT, PARAMETERS, Partition
from test_all_ranks import TEXTS, LastIdle, Ring, job

from sim import event, stragglers
from sim.base.errors import RunFailed
from sim.collectives.base import swap
from sim.job.scenario import Scenario
from sim.model import workload
from sim.platform.cluster import Cluster, Host
from sim.protocols.base import Protocol
from sim.simulation import simulate

FUZZ = int(os.environ.get("TRAINSIM_FUZZ", "0"))
DRAWN = 150 * max(1, FUZZ)
PLACES = {"apart": None, "two cores": Cluster(hosts=(Host(count=3, cores=2),)), "polls": CLUSTERS["polls"]}
LAW = "lognormal(mean=20ms, cv=1.5)"


@dataclass(frozen=True)
class Rounds(Protocol):
    """Several gradients a step, each after a sleep of its own."""

    rounds: int = 2

    def worker(self, me):
        for _ in me.steps():
            yield from me.take_up((yield from me.receive(me.master)))
            for _ in range(self.rounds):
                yield from me.sleep()
                yield from me.compute()
                yield from me.send(GRADIENT, me.master)

    def master(self, me):
        for _ in me.steps():
            yield from me.send(PARAMETERS, me.workers)
            for _ in range(self.rounds):
                yield from gather(me, me.workers)
            yield from me.update()
            yield from me.evaluate()


@dataclass(frozen=True)
class Async(Protocol):
    """A name keeps what it was given: the version before the pull."""

    def worker(self, me):
        while training(me):
            before = me.version
            yield from pull(me, me.servers)
            yield from me.sleep()
            if me.version > before:
                yield from me.sleep()
            yield from me.compute()
            yield from push(me, me.servers)

    def server(self, me):
        while True:
            letter = yield from take(me, me.workers)
            if letter is None:
                break
            yield from me.add(letter)
            yield from me.update()
            yield from let_go(me, letter.sender)


@dataclass(frozen=True)
class Skips(FixedMinibatch):
    """Ranks differ by step, and go on with the next one early."""

    def worker(self, me):
        for step in me.steps():
            yield from me.take_up((yield from me.receive(me.master)))
            if (step + me.rank) % 2:
                yield from me.compute()
                yield from me.send(GRADIENT, me.master)
                continue
            for index in range(4):
                yield from me.compute(Partition(index, 4))
            yield from me.send(GRADIENT, me.master)


@dataclass(frozen=True)
class Helpers(FixedMinibatch):
    """Methods that give numbers, and that do something."""

    growth: float = 1.5

    def worker(self, me):
        limit_s = 0.01
        for step in me.steps():
            yield from me.take_up((yield from me.receive(me.master)))
            yield from self.part(me, self.longer_s(limit_s, step))
            limit_s = min(limit_s * self.growth, 0.05)

    def longer_s(self, limit_s, step):
        if step > 1:
            return limit_s * 2
        return limit_s

    def part(self, me, limit_s):
        deadline_s = me.now_s + limit_s
        yield from me.sleep()
        yield from me.compute_until(deadline_s, 8)
        yield from me.send(GRADIENT, me.master)


@dataclass(frozen=True)
class Lists(FixedMinibatch):
    """The master remembers who came, and looks at the first and the last of them."""

    def master(self, me):
        for _ in me.steps():
            odd, came = [worker for worker in me.workers if worker % 2], []
            yield from me.send(PARAMETERS, me.workers)
            for _ in me.workers:
                letter = yield from me.receive(me.workers)
                yield from me.add(letter)
                came.append(letter.sender)
            if came[0] in odd or came[-1] == me.workers[-1]:
                yield from me.sleep()
            yield from me.update()


@dataclass(frozen=True)
class Relay(Protocol):
    """The first worker adds up what others hand in, and sends the sum on: it adds nothing to it afterwards."""

    def worker(self, me):
        for _ in me.steps():
            yield from me.sleep()
            yield from me.compute()
            if me.rank == 1:
                for _ in me.workers[1:]:
                    yield from me.add((yield from me.receive(me.workers)))
            yield from me.send(GRADIENT, me.master if me.rank == 1 else 1)

    def master(self, me):
        for _ in me.steps():
            yield from gather(me, 1)
            yield from me.update()


@dataclass(frozen=True)
class LastServed(Async):
    """The last variable alone is trained."""

    def served(self, workload):
        return workload.variables[-1:]


@dataclass(frozen=True)
class LastSummed(Protocol):
    """The same without servers."""

    def worker(self, me):
        for _ in me.steps():
            yield from me.compute()
            yield from allreduce(me, "ring")
            yield from me.update()

    def summed(self, workload):
        return workload.variables[-1:]


OWN = [Rounds(), Async(), Skips(), Helpers(), Lists(), Relay(), LastServed(), LastSummed()]


@pytest.mark.parametrize("place", [pytest.param(one, marks=[pytest.mark.slow] * (one == "polls")) for one in PLACES])
@pytest.mark.parametrize("text", [*TEXTS, LastIdle(), *OWN], ids=str)
def test_own_texts_are_as_in_the_event_world(compiled, text, place):
    scenario = job(text, 3, LAW, cluster=PLACES[place], steps=3, warmup=1, batch=64)
    if scenario.servers == 1:
        scenario = replace(scenario, test_size=20, evaluate_every=2)
    assert_alike(compiled.Replications, scenario, 1)
    found, expected = compiled.Replications(scenario).outcome(1), event.run(scenario, 1)[0]
    assert (found.rank_step_s is None) == (expected.rank_step_s is None)
    if expected.rank_step_s is not None:
        np.testing.assert_allclose(found.rank_step_s, expected.rank_step_s, rtol=0, atol=1e-9)


@dataclass(frozen=True)
class MeetsAfterwards(Protocol):
    """Each waits for another rank when it has updated: a step has ended before the wait for it."""

    def worker(self, me):
        for _ in me.steps():
            yield from me.sleep()
            yield from me.compute()
            yield from me.update()
            yield from me.exchange(swap(me.rank ^ 1, slice(0, 0), slice(0, 0)))


@pytest.mark.parametrize("text", [Ring(3), MeetsAfterwards()], ids=str)
@pytest.mark.parametrize("warmup", [1, 2])
def test_waits_over_the_ends_of_several_steps(compiled, text, warmup):
    """Ranks may be steps ahead when they begin to wait, and have ended a step before they wait."""
    replications = compiled.Replications(job(text, 4, "niagara*0.01", steps=3, warmup=warmup, batch=8))
    for number in range(8):
        assert_alike(lambda _: replications, replications._scenario, number)


HEAD = """import math
import random
import time
from dataclasses import dataclass, field
from sim.collectives.base import hand, swap, take as taken
from sim.protocols.base import Protocol
from sim.verbs import allreduce, answer, gather, reduce, take, take_first
from sim.verbs.me import GRADIENT, PARAMETERS, Note, Partition

SEEN = []
"""


@pytest.fixture
def written(module):
    """A protocol of the source of its class."""
    return lambda body: importlib.import_module(module(HEAD + body)).Own()


class Always(choose.Engine):
    """An engine that is always asked, and what it gave."""

    def suits(self, left_s: float, within_s: float) -> bool:
        return True

    def outcome(self, replications, number: int, within_s: float = math.inf):
        found = super().outcome(replications, number, within_s)
        self.gave = (*getattr(self, "gave", ()), found is not None)
        return found


SLEEPY = """
@dataclass(frozen=True)
class Own(Protocol):
    def worker(self, me):
        whole = slice(0, me.scenario.summed_items + 1)
        for step in me.steps():
            {}
            if me.now_s >= 0:  # which no array of ranks can tell
                yield from me.sleep()
            yield from me.compute()
            yield from me.exchange(swap(me.rank ^ 1, whole, whole, True))
            yield from me.update()
"""


def asked_of(monkeypatch, protocol: Protocol):
    """The answer to a small job, with the engine at hand; and the engine."""
    engine = Always()
    monkeypatch.setattr(choose, "engine", engine)
    return simulate(job(protocol, 2, LAW, steps=30, warmup=0), replications=2), engine


def test_the_engine_simulates_users_texts(compiled, written, monkeypatch):
    found, engine = asked_of(monkeypatch, protocol := written(SLEEPY.format("x = step")))
    expected = simulate(job(protocol, 2, LAW, steps=30, warmup=0), "event", 2)
    np.testing.assert_allclose(found.step_s, expected.step_s, rtol=0, atol=EXACT_S)
    assert engine.gave
    assert all(engine.gave)


def test_a_note_names_the_line_outside_of_the_subset(compiled, written, monkeypatch):
    found, engine = asked_of(monkeypatch, protocol := written(SLEEPY.format("x = {step: 1}")))
    said = f"which takes longer: {type(protocol).__module__}.py:17: not in the subset: {{step: 1}}"
    assert any(said in note for note in found.notes)
    assert not hasattr(engine, "gave")


LATER = {"x = 1 / (step - 20)": "ZeroDivisionError", "x = [k for k in range(20)][step]": "IndexError"}


@pytest.mark.parametrize("line", LATER)
def test_the_event_world_names_a_mistake_of_a_later_step(compiled, written, monkeypatch, line):
    with pytest.raises(RunFailed, match=rf"\.py:17: {LATER[line]}"):
        asked_of(monkeypatch, written(SLEEPY.format(line)))
    assert choose.engine.gave == (False,)


def test_a_text_whose_source_has_changed_is_refused(compiled, written):
    """What is lowered is what was imported."""
    protocol = written(SLEEPY.format("x = step"))
    path = Path(sys.modules[type(protocol).__module__].__file__)
    path.write_text(path.read_text().replace("x = step", "x = step + 1"))
    with pytest.raises(sys.modules["sim.engine.lowering.values"].NotLowered, match="has changed"):
        compiled.Replications(job(protocol, 2, LAW))


def test_a_text_that_never_waits_pauses(as_python, written, monkeypatch):
    """So that time can be over."""
    monkeypatch.setattr(sys.modules["sim.engine.kernel.loop"], "MOST_JUMPS", 100)
    body = SLEEPY.format("while step > 1:\n                step = step + 1")
    template = as_python.Replications(job(written(body), 2, LAW))._template
    made = sys.modules["sim.engine.job"].Job(template, 0)
    assert [made.run() for _ in range(3)] == [sys.modules["sim.engine.kernel.layout"].PAUSE] * 3


def test_a_name_of_a_function_around_the_text_is_outside(compiled, written):
    """Though the module has one of that name, which is another."""
    body = """
K = 1

def made(K):
    @dataclass(frozen=True)
    class Own(Protocol):
        def worker(self, me):
            for _ in me.steps():
                for _ in range(K):
                    yield from me.compute()
                    yield from me.update()
    return Own

Own = made(1)
"""
    with pytest.raises(sys.modules["sim.engine.lowering.values"].NotLowered, match="around the text: K"):
        compiled.Replications(Scenario(written(body), workload.read("mlp"), 2, steps=2, warmup=0))


PEERS = ["me.workers", "me.workers[:1]", "me.workers[-1]", "me.workers[:-1]", "[w for w in me.workers if w % 2]"]


def drawn_text(rng: random.Random) -> str:
    """The source of a class: like those of amb and fmb, or of ranks without a master, with something changed, or spoilt."""
    computes = ["me.compute()", "me.compute_until(me.now_s + 0.012, 4)", "self.parts(me)"]
    extra = ["me.sleep()", "me.sleep()", "me.evaluate()"]
    worker: list[str] = []
    if rng.random() < 0.4:
        whole = "slice(0, me.scenario.summed_items + 1)"
        sums = ["allreduce(me)", "allreduce(me, 'ring')", f"reduce(me, 'tree', {whole})", "allreduce(me, fused=False)"]
        sums += [f"me.exchange(swap(me.rank ^ 1, {whole}, {whole}, True)) if me.rank ^ 1 in me.workers else ()"]
        worker = [rng.choice(extra), rng.choice(computes), rng.choice(sums), rng.choice(extra), "me.update()"]
        return _class(_spoilt(rng, worker, computes), None, rng)
    master = []
    if rng.random() < 0.8:
        worker, master = ["me.take_up((yield from me.receive(me.master)))"], ["me.send(PARAMETERS, me.workers)"]
    for _ in range(rng.choice([1, 1, 2])):
        worker += [rng.choice(extra), rng.choice(computes), "me.send(GRADIENT, me.master)"]
        master += [f"gather(me, {rng.choice(PEERS if rng.random() < 0.2 else PEERS[:1])})"]
    master += ["me.update()", rng.choice(extra)]
    return _class(_spoilt(rng, worker, computes), _spoilt(rng, master, computes), rng)


def _spoilt(rng: random.Random, said: list[str], computes: list[str]) -> list[str]:
    if rng.random() < 0.08:
        del said[rng.randrange(len(said))]
    if rng.random() < 0.08:
        said.insert(rng.randrange(len(said)), rng.choice([*computes, "me.update()", "me.sleep()"]))
    return said


def _class(worker: list[str], master: list[str] | None, rng: random.Random) -> str:
    lines = ["@dataclass(frozen=True)", "class Own(Protocol):"]
    for role, said in (("worker", worker), ("master", master)):
        if said is None:
            continue
        drawn = Statements(rng)
        lines += [f"    def {role}(self, me):", *(f"        {line}" for line in drawn.begin())]
        lines.append("        for step in me.steps():")
        for verb in said:
            lines += [f"            {line}" for line in drawn.some()]
            where = "            "
            if "sleep" in verb:
                lines.append(f"{where}if {drawn.condition()}:")
                where += "    "
            lines.append(f"{where}yield from {verb}")
    lines += ["    def parts(self, me):", "        for index in range(4):"]
    return "\n".join([*lines, "            yield from me.compute(Partition(index, 4))", HELPERS])


@pytest.mark.slow
def test_drawn_texts_are_as_in_the_event_world(by_numba, written):
    """Where the event world names a mistake, or a deadlock, the engine has no answer. The same in each run, but for TRAINSIM_FUZZ."""
    rng, ran = random.Random(random.randrange(10**9) if FUZZ else 1), Counter()
    refusal = sys.modules["sim.engine.lowering.values"].NotLowered
    for _ in range(DRAWN):
        body, place, number = drawn_text(rng), rng.choice([*CLUSTERS, "apart"]), rng.randrange(3)
        law = rng.choice(["none", LAW, "niagara*0.01", "pareto(mean=5ms,shape=2.5)"])
        about = {"steps": rng.choice([2, 5]), "warmup": rng.choice([0, 1]), "seed": rng.randrange(99)}
        about |= {"cluster": CLUSTERS.get(place), "test_size": rng.choice([0, 50]), "evaluate_every": 2, "batch": 64}
        scenario = Scenario(
            written(body), workload.read("mlp"), rng.choice([1, 2, 3, 5]), stragglers=stragglers.read(law), **about
        )
        try:
            replications = by_numba.Replications(scenario)
        except refusal as error:
            ran["refused" if "registers" not in str(error) else "too long"] += 1
            continue
        try:
            event.run(scenario, number, want_trace=False)
        except RunFailed:
            assert replications.outcome(number) is None, body
            ran["fails"] += 1
            continue
        if (
            replications.outcome(number) is None
        ):  # integers that a register cannot hold, or places before a list's first
            ran["left"] += 1
            continue
        assert_alike(lambda _, made=replications: made, scenario, number)
        ran["same"] += 1
    assert ran["same"] > DRAWN / 2, ran
