"""Texts that are drawn: the vector world refuses what it cannot do exactly, and equals the event world in all else."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sim import event, simulation, stragglers, vector
from sim import verbs as verbs_of_texts
from sim.answers.outcome import of_trace
from sim.base.errors import RunFailed
from sim.job.scenario import Scenario
from sim.laws import LogNormal
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.platform.cluster import Cluster, Host, Link
from sim.protocols.base import Protocol
from sim.vector.together import Each
from sim.verbs.me import GRADIENT, PARAMETERS

pytestmark = pytest.mark.slow

MLP = workload.read("mlp")
EXACT_S = 1e-9
# By name, so that the class does not say which of them it uses.
FUNCTIONS = {name: getattr(verbs_of_texts, name) for name in ("gather", "answer", "allreduce", "take")}
WORKERS = {  # how a master names workers
    "all": lambda ranks: ranks,
    "a list": list,
    "a tuple": lambda ranks: tuple(rank for rank in ranks if rank in ranks),
    "by number": lambda ranks: [ranks[i] for i in range(len(ranks))],
    "first": lambda ranks: ranks[:1],
    "last": lambda ranks: ranks[-1],
    "all but the last": lambda ranks: ranks[:-1],
    "backwards": lambda ranks: ranks[::-1],
    "the first twice": lambda ranks: [ranks[0], *ranks],
}


@dataclass(frozen=True)
class Drawn(Protocol):
    """What worker and master do in each round: verbs with an argument each."""

    of_worker: tuple = ()
    of_master: tuple = ()
    name = "drawn"

    def worker(self, me):
        for step in me.steps():
            yield from self.follow(me, step, self.of_worker)

    def master(self, me):
        for step in me.steps():
            yield from self.follow(me, step, self.of_master)

    def follow(self, me, step, verbs):
        for verb, about in verbs:
            if verb in SOMETIMES:
                if SOMETIMES[verb](me, step, about):
                    yield from me.sleep()
            elif hasattr(self, verb):
                yield from getattr(self, verb)(me, about)
            elif verb in FUNCTIONS:
                yield from FUNCTIONS[verb](me, *([about] if about else []))
            else:
                yield from getattr(me, verb)()

    def send(self, me, about):
        yield from me.send(PARAMETERS if about else GRADIENT, WORKERS[about](me.workers) if about else me.servers)

    def gather(self, me, about):
        yield from FUNCTIONS["gather"](me, WORKERS[about](me.workers) if about else me.servers)

    def answer(self, me, about):
        yield from FUNCTIONS["answer"](me, WORKERS[about](me.workers) if about else me.servers)

    def compute_until(self, me, seconds):
        deadline_s = me.now_s
        deadline_s += seconds
        yield from me.compute_until(deadline_s, 4)

    def each(self, me, _):
        for worker in me.workers:
            yield from me.send(PARAMETERS, worker)

    def take(self, me, _):
        yield from getattr(me, "add")((yield from FUNCTIONS["take"](me, me.workers)))  # noqa: B009 by name

    def receive(self, me, _):
        for _ in me.servers:
            yield from me.take_up((yield from me.receive(me.servers)))


class Ring(Drawn):
    """Workers without a master."""

    master = Protocol.master


class Served(Drawn):
    """Servers in place of a master."""

    server = Drawn.master


class LastServed(Drawn):
    """The last variable alone is trained."""

    def served(self, workload):
        return workload.variables[-1:]


class LastSummed(Ring):
    """The same without a master."""

    def summed(self, workload):
        return workload.variables[-1:]


SOMETIMES = {
    "by rank": lambda me, step, about: me.rank == about,
    "by time": lambda me, step, about: me.now_s > about / 10,
    "by step": lambda me, step, about: step % about == 0,
    "by number": lambda me, step, about: len(me.workers) > about and about in me.workers,
    "by truth": lambda me, step, about: me.now_s - me.now_s,
    "by mean": lambda me, step, about: np.mean(me.now_s) > about / 10,
}


FLAGS = {
    **dict.fromkeys(("overlaps", "local_aggregation", "in_library"), True),
    "delay_std_s": 0.5,
}
MORE = [(verb, None) for verb in ("compute", "update", "take", "sleep")] + [("answer", "all"), ("gather", "all")]


def seconds(most: float):
    return st.floats(0, most, allow_nan=False)


@st.composite
def texts(draw) -> Drawn:
    """Like those of amb and fmb, with other peers; updates are missing or double, there is a verb too many or too few, flags are false."""
    worker, master = [], []
    plain = [[]] * 6 + [[("sleep", None)], [("evaluate", None)]]
    asks = [[(verb, about)] for verb in SOMETIMES for about in (1, 2, 3)]
    extra = st.sampled_from(plain * 40 + asks)
    compute = st.one_of(st.just(("compute", None)), st.tuples(st.just("compute_until"), seconds(0.02)))
    peers = st.sampled_from(["all", "a list"] * 20 + list(WORKERS))
    for _ in range(draw(st.sampled_from([1, 1, 2]))):
        if draw(st.integers(0, 4)):
            master += [("send", draw(peers)) if draw(st.integers(0, 19)) else ("each", None)]
            worker += [("receive", None)]
        for _ in range(draw(st.sampled_from([1, 1, 1, 2]))):
            worker += [*draw(extra), draw(compute), *draw(extra), ("send", None)]
            master += [*draw(extra), ("gather", draw(peers))]
    master += [("update", None)] * draw(st.sampled_from([1] * 20 + [0, 2])) + draw(extra)
    flag = dict([draw(st.sampled_from(list(FLAGS.items())))]) if not draw(st.integers(0, 9)) else {}
    return type("Flagged", (Drawn,), flag)(spoilt(draw, worker), spoilt(draw, master))


def spoilt(draw, said: list) -> tuple:
    """As they are, mostly; else without one of them, or with one more."""
    if not draw(st.integers(0, 19)):
        del said[draw(st.integers(0, len(said) - 1))]
    if not draw(st.integers(0, 19)):
        said.insert(draw(st.integers(0, len(said))), draw(st.sampled_from(MORE)))
    return tuple(said)


@st.composite
def rings(draw) -> Drawn:
    """Like that of allreduce, with other algorithms than its class has."""
    extra = st.sampled_from([[]] * 3 + [[("sleep", None)], [("evaluate", None)]])
    sums = [("allreduce", draw(st.sampled_from(["ring"] * 9 + ["tree", "auto", None])))]
    said = [*draw(extra), ("compute", None), *draw(extra), *sums, *draw(extra), ("update", None), *draw(extra)]
    return Ring(spoilt(draw, said))


def line():
    return st.builds(Line, base_s=st.floats(1e-6, 1e-2), slope_s=seconds(1e-6), cold_s=seconds(1e-2))


@st.composite
def jobs(draw) -> dict:
    workers = draw(st.integers(1, 4))
    speeds = draw(st.lists(st.floats(0.3, 3), min_size=workers + 1, max_size=workers + 1))
    kinds = ("compute", "partition", "input", "pack", "take_up", "reduce", "update", "evaluate")
    costs = Costs(
        **{kind: draw(line()) for kind in kinds},
        resume_s=draw(seconds(1e-2)),
        resume_error_s=draw(seconds(1e-2)),
        noise=LogNormal(cv=draw(st.sampled_from([0.0, 0.5]))),
    )
    link = Link(
        latency_s=draw(seconds(1e-2)),
        overhead_s=draw(seconds(1e-3)),
        gap_s=draw(seconds(1e-3)),
        bandwidth_bytes_per_s=draw(st.floats(1e6, 1e10)),
    )
    cores = draw(st.sampled_from([1, 1, 2, 3]))  # and as many ranks
    hosts = [Host(name=f"h{i}", speed=speed, cores=cores) for i, speed in enumerate(speeds)]
    return {
        "workers": workers,
        "steps": draw(st.integers(1, 6)),
        "warmup": draw(st.integers(0, 2)),
        "batch": 40,
        "cluster": Cluster(hosts=hosts, network=link, costs={"mlp": costs}),
        "stragglers": stragglers.read(draw(st.sampled_from(["none", "niagara*0.02", "cedar*0.3"]))),
        "seed": draw(st.integers(0, 99)),
        "test_size": draw(st.sampled_from([0, 50])),
        "evaluate_every": 2,
    }


def text(worker: str, master: str) -> Drawn:
    """From `verb` and `verb:argument`, separated by commas."""
    return Drawn(verbs(worker), verbs(master))


def verbs(side: str) -> tuple:
    words = [word.partition(":") for word in side.split(", ")]
    return tuple((verb, float(about) if about[:1].isdigit() else about or None) for verb, _, about in words)


def quiet(workers: int = 3) -> dict:
    """A job in which a sample takes 1 ms."""
    cluster = Cluster(hosts=[Host(count=workers + 1)], costs={"mlp": Costs(compute=Line(slope_s=1e-3))})
    return {"workers": workers, "steps": 4, "warmup": 1, "batch": 40, "cluster": cluster}


SLOW = Cluster(
    hosts=[Host(count=4)],
    network=Link(bandwidth_bytes_per_s=1e6),
    costs={"mlp": Costs(**dict.fromkeys(("compute", "pack", "take_up", "reduce", "update"), Line(slope_s=1e-6)))},
)
OF_ALL = "send:all, gather:all, update"
OF_TWO = text("receive, sleep, compute, send", "send:all, gather:all but the last, update")
BY_RANK, BY_TRUTH = (text(f"receive, {sometimes}:1, compute, send", OF_ALL) for sometimes in ("by rank", "by truth"))


@settings(max_examples=300, deadline=None)
@example(OF_TWO, quiet(), 0)
@example(text("compute, send, compute, send", "gather:all, gather:all, update"), quiet(), 0)
@example(text("receive, compute, send", "send:all, compute, gather:all, update"), quiet(), 1)
@example(text("receive, compute, update, send", "send:all, gather:all"), quiet(), 0)
@example(Served(verbs("receive, compute, send"), verbs(OF_ALL)), quiet() | {"servers": 2, "cluster": None}, 0)
@example(LastServed(verbs("receive, compute, send"), verbs(OF_ALL)), quiet() | {"cluster": SLOW}, 0)
@example(LastSummed(verbs("compute, allreduce:ring, update")), quiet() | {"cluster": SLOW}, 0)
@example(Ring(verbs("compute, allreduce, update")), quiet(), 0)
@example(Ring(verbs("compute, allreduce:ring, allreduce:ring, update")), quiet(), 0)
@example(BY_RANK, quiet() | {"stragglers": stragglers.read("cedar")}, 0)
@example(BY_TRUTH, quiet() | {"stragglers": stragglers.read("cedar")}, 0)
@given(st.one_of(texts(), rings()), jobs(), st.integers(0, 1))
def test_drawn_texts_are_refused_or_run_alike(protocol, job, replication):
    scenario = Scenario(protocol, MLP, **job)
    try:
        found = vector.run(scenario, replication + 1)
    except vector.Refused:
        return
    except RunFailed:
        with pytest.raises(RunFailed):
            event.trace(scenario, replication)
        return
    expected = of_trace(event.trace(scenario, replication))
    np.testing.assert_allclose(found.step_s[replication], expected.step_s[0], rtol=0, atol=EXACT_S)
    np.testing.assert_array_equal(found.samples[replication], expected.samples[0])
    np.testing.assert_allclose(found.idle_fraction[replication], expected.idle_fraction[0], rtol=0, atol=1e-7)


def _of_event(scenario: Scenario) -> list | str:
    """What two replications come to in the event world, or why they come to nothing."""
    try:
        return [of_trace(event.trace(scenario, replication)) for replication in range(2)]
    except RunFailed as error:
        return str(error)


@settings(max_examples=60, deadline=None)
@example(OF_TWO, quiet())
@given(st.one_of(texts(), rings()), jobs())
def test_of_itself_a_drawn_text_gets_the_event_worlds_answer(protocol, job):
    """Of both replications, and of the one that the vector world runs first; where the event world fails there is none."""
    scenario = Scenario(protocol, MLP, **job)
    expected = _of_event(scenario)
    if isinstance(expected, str):
        with pytest.raises(RunFailed, match=re.escape(expected)):
            simulation.simulate(scenario, replications=2)
        return
    found = simulation.simulate(scenario, replications=2).outcome
    np.testing.assert_allclose(found.step_s, [one.step_s[0] for one in expected], rtol=0, atol=EXACT_S)
    np.testing.assert_array_equal(found.samples, [one.samples[0] for one in expected])


@pytest.mark.parametrize(
    ("worker", "master"),
    [
        ("receive, compute, send", "send:a list, gather:backwards, update"),
        ("receive, compute, send", "send:a tuple, gather:by number, update"),
        ("compute, send", "gather:all, update"),
        ("receive, compute_until:0.01, send", "send:all, gather:all, update"),
        ("receive, compute, send", "send:all, gather:the first twice, update"),
        ("receive, compute, send", "send:all, compute, gather:all, update"),
    ],
)
def test_the_vector_world_runs_what_it_can(worker, master):
    scenario = Scenario(text(worker, master), MLP, **quiet())
    assert simulation.simulate(scenario, replications=2).world == "vector"


LOOKS = [bool, float, int, str, hash, iter, len, math.floor, round, abs, "{:.3}".format]
OF_NUMPY = [np.mean, np.max, np.asarray, np.add.reduce, np.sqrt, lambda now_s: now_s + np.ones(3)]
COMPARED = [lambda now_s: now_s > 1, lambda now_s: now_s == 1, lambda now_s: max(now_s, 1), lambda now_s: {now_s: 1}]


@pytest.mark.parametrize("look", [*LOOKS, *OF_NUMPY, *COMPARED])
def test_a_text_may_not_look_at_what_differs_between_workers(look):
    refused = vector.Refused("it looks")
    clock = Each(np.arange(6.0).reshape(2, 3), lambda _: refused)
    with pytest.raises(vector.Refused):
        look(clock)


def test_a_text_may_reckon_with_its_clock():
    clock = Each(np.arange(6.0).reshape(2, 3), vector.Refused)
    deadline_s = clock
    deadline_s += np.float64(0.5)
    later_s = 2 * (deadline_s - clock) + deadline_s / 4 - -clock
    np.testing.assert_array_equal(later_s.values, 1 + (clock.values + 0.5) / 4 + clock.values)
    np.testing.assert_array_equal(clock.values, np.arange(6.0).reshape(2, 3))


@dataclass(frozen=True)
class Catching(Drawn):
    """It goes on whatever is refused."""

    def worker(self, me):
        for _ in me.steps():
            yield from me.take_up((yield from me.receive(me.master)))
            try:
                late = me.now_s > 1
            except ValueError:
                late = False
            yield from me.compute_until(me.now_s + late, 4)
            yield from me.send(GRADIENT, me.master)


def test_a_refusal_ends_the_run_even_if_the_text_catches_it():
    scenario = Scenario(Catching(of_master=verbs(OF_ALL)), MLP, **quiet())
    with pytest.raises(vector.Refused, match="the text reads"):
        vector.run(scenario)
    assert simulation.simulate(scenario, replications=1).world == "event"
