"""Links of the language: closed forms, what messages keep to, and numbers of the core before on the same jobs."""

from dataclasses import dataclass, replace
from math import inf

import pytest
from test_language_engine_jobs import KERNELS, Own, differ

from sim.base.errors import WrongSetting
from sim.language.engine import job as engine
from sim.language.event import run
from sim.language.event.valueless import Valueless
from sim.language.hosts import Fair, Windows
from sim.language.job import Job, Laws, Layer
from sim.language.text import Text
from sim.language.verbs import exchange
from sim.laws import LogNormal
from sim.platform.polling import late_s
from sim.texts import TEXTS

ITEMS, B, L = 250_000, 1e6, 0.01
WHOLE_S = ITEMS * 4 / B  # that the weights take a port


def job(ranks: int, steps: int = 1, **more) -> Job:
    return Job(ranks, (Layer(ITEMS),), steps, **{"latency_s": 0.0, "bandwidth": B, **more})


def step_s(of: Job, text: Text, kernel=engine._kernel) -> float:
    """The mean of the steps, which the engine finds alike."""
    found = run(of, text)
    assert differ(of, text, kernel) == {}
    return found.ends_s[-1] / len(found.ends_s)


@dataclass(frozen=True)
class Sends(Own):
    """Rank 0 posts pieces of the weights, one to each of the others in turn, and ends when they have left."""

    items: tuple = (ITEMS,)
    share: float = 1.0

    def __call__(self, me):
        for _ in me.steps():
            if me.rank == 0:
                sent = []
                for k in range(len(self.items)):
                    to = 1 + k % (me.n - 1)
                    sent.append((yield from me.post(me.weights[: self.items[k]], to, self.share)))
                yield from me.wait(sent)
            else:
                for k in range(len(self.items)):
                    if 1 + k % (me.n - 1) == me.rank:
                        yield from me.take(0, me.weights[: self.items[k]])


class Taken(Valueless):
    """When messages have become pieces."""

    def __init__(self):
        self.at_s = []

    def put(self, me, piece, values, adds, weight):
        self.at_s.append(me.now())


# ---- closed forms


@KERNELS
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_weights_that_share_a_port_come_at_once_and_late(workers, kernel):
    """Through the master's port n messages down, which end together, and n up; one after another it is n + 1 in all."""
    of = job(workers + 1, 2)
    assert step_s(of, TEXTS["fmb"](), kernel) == pytest.approx((workers + 1) * WHOLE_S)
    assert step_s(replace(of, fair=Fair()), TEXTS["fmb"](), kernel) == pytest.approx(2 * workers * WHOLE_S)


@KERNELS
def test_a_share_of_the_bytes_takes_a_share_of_the_time(kernel):
    for more in (
        {"fair": Fair()},
        {"fair": Fair(eager_bytes=0.0)},
        {"windows": Windows(1e9, 1e9)},
        {"sustained": B},
        {"whole_messages": True},
    ):
        of = job(2, **more)
        whole_s, half_s = (step_s(of, Sends(share=share), kernel) for share in (1.0, 0.5))
        assert half_s == pytest.approx(whole_s / 2)


def test_a_port_that_rests_earns_what_it_may_pass_later():
    laws = Laws(sleep=LogNormal(mean=100.0, cv=0.0))
    of = job(2, 2, sustained=B / 5, laws=laws)
    rested = run(of, TEXTS["fmb"]())
    plain = run(replace(of, sustained=inf), TEXTS["fmb"]())
    assert rested.ends_s[0] == pytest.approx(plain.ends_s[0] + 4 * WHOLE_S)  # weights wait; the gradient later not
    assert rested.ends_s[1] - rested.ends_s[0] == pytest.approx(plain.ends_s[1] - plain.ends_s[0])


@KERNELS
def test_a_message_that_is_handed_on_as_a_whole_takes_each_port_by_itself(kernel):
    of = job(4, latency_s=L, per_rack=2, uplink=B / 2)
    assert step_s(of, Sends((1, 1, ITEMS)), kernel) == pytest.approx(2 * WHOLE_S + 3 * L, rel=1e-4)
    whole = replace(of, whole_messages=True)
    assert step_s(whole, Sends((1, 1, ITEMS)), kernel) == pytest.approx((1 + 2 + 2 + 1) * WHOLE_S + 3 * L, rel=1e-4)


@KERNELS
def test_who_came_first_keeps_most_of_its_senders_port(kernel):
    """The window of the second, 1/16 of a share, doubles each eighth of a message's time: of two alike it makes no difference."""
    of, sizes = job(3, fair=Fair(ramp_bytes=ITEMS / 2)), (ITEMS, ITEMS)
    assert step_s(of, Sends(sizes), kernel) == pytest.approx(2 * WHOLE_S)

    class Second(Sends):
        def __call__(self, me):
            for _ in me.steps():
                if me.rank == 0:
                    yield from me.post(me.weights, 1)
                    yield from me.take(0, until_s=WHOLE_S / 2)
                    yield from me.post(me.weights, 2)
                else:
                    yield from me.take(0, me.weights)

    taken = Taken()
    run(of, Second(), taken)
    first_s, second_s = taken.at_s
    at, left, parts = WHOLE_S / 2, 0.5, [16, 8, 4, 2, 1]  # of 1 + 1/k parts the first has k / (k + 1)
    for part in parts:
        rate = part / (part + 1) / WHOLE_S
        step = min(left / rate, WHOLE_S / 8) if part > 1 else left / rate
        at, left = at + step, left - step * rate
    assert first_s == pytest.approx(at)
    assert second_s == pytest.approx(2 * WHOLE_S)
    assert differ(of, Second(), kernel) == {}


@KERNELS
def test_a_message_that_is_asked_for_takes_a_word_there_and_one_back(kernel):
    of = job(2, latency_s=L, fair=Fair())
    assert step_s(of, Sends(), kernel) == pytest.approx(WHOLE_S + L)
    assert step_s(replace(of, fair=Fair(eager_bytes=1000.0)), Sends(), kernel) == pytest.approx(WHOLE_S + 3 * L)
    assert step_s(replace(of, fair=Fair(eager_bytes=4.0 * ITEMS)), Sends(), kernel) == pytest.approx(WHOLE_S + L)


@KERNELS
def test_who_polls_sees_at_its_next_poll_that_its_message_is_asked_for(kernel):
    of = job(2, latency_s=L, fair=Fair(eager_bytes=1000.0), poll_s=1e-6, oversleep_s=6e-5)
    shares = [of.noise(rank, 0, "pause") for rank in range(2)]
    asks_s = L + late_s(L, of.oversleep_s, shares[1][0]) + of.poll_s
    leaves_s = asks_s + L + late_s(asks_s + L, of.oversleep_s, shares[0][0])
    there_s = leaves_s + WHOLE_S + L
    taken_s = there_s + late_s(there_s - asks_s, of.oversleep_s, shares[1][1]) + of.poll_s
    assert step_s(of, Sends(), kernel) == pytest.approx(taken_s)


@KERNELS
def test_bytes_that_were_asked_for_behind_ones_own_leave_when_those_are_there(kernel):
    """Rank 0 finds the other's word when the last of its own bytes has left, and is not there yet."""
    found_s = WHOLE_S + 2.5 * L

    class Finds(Own):
        def __call__(self, me):
            for _ in me.steps():
                yield from me.post(me.weights, 1 - me.rank)
                if me.rank == 0:
                    yield from me.take(0, until_s=found_s)
                yield from me.take(1 - me.rank)

    of = job(2, latency_s=L, fair=Fair(eager_bytes=1000.0))
    assert step_s(of, Finds(), kernel) == pytest.approx((WHOLE_S + 3 * L) + WHOLE_S + L)


@KERNELS
@pytest.mark.parametrize(("late", "first", "turns"), [(0.0, True, 1), (3 * L, True, 2), (3 * L, False, 1)])
def test_ranks_that_post_receives_first_take_turns_where_one_is_late(kernel, late, first, turns):
    """As MPI's Rabenseifner over TCP: what the late rank has heard of it asks for first, and its own goes behind that."""

    class Swap(Own):
        def __call__(self, me):
            for _ in me.steps():
                yield from me.work(seconds=late * me.rank)
                yield from exchange(me, me.weights, 1 - me.rank, 1 - me.rank, me.weights)

    of = job(2, latency_s=L, overhead_s=1e-3, fair=Fair(eager_bytes=1000.0, receives_first=first))
    assert step_s(of, Swap(), kernel) == pytest.approx(late + turns * (WHOLE_S + 1e-3) + 3 * L)


# ---- what messages keep to


@KERNELS
def test_the_gap_is_of_ports_between_hosts_alone(kernel):
    of = job(2, gap_s=1.0, local_bandwidth=B)
    assert step_s(of, Sends(), kernel) == pytest.approx(WHOLE_S + 1)
    assert step_s(replace(of, per_host=2), Sends(), kernel) == pytest.approx(WHOLE_S)


@KERNELS
def test_messages_of_a_text_and_a_pair_of_ranks_keep_their_order(kernel):
    """The second, smaller, has passed before the first, which has left early as far as its sender's system keeps it."""
    of = job(2, latency_s=L, fair=Fair())
    assert step_s(of, Sends((ITEMS, 1000)), kernel) == pytest.approx(WHOLE_S + 4000 / B + L)
    weights = replace(of, fair=Fair(buffer_bytes=1e6), laws=Laws(share=LogNormal(mean=1.0, cv=2.0)))
    for seed in range(5):
        laws = replace(weights.laws, seed=seed)
        assert step_s(replace(weights, laws=laws, steps=4), Sends((ITEMS, 1000, 500)), kernel) > WHOLE_S


@KERNELS
def test_a_message_that_nobody_takes_leaves_its_sender_all_the_same(kernel):
    class Lost(Own):
        def __call__(self, me):
            for _ in me.steps():
                if me.rank == 0:
                    sent = []
                    for _ in range(3):
                        sent.append((yield from me.post(me.weights, 1)))
                    yield from me.wait(sent)
                else:
                    yield from me.take(1, until_s=5 * L)
                    yield from me.take(0, newest=True)

    ends_s = 0.0

    class Early(Own):
        def __call__(self, me):
            for _ in me.steps():
                if me.rank == 0:
                    sent = yield from me.post(me.weights, 1)
                    yield from me.wait(sent)
                else:
                    yield from me.take(1, until_s=ends_s)

    of = job(2, latency_s=L, fair=Fair(eager_bytes=0.0))
    assert step_s(of, Lost(), kernel) == pytest.approx(3 * WHOLE_S + 7 * L)
    assert step_s(of, Early(), kernel) == pytest.approx(WHOLE_S + 2 * L)
    ends_s = 5 * L
    assert step_s(of, Early(), kernel) == pytest.approx(WHOLE_S + 6 * L)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"fair": Fair(), "windows": Windows(1, 2)}, "windows"),
        ({"fair": Fair(), "sustained": 1.0}, "sustained"),
        ({"fair": Fair(), "whole_messages": True}, "whole_messages"),
        ({"fair": Fair(), "bandwidth": inf}, "bandwidth: given inf; allowed: a finite one where messages share ports"),
        ({"fair": Fair(), "per_rack": 1}, "uplink: given inf"),
    ],
)
def test_what_does_not_go_together_is_named(wrong, words):
    with pytest.raises(WrongSetting, match=words):
        job(2, **wrong)


def test_a_window_has_bytes():
    with pytest.raises(WrongSetting, match="initial_bytes: given 0; allowed: more than 0, up to most_bytes, 10"):
        Windows(0, 10)
