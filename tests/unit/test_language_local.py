"""Messages within a host take a core of their receiver, which copies them: in closed form, and by the engine alike."""

from dataclasses import dataclass, replace
from functools import partial

import pytest

from sim.language import event
from sim.language.engine import job as engine
from sim.language.hosts import Host
from sim.language.job import Job, Layer
from sim.language.text import Text

KERNELS = pytest.mark.parametrize(
    "run", [event.run, partial(engine.run, kernel=None), engine.run], ids=["event", "plain", "compiled"]
)
EACH_S, BYTE_S, ITEMS = 0.01, 1e-3, 100


@dataclass(frozen=True)
class Told(Text):
    """The first rank tells the others its weights."""

    name = "told"

    def __call__(self, me):
        for _ in me.steps():
            if me.rank == 0:
                for rank in me.workers[1:]:
                    yield from me.post(me.weights, rank)
            else:
                yield from me.take(0, me.weights)


JOB = Job(3, (Layer(ITEMS),), per_host=3, local_overhead_s=EACH_S, local_copy_s=BYTE_S, header_bytes=20)
COPIED_S = EACH_S + BYTE_S * (20 + 4 * ITEMS)


@pytest.mark.parametrize(
    ("job", "end_s"),
    [
        (JOB, COPIED_S),
        (replace(JOB, cores=1), 2 * COPIED_S),  # of all ranks
        (replace(JOB, per_host=1, latency_s=0.0, bandwidth=420.0), 2.0),  # none within a host: ports alone
    ],
)
def test_a_receiver_copies_what_its_host_sends(job, end_s):
    assert event.run(job, Told()).ends_s == [pytest.approx(end_s)]
    if engine._kernel is not None:
        assert engine.run(job, Told()).ends_s == event.run(job, Told()).ends_s


@dataclass(frozen=True)
class Heard(Told):
    """The last rank sends to the second, which waits, while the first computes for some seconds."""

    seconds: float = 0.0

    def __call__(self, me):
        for _ in me.steps():
            if me.rank == 0:
                yield from me.work(seconds=self.seconds)
            elif me.rank == 1:
                yield from me.take(2)
            else:
                yield from me.post(me.weights, 1)


@KERNELS
@pytest.mark.parametrize(
    ("cores", "seconds", "begins_s"),
    [
        (2, 0.5, 0.3),
        (2, 0.0, 0.3),
        (1, 0.0, 0.3),
        (1, 0.5, 0.5),
    ],  # where all cores are busy it waits for its core alone
)
def test_an_idle_core_is_woken_and_a_busy_one_is_not(cores, seconds, begins_s, run):
    job = replace(JOB, kinds=(Host(cores),), local_wakes=True, local_latency_s=0.3)
    assert run(job, Heard(seconds=seconds)).ends_s == [pytest.approx(begins_s + COPIED_S)]


@KERNELS
def test_other_threads_work_for_a_message_at_both_its_ends(run):
    job = replace(JOB, kinds=(Host(1),), local_background_s=0.2)
    assert run(job, Heard()).ends_s == [pytest.approx(2 * 0.2 + COPIED_S)]  # on one core all of it is in turn
    apart = replace(JOB, per_host=1, latency_s=0.0, bandwidth=1e3, overhead_s=0.1, message_background_s=0.7)
    assert run(apart, Heard()).ends_s == [pytest.approx(0.1 + 0.7 + 0.1)]  # longer than its bytes, at its receiver


@dataclass(frozen=True)
class OnOneHost(Text):
    """Rank 0 sends to its neighbour, which takes after a second."""

    name = "on one host"

    def __call__(self, me):
        for _ in me.steps():
            if me.rank == 0:
                handle = yield from me.post(me.weights, 1)
                yield from me.wait(handle)
                assert me.now() == pytest.approx(1.0 + 1e-9 * 4 * ITEMS)  # its receiver has copied it
            else:
                yield from me.work(seconds=1.0)
                yield from me.take(0)


def test_a_message_within_a_host_has_left_when_its_receiver_has_copied_it():
    event.run(replace(JOB, ranks=2, local_overhead_s=0.0, local_copy_s=1e-9, header_bytes=0), OnOneHost())


@dataclass(frozen=True)
class ToItself(Text):
    """A rank takes what it has posted to itself, and then waits for that."""

    name = "to itself"

    def __call__(self, me):
        for _ in me.steps():
            handle = yield from me.post(me.weights, me.rank)
            yield from me.take(me.rank)
            yield from me.wait(handle)


@KERNELS
@pytest.mark.parametrize("ranks", [1, 2])
def test_what_a_rank_has_taken_from_itself_has_left(ranks, run):
    job = replace(JOB, ranks=ranks, per_host=1, header_bytes=0)
    assert run(job, ToItself()).ends_s == [pytest.approx(EACH_S + BYTE_S * 4 * ITEMS)]
