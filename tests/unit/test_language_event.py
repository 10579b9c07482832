"""The event world of the language: closed forms, and the rules that all worlds keep."""

import math
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pytest

from experiments.proving.closed import CLOSED, ITEMS, B, L, T, V, job, layers_to_servers, ring, steps_of
from sim.base.errors import RunFailed, WrongSetting
from sim.language.event import run
from sim.language.hosts import Host
from sim.language.job import Laws
from sim.language.text import Text
from sim.language.verbs import compute
from sim.laws import Constant, Exponential
from sim.texts import TEXTS

EXACT = 1e-12


@pytest.mark.parametrize("of", CLOSED, ids=[f"{one.name} {k}" for k, one in enumerate(CLOSED)])
def test_a_step_takes_what_its_closed_form_says(of):
    assert of.error_s() < EXACT


def test_every_text_has_a_closed_form():
    assert {one.name for one in CLOSED} == TEXTS.keys()


def test_a_closed_form_that_is_wrong_is_seen():
    assert CLOSED[0]._replace(step_s=(T, T, 1.01 * T)).error_s() == pytest.approx(0.01 * T)


def test_servers_update_layers_that_travel_while_others_are_computed():
    found = run(job(2, 2, update_base_s=0.003), TEXTS["ps-layers"]())
    assert steps_of(found) == pytest.approx([*islice(layers_to_servers(0.003), 2)], abs=EXACT)


def test_a_server_sums_layers_side_by_side_on_the_cores_of_its_host():
    slow = {"mix_s": 1e-7, "placement": (0, 1), "latency_s": 0.0, "bandwidth": math.inf}  # 0.66 s for a layer
    ends_s = {
        cores: run(job(2, 1, kinds=(Host(cores=cores), Host(cores=1)), **slow), TEXTS["ps-layers"]()).ends_s[0]
        for cores in (1, 2, 8)
    }
    each_s = 1e-7 * ITEMS
    assert ends_s[8] == pytest.approx(T + each_s, abs=0.02)  # the last gradient comes when all is computed
    assert ends_s[2] == pytest.approx(T / 3 + T / 12 + 4 * each_s, abs=0.02)
    assert ends_s[1] == pytest.approx(T / 3 + T / 12 + 8 * each_s, abs=EXACT)


def test_horovod_sums_all_that_is_ready_in_a_cycle():
    found = steps_of(run(job(4), TEXTS["horovod"](cycle_s=0.15)))
    assert found == pytest.approx([0.15 + 2 * L + ring(V / 2, 4) * 2] * 3, abs=2e-4)  # two buffers, of 100 MiB each


# ---- hosts, racks, cores


@dataclass(frozen=True)
class Own(Text):
    """A text that a test writes."""

    what: Any = None
    servers: int = 0
    name, least = "own", {}

    def __call__(self, me):
        return self.what(me)


def ended(what, ranks: int = 2, servers: int = 0, **more):
    """The result of a job of which every rank runs what(me)."""
    of = job(ranks, 1, **more)
    return run(of, Own(what, servers))


def computing(me):
    for _ in me.steps():
        yield from compute(me)


@pytest.mark.parametrize(
    ("more", "seconds"),
    [
        ({}, [T, T, T, T]),
        ({"per_host": 4, "cores": 4}, [T, T, T, T]),
        ({"per_host": 4, "cores": 1}, [4 * T] * 4),  # each forward pass, then each backward pass
        ({"per_host": 4, "cores": 1, "in_turn": False}, [4 * T] * 4),
        (
            {"per_host": 2, "cores": 1, "in_turn": False, "speeds": (1.0, 1.0, 2.0, 4.0)},
            [2 * T, 2 * T, 3 / 4 * T, 3 / 4 * T],
        ),
    ],
)
def test_ranks_of_a_host_share_its_cores(more, seconds):
    assert ended(computing, 4, **more).ends_s == pytest.approx([max(seconds)], abs=EXACT)


def pairs(me):
    """Ranks of the first half send the second half their weights."""
    for _ in me.steps():
        half = me.n // 2
        if me.rank < half:
            yield from me.post(me.weights, me.rank + half)
        else:
            yield from me.take(me.rank - half)


@pytest.mark.parametrize(
    ("more", "seconds"),
    [
        ({}, V / B + L),
        ({"per_host": 2}, V / B + L),  # a port each
        ({"per_host": 2, "shared_ports": True}, 2 * V / B + L),
        ({"per_rack": 2, "uplink": B}, 2 * V / B + 3 * L),
        ({"per_rack": 2, "uplink": 4 * B}, V / B + 3 * L + V / 4 / B),
        ({"per_rack": 4, "uplink": 1.0}, V / B + L),
        ({"per_host": 4, "local_bandwidth": 4 * B, "local_latency_s": 1e-6}, V / 4 / B + 1e-6),
        ({"overhead_s": 1e-3}, 1e-3 + V / B + L + 1e-3),
        ({"gap_s": 1e-3, "header_bytes": 1e6}, 1e-3 + (V + 1e6) / B + L),
    ],
)
def test_messages_pass_ports_racks_and_memory(more, seconds):
    assert ended(pairs, 4, **more).ends_s == pytest.approx([seconds], abs=EXACT)


def test_sleeps_and_noise_are_those_of_the_laws():
    laws = Laws(sleep=Exponential(mean=0.05), noise=Constant(value=2.0), seed=5)
    found = steps_of(run(job(3, 4, laws=laws), Own(computing_after_sleep)))
    assert min(found) > 2 * T
    each = [[laws.sleeps(0, worker)[step] for step in range(4)] for worker in (1, 2, 3)]
    assert sum(found) == pytest.approx(max(map(sum, each)) + 8 * T)


def computing_after_sleep(me):
    for _ in me.steps():
        yield from me.sleep()
        yield from compute(me)


def test_a_rank_is_idle_when_it_neither_works_nor_moves_bytes():
    found = run(job(9, 4, warmup=1), TEXTS["fmb"]())
    step_s = T + 9 * V / B + 2 * L
    # The last worker's gradient is made while another one's comes.
    assert found.idle_s[0] == pytest.approx(0.0, abs=EXACT)
    assert found.idle_s[1:] == pytest.approx([3 * (step_s - T - 2 * V / B)] * 8)
    found = run(job(2, 4, warmup=1), TEXTS["fmb"]())
    assert found.idle_s == pytest.approx([3 * (T + 2 * L), 3 * 2 * L])


# ---- primitives


def test_take_ends_when_nothing_can_come_any_more():
    seen = []

    def text(me):
        for _ in me.steps():
            if me.rank == 0:
                yield from me.post(me.weights, 2)
            elif me.rank == 1:
                yield from me.work(seconds=1.0)
            else:
                for _ in range(2):
                    message = yield from me.take(range(2), until_s=math.inf)
                    seen.append((message and message.sender, me.now()))

    ended(text, 3)
    assert seen == [(0, pytest.approx(V / B + L)), (None, pytest.approx(1.0))]


@pytest.mark.parametrize(("takes", "done_s"), [(True, 1.0), (False, 0.7)])
def test_a_handle_may_be_done_when_the_message_is_taken(takes, done_s):
    """By the receiver, or as if it were, where that has ended."""
    seen = []

    def text(me):
        for _ in me.steps():
            if me.rank:
                yield from me.work(seconds=done_s)
                if takes:
                    yield from me.take(0)
                    yield from me.work(seconds=1.0)
            else:
                yield from me.wait((yield from me.post(me.weights[:1], 1, taken=True)))
                seen.append(me.now())

    ended(text)
    assert seen == [pytest.approx(done_s)]


def test_messages_are_of_the_step_that_a_text_says():
    def text(me):
        for _ in me.steps():
            if me.rank:
                message = yield from me.take(0)
                assert message.step == 1
            else:
                me.step = 1
                yield from me.post(me.weights, 1)
                me.step = 0

    ended(text)


def test_messages_that_are_held_back_overtake_one_another():
    laws, seen = Laws(delay=Exponential(mean=1.0), seed=1), []

    def text(me):
        for _ in me.steps():
            for k in range(8):
                if me.rank:
                    message = yield from me.take(0)
                    seen.append((message.items, me.now()))
                else:
                    yield from me.post(me.weights[:k], 1)

    ended(text, laws=laws, bandwidth=math.inf)
    expected = sorted((L + delay_s, k) for k, delay_s in enumerate(laws.noises(0, 2, "delay").first(8)))
    assert [k for k, _ in seen] == [k for _, k in expected] != list(range(8))
    assert [at_s for _, at_s in seen] == pytest.approx([at_s for at_s, _ in expected])


def test_take_gives_up_at_a_time():
    seen = []

    def text(me):
        for _ in me.steps():
            if me.rank:
                yield from me.work(seconds=1.0)
                yield from me.post(me.weights[:0], 0)
            else:
                for until_s in (0.0, 0.5, 2.0, 2.0):
                    message = yield from me.take(1, until_s=until_s)
                    seen.append((message and message.sender, me.now()))

    ended(text)
    assert seen == [(None, 0.0), (None, 0.5), (1, pytest.approx(1 + L)), (None, 2.0)]


def test_wait_needs_as_many_handles_as_it_counts():
    seen = []

    def child(me, seconds):
        yield from me.take(me.rank, until_s=seconds)

    def text(me):
        for _ in me.steps():
            handles = []
            for seconds in (3.0, 1.0, 2.0):
                handles.append((yield from me.start(child(me, seconds))))
            for count in (0, 1, 2, 3, None):
                yield from me.wait(handles, count)
                seen.append(me.now())

    ended(text, 1)
    assert seen == [0.0, 1.0, 2.0, 3.0, 3.0]


def test_a_text_begins_after_others():
    seen = []

    def child(me, name):
        seen.append((name, me.now()))
        yield from me.work(seconds=1.0)

    def text(me):
        for _ in me.steps():
            first = yield from me.start(child(me, "first"))
            second = yield from me.start(child(me, "second"), after=[first])
            seen.append(("goes on at once", me.now()))
            yield from me.wait(second)
            seen.append(("end", me.now()))

    ended(text, 1)
    assert seen == [("goes on at once", 0.0), ("first", 0.0), ("second", 1.0), ("end", 2.0)]


def test_stop_gives_up_computing_and_delivers_what_is_under_way():
    def child(me):
        yield from me.post(me.weights, 1)
        yield from me.work(seconds=5.0)
        yield from me.post(me.weights, 1)  # never

    def text(me):
        for _ in me.steps():
            if me.rank:
                never = yield from me.start(taking(me))
                yield from me.wait(never)
            else:
                handle = yield from me.start(child(me))
                yield from me.take(0, until_s=1e-3)
                yield from me.stop(handle)
                yield from me.stop(handle)  # again, which does nothing
                yield from me.wait(handle)
                yield from me.work(seconds=0.01)  # on the core that is free again

    def taking(me):
        yield from me.take(0, me.weights)

    found = ended(text)
    assert found.ends_s == pytest.approx([V / B + L], abs=EXACT)
    assert found.idle_s[0] == pytest.approx(0.0, abs=EXACT)


def test_a_text_that_is_stopped_at_the_instant_of_its_start_has_never_begun():
    @dataclass(frozen=True)
    class Hasty(Text):
        def __call__(self, me):
            for _ in me.steps():
                handle = yield from me.start(self.other(me))
                yield from me.stop(handle)
                yield from me.wait(handle)
                yield from compute(me)

        def other(self, me):
            yield from me.work(seconds=1.0)

    assert run(job(1), Hasty()).ends_s == pytest.approx([T, 2 * T, 3 * T])


@pytest.mark.parametrize("in_turn", [True, False])
def test_a_stopped_text_leaves_the_core_to_others(in_turn):
    def long(me):
        yield from me.work(seconds=5.0)

    def text(me):
        for _ in me.steps():
            first = yield from me.start(long(me))
            second = yield from me.start(long(me))
            third = yield from me.start(long(me))
            yield from me.take(0, until_s=1.0)
            yield from me.stop(second)  # it waits for the core, or shares it
            yield from me.stop(first)
            yield from me.wait(third)

    assert ended(text, 1, in_turn=in_turn).ends_s == pytest.approx([6.0 if in_turn else 6.0 - 1 / 3])


def test_followers_take_the_newest_and_end_with_the_rank_that_they_follow():
    seen = []

    def text(me):
        if me.rank == 0:
            for _ in me.steps():
                for number in range(4):
                    yield from me.post(me.weights[:number], 1)
                    yield from me.work(seconds=1.0)
        else:
            whole = me.vector("whole", 0)
            while (yield from me.follow(0, whole)):
                seen.append((me.now(), me.step, me.round))
                break
            message = yield from me.take(0)
            seen.append(message.items)
            yield from me.work(seconds=2.5)
            message = yield from me.take(0, newest=True)  # of two that have come
            seen.append(message.items)
            while (yield from me.follow(0, whole)):
                raise AssertionError
            seen.append(me.now())

    ended(text, servers=1)
    assert seen == [(pytest.approx(L), 0, 0), 1, 3, pytest.approx(4.0)]


def test_the_run_ends_with_the_main_texts():
    def listening(me):
        while True:
            yield from me.take(me.rank)

    def text(me):
        for _ in me.steps():
            yield from me.start(listening(me))
            yield from me.work(seconds=1.0)

    assert ended(text).ends_s == [1.0]


def test_a_group_is_followed_part_by_part():
    seen = []

    def text(me):
        if me.rank in me.servers:
            for _ in me.steps():
                yield from me.work(seconds=1.0 + me.rank)
                yield from me.post(me.weights.part(me.rank, 2), 2)
        else:
            while (yield from me.follow(me.servers, me.weights)):
                seen.append(me.now())

    ended(text, 3, servers=2)
    assert seen == [pytest.approx(2 + V / 2 / B + L)]


# ---- who is first at one moment


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 3, 1)])
def test_messages_of_one_moment_come_by_sender(order):
    """All reach rank 0 at one moment, in whatever order their senders began."""
    seen = []

    def text(me):
        for _ in me.steps():
            if me.rank:
                yield from me.work(seconds=order.index(me.rank) * 0.125)
                yield from me.take(me.rank, until_s=1.0)
                yield from me.post(me.weights[:0], 0)
            else:
                for _ in order:
                    message = yield from me.take(me.workers)
                    seen.append(message.sender)

    ended(text, 4)
    assert seen == [1, 2, 3]


def test_texts_of_one_moment_go_on_by_number():
    seen = []

    def child(me, name, early):
        yield from me.take(me.rank, until_s=0.5 if early else 0.25)
        yield from me.take(me.rank, until_s=1.0)
        seen.append((me.rank, name))

    def text(me):
        for _ in me.steps():
            handles = []
            for name in range(1, 4):
                handles.append((yield from me.start(child(me, name, early=name == 3))))
            yield from me.take(me.rank, until_s=1.0)
            seen.append((me.rank, 0))
            yield from me.wait(handles)

    ended(text)
    assert seen == [(rank, name) for rank in range(2) for name in range(4)]


# ---- mistakes


def said(what, **more) -> str:
    with pytest.raises(RunFailed) as caught:
        ended(what, **more)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def line_of(text, words: str) -> str:
    """The place of the line of a text that has some words."""
    import inspect

    lines, first = inspect.getsourcelines(text)
    return f"test_language_event.py:{first + next(k for k, line in enumerate(lines) if words in line)}"


def test_sizes_that_differ_end_the_run():
    def text(me):
        for _ in me.steps():
            if me.rank:
                yield from me.take(0, me.weights)
            else:
                yield from me.post(me.weights[:7], 1)

    place = line_of(text, "me.take")
    assert said(text) == f"own, rank 1, {place}: 7 items taken from rank 0 into 52,428,800 of weights"


def test_sizes_within_a_started_collective_name_where_it_was_started():
    from sim.language.collectives import allgather

    def text(me):
        for _ in me.steps():
            handle = yield from me.start(allgather(me, me.weights[: 10 + 6 * me.rank], me.workers))
            yield from me.wait(handle)

    place = line_of(text, "me.start")
    assert said(text) == f"own, rank 1 (allgather, text 1), {place}: 5 items taken from rank 0 into 8 of weights"


def test_a_dead_end_says_who_waits_for_what():
    def text(me):
        for _ in me.steps():
            if me.rank == 0:
                yield from me.take(me.workers[1:])
            elif me.rank == 1:
                yield from me.take(2)
            else:
                yield from me.wait((yield from me.start(child(me))))

    def child(me):
        yield from me.take(0)

    assert said(text, ranks=3) == (
        f"own: all wait for ever: rank 0, {line_of(text, 'me.workers[1:]')} for a message of any of ranks 1, 2; "
        f"rank 1, {line_of(text, 'me.take(2)')} for a message of rank 2; rank 2, {line_of(text, 'me.start')} for a handle; "
        f"rank 2 (child, text 1), {line_of(child, 'me.take')} for a message of rank 0"
    )


def test_requests_without_time_end(monkeypatch):
    monkeypatch.setattr("sim.language.event.task.MOST_AT_ONCE", 1000)

    def text(me):
        for _ in me.steps():
            while True:
                yield from me.work()

    assert "1,000 requests without any time passing" in said(text)


@pytest.mark.parametrize(
    ("name", "settings", "ranks", "words"),
    [
        ("gradient-coding", {"late": 3}, 4, "late: given 3"),
        ("gradient-coding", {}, 40, "batch: given 16"),
        ("hierarchical", {"group": 3}, 8, "group: given 3; allowed: a divisor of the 8 ranks"),
        ("pipeline", {}, 9, "ranks: given 9"),
        (
            "pipeline",
            {"micro_batches": 17},
            4,
            "--set micro_batches: given 17; allowed: an integer from 1 to the batch",
        ),
        ("ps-sync", {"backup": 3}, 4, "backup: given 3"),
        ("ps-async", {"servers": 4}, 4, "ranks: given 4; allowed: an integer from 5 with ps-async"),
        ("fmb", {}, 1, "ranks: given 1; allowed: an integer from 2 with fmb"),
        ("ddp", {"accumulate": 17}, 2, "accumulate: given 17; allowed: an integer from 1 to the batch, 16"),
        ("local-sgd", {"local": 0}, 2, "local: given 0"),
        ("amb", {"partitions": 17}, 2, "partitions: given 17"),
        ("fsdp", {"ahead": -1}, 2, "--set ahead: given -1; allowed: an integer from 0"),
        ("ddp", {"bucket_mb": "a"}, 2, "bucket_mb: given 'a'"),
        ("d-psgd", {"drawn": 1}, 2, "drawn: given 1; allowed: true or false"),
        ("ps-sync", {"servers": 0}, 2, "servers: given 0; allowed: an integer from 1"),
    ],
)
def test_a_wrong_setting_is_named(name, settings, ranks, words):
    with pytest.raises(WrongSetting, match=words.replace("(", r"\(")):
        run(job(ranks), TEXTS[name](**settings))
