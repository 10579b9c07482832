"""Hosts of the language: where ranks are, cores that they share, GPUs, polls; closed forms, and the worlds of today."""

from dataclasses import dataclass, replace

import pytest

from sim.base.errors import WrongSetting
from sim.language.event import run
from sim.language.hosts import MOST_TURNS, TICK_S, Host, devices
from sim.language.job import Job, Laws, Layer
from sim.language.text import Text
from sim.language.verbs import compute
from sim.laws import Constant
from sim.platform.polling import LONGEST_S

T, EXACT = 0.3, 1e-12


@dataclass(frozen=True)
class Own(Text):
    name = "own"
    works: tuple[float, ...] = ()  # seconds, of each rank; passes where there are none

    def __call__(self, me):
        for _ in me.steps():
            if self.works:
                yield from me.work(seconds=self.works[me.rank])
            else:
                yield from compute(me)


class Asking(Own):
    """Rank 0 waits for the last rank, which works a while."""

    def __call__(self, me):
        for _ in me.steps():
            if me.rank == me.n - 1:
                yield from me.work(seconds=self.works[0])
                yield from me.post(me.weights[:0], 0)
            elif me.rank == 0:
                yield from me.take(me.n - 1)
            else:
                yield from me.work(seconds=self.works[me.rank])


def ends(text, ranks, **more) -> list[float]:
    """When each rank has ended its only round, by jobs whose other ranks end at once."""
    return run(Job(ranks, (Layer(1, T / 3, 2 * T / 3),), 1, latency_s=0.0, **more), text).ends_s


def test_ranks_are_where_they_are_placed():
    job = Job(5, (Layer(1),), placement=(0, 0, 1, 1, 0), kinds=(Host(2), Host(4, gpus=2)))
    assert job.hosts == 2
    made, of_passes, of_work = devices(job)
    assert of_work == [0, 0, 1, 1, 0]
    assert [made[number].cores for number in of_passes] == [2, 2, 1, 1, 2]
    assert of_passes[2] != of_passes[3]
    assert Job(5, (Layer(1),), per_host=2).hosts == 3
    for wrong in ({"placement": (0, 1)}, {"kinds": (Host(),)}):
        with pytest.raises(WrongSetting):
            Job(5, (Layer(1),), **wrong)
    with pytest.raises(WrongSetting, match="contention"):
        Host(2, contention=0.1)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        (Host(1), 3 * T),  # one after another
        (Host(1, 0.0), 3 * T),
        (Host(1, TICK_S), 3 * T),
        (Host(3, TICK_S), T),
        (Host(2, 0.0), 1.5 * T),
        (Host(3, 0.0, 0.1), 1.2 * T),
        (Host(3, TICK_S, 0.1), 1.2 * T),
        (Host(3, gpus=1), 3 * T),
        (Host(3, gpus=1, switching=0.2), 3.6 * T),
        (Host(3, gpus=2), 2 * T),
        (Host(1, gpus=3), T),
    ],
)
def test_three_ranks_of_a_host_compute(host, expected):
    assert ends(Own(), 3, per_host=3, kinds=(host,)) == pytest.approx([expected], abs=EXACT)


def test_three_works_on_two_cores_take_almost_twice_as_long_as_one():
    # Two in turns of a twentieth of the shortest on one core, until the other core idles: after a tick it takes one over.
    turn_s = T / MOST_TURNS
    found = ends(Own((T, T, T)), 3, per_host=3, kinds=(Host(2, TICK_S),))[0]
    assert found == pytest.approx(T + TICK_S + (T - (T - turn_s) / 2), abs=2 * turn_s)
    assert 1.5 * T < found < 2 * T


def test_a_rank_sees_a_message_at_its_next_poll():
    works = (0.05, 0.05)
    poll = {"poll_s": 1e-4, "oversleep_s": 1e-5, "per_host": 2, "kinds": (Host(2, TICK_S),)}
    job = Job(2, (Layer(1),), 1, latency_s=0.0, **poll)
    share = job.noise(0, 0, "pause")[0]
    late_s = share * (LONGEST_S + 1e-5) + 1e-4
    assert run(job, Asking(works)).ends_s == pytest.approx([0.05 + late_s], abs=EXACT)
    assert ends(Asking(works), 2) == pytest.approx([0.05], abs=EXACT)


def test_polls_take_a_core_from_ranks_that_work():
    poll = {"poll_s": 4e-5, "per_host": 3, "kinds": (Host(2, TICK_S),)}
    of = Job(3, (Layer(1),), 1, latency_s=0.0, **poll)
    # Of two cores the polls take so much, stage by stage of the wait; two ranks have the rest.
    expected = 0.0
    left_s = 0.05
    for rate, lasts_s in zip(of.poll_rates, (1e-3, 1e-3, 2e-3, 4e-3, 1.0), strict=True):
        pace = min(1.0, (2 - rate) / 2)
        took_s = min(lasts_s, left_s / pace)
        expected, left_s = expected + took_s, left_s - took_s * pace
    late_s = of.noise(0, 0, "pause")[0] * LONGEST_S + 4e-5
    assert run(of, Asking((0.05, 0.05))).ends_s == pytest.approx([expected + late_s], abs=EXACT)


def test_other_threads_slow_who_shares_the_core_with_them_and_leave_a_rank_idle():
    @dataclass(frozen=True)
    class Two(Own):
        def __call__(self, me):
            for _ in me.steps():
                yield from compute(me)
                yield from me.take(me.rank, until_s=1.0 + me.step)

    # The first round's pieces come at once, as there was no round before it; on one core they have it in turn with the gradient.
    job = Job(1, (Layer(1, 0.0, T),), 2, background_s=0.4, kinds=(Host(1, TICK_S),))
    found = run(job, Two())
    assert found.ends_s == [1.0, 2.0]
    assert found.idle_s[0] == pytest.approx(2.0 - (T + 0.4) - T, abs=0.2)
    assert run(replace(job, background_s=0.0), Two()).idle_s[0] == pytest.approx(2.0 - 2 * T)
    alone = run(replace(job, kinds=(Host(2, TICK_S),)), Two())
    assert alone.idle_s[0] == pytest.approx(2.0 - 2 * T)


def test_a_text_that_works_on_at_the_end_leaves_its_rank_busy():
    @dataclass(frozen=True)
    class Going(Own):
        def __call__(self, me):
            for _ in me.steps():
                yield from me.start(me.work(seconds=5.0))
                yield from me.take(me.rank, until_s=1.0)

    assert run(Job(1, (Layer(1),), 1), Going()).idle_s == [0.0]


def test_a_straggler_oversleeps():
    @dataclass(frozen=True)
    class Sleeping(Own):
        def __call__(self, me):
            for _ in me.steps():
                yield from me.sleep()

    assert ends(Sleeping(), 2, oversleep_s=0.25, laws=Laws(Constant(value=1.0))) == pytest.approx([1.25])
    assert ends(Sleeping(), 2, oversleep_s=0.25) == [0.0]


@dataclass(frozen=True)
class Twice(Text):
    """Two texts of a rank work for T at one moment, of which one has worked until then."""

    def __call__(self, me):
        for _ in me.steps():
            yield from me.work(T)
            other = yield from me.start(self.other(me))
            yield from me.work(T)
            yield from me.wait(other)

    def other(self, me):
        yield from me.work(T)


@dataclass(frozen=True)
class Gathering(Text):
    """A text of each other rank sends to its fellow at rank 0, which adds; the main texts compute meanwhile."""

    def __call__(self, me):
        for _ in me.steps():
            texts = []
            for rank in range(1, me.n):
                texts.append((yield from me.start(self.one(me, rank))))
            yield from compute(me)
            yield from me.wait(texts)

    def one(self, me, rank):
        if me.rank == rank:
            yield from me.post(me.gradient, 0)
        elif me.rank == 0:
            yield from me.take(rank, me.gradient, adds=True)


def test_a_rank_sends_and_takes_one_message_at_a_time():
    """Overheads (LogGP's o) of its texts are paid one after another; sums and passes are beside them, if there are cores."""
    costs = {"overhead_s": T, "local_overhead_s": T, "mix_base_s": T / 2, "bandwidth": 1e18}
    kinds = (Host(8, TICK_S),) * 4
    apart, together = (ends(Gathering(), 4, kinds=kinds, placement=at, **costs) for at in ((0, 1, 2, 3), (0, 0, 0, 0)))
    assert apart == pytest.approx([T + 3 * T + T / 2], abs=EXACT)  # others' overheads first
    assert together == pytest.approx([3 * T + T / 2], abs=EXACT)


def test_texts_of_a_rank_have_cores_of_their_own():
    """As the threads of a process have: what a text goes on with keeps its core, and what another one begins takes an idle one."""
    assert ends(Twice(), 1, kinds=(Host(2, TICK_S),)) == pytest.approx([2 * T], abs=EXACT)
    assert ends(Twice(), 1, kinds=(Host(1, TICK_S),)) == pytest.approx([3 * T], abs=EXACT)
