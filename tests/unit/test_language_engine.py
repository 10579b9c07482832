"""The engine of the language: its rules, what it says of wrong texts, and what it does not understand."""

import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path

import pytest
from test_language_engine_jobs import KERNELS, Own, differ

from sim import protocols
from sim.base.errors import RunFailed, WrongText
from sim.job.scenario import Scenario
from sim.language.collectives import allreduce, halving_doubling, tree
from sim.language.engine import building, layout
from sim.language.engine import job as engine
from sim.language.engine.programs import program_of
from sim.language.engine.values import NotLowered
from sim.language.hosts import TICK_S, Fair, Host
from sim.language.job import Job, Laws, Layer
from sim.language.verbs import compute, exchange
from sim.laws import Constant, Exponential
from sim.model import workload
from sim.runs.replications import Replications
from sim.simulation import simulate
from sim.texts import TEXTS

LAYERS = (Layer(1000, 1e-3, 2e-3), Layer(2_000_000, 2e-3, 4e-3))
SLEEPS = Laws(sleep=Exponential(mean=0.01), seed=3)


def job(ranks: int = 4, steps: int = 3, **more) -> Job:
    return Job(ranks, LAYERS, steps, **{"batch": 8, "laws": SLEEPS, **more})


class FirstTwo(Own):
    """Goes on when two of three messages have left; the others are waited for later."""

    def __call__(self, me):
        for _ in me.steps():
            yield from me.sleep()
            sent = []
            for far in range(1, me.n):
                sent.append((yield from me.post(me.of(me.weights, far % 2), (me.rank + far) % me.n)))
            if me.n < 4 or me.host(0) != me.host(1):  # within a host nothing has left before it is taken
                yield from me.wait(sent, count=2)
            yield from compute(me)
            for _ in range(me.n - 1):
                yield from me.take(me.workers)
            yield from me.wait(sent)
            yield from me.update()


class Stopped(Own):
    """A text that computes is stopped after a while, while another one waits for the core."""

    def __call__(self, me):
        for step in me.steps():
            long = yield from me.start(self.long(me))
            short = yield from me.start(self.short(me), after=[])
            yield from me.take(me.rank, until_s=me.now() + 0.004 * (1 + step))
            yield from me.stop(long)
            yield from me.wait([long, short])
            yield from me.update(samples=me.batch if me.rank else 0)

    def long(self, me):
        yield from me.sleep()
        yield from compute(me)
        yield from me.work(seconds=0.5)

    def short(self, me):
        yield from me.forward()


class Newest(Own):
    """Rank 0 takes the newest message of each time that it looks, until a time."""

    def __call__(self, me):
        for step in me.steps():
            yield from me.sleep()
            if me.rank == me.master:
                end_s = me.now() + 0.02
                got = 0
                while True:
                    message = yield from me.take(me.workers[1:], newest=True, until_s=end_s)
                    if message is None:
                        break
                    got += message.sender
                    if got > 10 and message.step >= step:
                        continue
                    yield from me.work(seconds=0.001)
            else:
                yield from compute(me)
                yield from me.post(me.gradient, 0, share=0.25 if me.rank % 2 else 0.5)
                yield from me.mix(me.gradient, me.gradient, 0, 0)
            yield from me.update(samples=1)


class Collectives(Own):
    def __call__(self, me):
        kept = [0 for _ in range(me.n)]
        for step in me.steps():
            yield from me.sleep()
            yield from compute(me)
            yield from halving_doubling(me, me.gradient, me.workers)
            yield from tree(me, me.gradient, me.workers)
            yield from allreduce(me, me.gradient, me.workers[me.rank % 2 :: 2])
            kept[(me.rank + step) % me.n] += 1 + me.draw(3)
            yield from me.work(seconds=1e-3 * max(kept[1:]) + 1e-4 * sum(kept))
            yield from exchange(
                me, me.weights[5:-7], (me.rank + 1) % me.n, me.rank - 1 if me.rank else me.n - 1, me.weights[5:-7]
            )
            yield from me.update()


class InLine(Own):
    """Texts take messages, one at a time; one is stopped while it waits for that, and one while it takes its own."""

    def __call__(self, me):
        for step in me.steps():
            yield from me.sleep()
            texts = []
            for far in range(1, me.n):
                texts.append((yield from me.start(self.one(me, far))))
            yield from me.take(me.rank, until_s=me.now() + 0.0025)
            if step:
                yield from me.stop(texts[step % 2])
            yield from compute(me)
            if step:
                yield from me.stop(texts[1 - step % 2])
            yield from me.wait(texts)
            yield from me.update()

    def one(self, me, far):
        yield from me.post(me.of(me.gradient, 0), (me.rank + far) % me.n)
        yield from me.take(me.rank - far if me.rank >= far else me.rank - far + me.n, me.of(me.gradient, 0), adds=True)


@KERNELS
@pytest.mark.parametrize(
    "more", [{}, {"kinds": (Host(3, TICK_S),) * 4}, {"kinds": (Host(4),) * 2, "per_host": 2, "local_overhead_s": 3e-3}]
)
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_overheads_are_paid_one_at_a_time_as_in_the_event_world(steps, more, kernel):
    found = job(steps=steps, overhead_s=1e-3, mix_s=1e-7, **more)
    assert differ(found, InLine(), kernel) == {}


class HeldBack(Own):
    """Two messages of rank 0 are there at one moment: whoever has the one that was posted first, of two ranks, has their core first."""

    def __call__(self, me):
        for _ in me.steps():
            if me.rank == 0:
                yield from me.work(seconds=1e-3)
                for to in (1, 2):
                    yield from me.post(me.weights, to)
                yield from me.take(1)
                yield from me.work(seconds=0.05)
            elif me.rank == 3:  # rank 1 has had more messages than rank 2
                for _ in range(3):
                    yield from me.post(me.weights, 1)
            else:
                for _ in range(3 * (2 - me.rank)):
                    yield from me.take(3)
                yield from me.take(0)
                yield from me.work(seconds=0.02)
                if me.rank == 1:
                    yield from me.post(me.weights, 0)
            yield from me.update()


@KERNELS
def test_messages_that_are_held_back_until_one_moment_are_there_as_they_were_posted(kernel):
    hosts = {"placement": (0, 1, 1, 2), "kinds": (Host(1, inf),) * 3, "latency_s": 1e-3, "bandwidth": inf}
    assert differ(job(**hosts, laws=Laws(delay=Constant(value=0.01)), steps=1), HeldBack(), kernel) == {}


class Announced(Own):
    """Rank 2 is asked for its message to rank 0 at the moment at which it announces that to rank 1, behind the first one's bytes."""

    def __call__(self, me):
        for _ in me.steps():
            for to in range(2 if me.rank == 2 else 0):
                yield from me.post(me.weights, to)
            if me.rank < 2:
                yield from me.take(2)
            yield from me.update()


@KERNELS
def test_a_message_that_is_asked_for_leaves_before_its_sender_goes_on(kernel):
    fair = Fair(queue_bytes=1e5, eager_bytes=0.0)
    assert differ(job(3, 1, latency_s=0.0, overhead_s=1e-3, fair=fair), Announced(), kernel) == {}


@KERNELS
@pytest.mark.parametrize("text", [FirstTwo(), Stopped(), Newest(), Collectives()], ids=lambda one: type(one).__name__)
@pytest.mark.parametrize(
    "more", [{}, {"laws": Laws()}, {"per_host": 2, "cores": 1, "in_turn": False}, {"overhead_s": 1e-4, "mix_s": 1e-9}]
)
def test_own_texts_take_as_long_as_in_the_event_world(text, more, kernel):
    assert differ(job(**more), text, kernel) == {}


class Reckoned(Own):
    """Work by what only ranks know: operands of and, or that are the value, not whether it holds."""

    def __call__(self, me):
        for step in me.steps():
            yield from me.work(seconds=1e-3 * (me.rank or 9))
            yield from me.work(seconds=1e-3 * (me.rank and 7))
            yield from me.work(seconds=1e-3 * ((me.rank and step) or 11))
            yield from me.work(seconds=1e-3 * (5 - bool(me.rank)))
            yield from me.work(seconds=1e-3 * (2 if me.rank and (step or not me.rank) else 3))
            yield from me.work(seconds=(me.rank + 1.0) % 0.1 + 1e-3 * ((me.rank + 1.0) // 0.1))  # as floats have it
            yield from me.update()


class Sliced(Own):
    """Work by what is left of groups whose ends only ranks know, some of them from the end on, and some outside."""

    def __call__(self, me):
        for step in me.steps():
            for rank in me.workers[me.rank - 2 :]:
                yield from me.work(seconds=1e-3 * (1 + rank))
            for rank in me.workers[::2][: 2 - me.rank]:
                yield from me.work(seconds=1e-4 * (1 + rank))
            yield from me.work(seconds=1e-5 * (step + len(me.workers[me.rank + 3 :])))
            yield from me.update()


class Held(Own):
    """Work by lists and tuples of numbers that change later, and of which a branch chooses."""

    def best(self, x):
        if x > 2:
            return x, 1
        return 1, x

    def __call__(self, me):
        k = 1
        for step in me.steps():
            pair, several, (a, b) = [k, k + 1], [k for _ in range(2)], self.best(me.rank)
            first, stop = (a, k) if step else (k, b)
            k += 1
            yield from me.work(seconds=1e-3 * (pair[0] + 2 * several[1] + 4 * a + 8 * b + 16 * first + 32 * stop))
            heard = []
            while len(heard) < 2:
                message = yield from me.take(me.workers, until_s=me.now() + 1e-3)
                sender = message.sender if message else me.rank
                if sender not in heard or me.rank in [sender, k]:
                    heard.append(sender)
                    yield from me.work(seconds=1e-4 * (1 + sender))
                    yield from me.post(me.weights, (me.rank + k) % me.n)
            yield from me.update()


class GoneThrough(Own):
    """Loops over what Python goes through once, some of them in step with a list that is shorter."""

    def __call__(self, me):
        order = [3, 1, 2, 0]
        for step in me.steps():
            got = []
            for far in range(2 + step):
                got.append((yield from me.post(me.weights, (me.rank + far) % me.n)))
                yield from me.take(me.workers)
            for rank, handle in zip(order, got, strict=False):
                yield from me.wait(handle)
                yield from me.work(seconds=1e-3 * rank)
            for rank in [k + rank for k, rank in enumerate(reversed(order)) if rank != me.rank]:
                if rank == step:
                    continue
                yield from me.work(seconds=1e-3 * rank)
            message = yield from me.take(me.rank, until_s=me.now() + 1e-3)
            message = message or None
            if not message and 0 < me.rank < 3:
                yield from me.work(seconds=1e-3)
            yield from me.update()


@KERNELS
@pytest.mark.parametrize("text", [Reckoned(), Sliced(), Held(), GoneThrough()], ids=lambda one: type(one).__name__)
def test_numbers_of_ranks_are_reckoned_as_python_does(text, kernel):
    assert differ(job(), text, kernel) == {}


class Changing(Own):
    """Names that are None or another text before a loop changes them."""

    def __call__(self, me):
        handle, text, best = None, None, None
        for step in me.steps():
            yield from me.sleep()
            if handle is not None:
                yield from me.wait(handle)
            handle = yield from me.post(me.weights, (me.rank + 1) % me.n)
            message = yield from me.take(me.rank - 1 if me.rank else me.n - 1)
            if step % 2:
                best = message.step
            if best is not None:
                yield from me.work(seconds=0.001 * (1 + best))
            if text is None:
                text = compute(me)
                yield from text
                text = None
            yield from me.update()


class Vectors(Own):
    """A name is of one vector, then of another."""

    def __call__(self, me):
        piece = me.weights
        for step in me.steps():
            yield from me.post(piece, (me.rank + 1) % me.n)
            yield from me.take(me.rank - 1 if me.rank else me.n - 1, piece, adds=step > 10)
            piece = me.gradient if step % 2 else me.weights
            yield from compute(me)
            yield from me.update()


class Once(Own):
    """A name is of what Python goes through once, in the first step."""

    def __call__(self, me):
        ranks = reversed(me.workers)
        for _ in me.steps():
            for rank in ranks:
                yield from me.work(seconds=1e-3 * rank)
            yield from me.update()


@pytest.mark.parametrize("text", [Changing(), Vectors(), Once()], ids=lambda one: type(one).__name__)
def test_a_name_that_changes_its_kind_is_no_silent_difference(text):
    with suppress(NotLowered):
        assert differ(job(steps=5), text, engine._kernel) == {}


class Sizes(Own):
    def __call__(self, me):
        if me.rank == 0:
            yield from me.post(me.weights, 1)
        else:
            yield from me.take(0, me.of(me.weights, 0))


class DeadEnd(Own):
    def __call__(self, me):
        yield from me.take((me.rank + 1) % me.n)


class Micro(Own):
    def __call__(self, me):
        yield from me.forward(micro=me.rank, of=1)


class Nobody(Own):
    def __call__(self, me):
        yield from me.post(me.weights, me.rank + 1)


@KERNELS
@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        (Sizes(), WrongText, "2,001,000 items taken from rank 0 into 1,000"),
        (Nobody(), WrongText, "me.post to rank 2 of 2"),
        (Micro(), WrongText, "micro-batch 1 of 1, of a minibatch of 8 samples"),
        (DeadEnd(), RunFailed, "all wait for ever: rank 0, "),
    ],
)
def test_a_wrong_text_is_one_line_with_its_place(text, error, said, kernel):
    with pytest.raises(error) as found:
        engine.run(job(2), text, kernel)
    line = str(found.value)
    assert said in line
    assert "test_language_engine.py:" in line
    assert "\n" not in line


@dataclass(frozen=True)
class Unknown(Own):
    far: int = 0

    def __call__(self, me):
        for _ in me.steps():
            if not self.far:
                yield from me.work(seconds=(1 + me.rank) ** 2)
            else:  # digits that a float has not
                yield from me.work(seconds=1e-3 * (me.draw(self.far**2) * max(1, 2**60 // self.far**2) % 7))
            yield from me.update()


def test_what_is_not_understood_is_named_with_file_line_and_source():
    with pytest.raises(NotLowered, match=r"test_language_engine\.py:\d+: `yield from me\.work\(.*\*\* 2\)`: Pow"):
        engine.run(job(), Unknown())


def scenario(far: int = 0) -> Scenario:
    protocol = protocols.make(f"{Unknown.__module__}:{Unknown.__qualname__}", [f"far={far}"])
    return Scenario(protocol, workload.read("toy_fc"), workers=3, steps=4, warmup=1)


@pytest.mark.parametrize(("far", "why"), [(0, "Pow"), (2**20, "2**53"), (2**31, "2**53")])
def test_what_the_engine_does_not_understand_the_event_world_answers(far, why):
    found, want = simulate(scenario(far), replications=2), simulate(scenario(far), "event", 2)
    assert found.outcome.step_s == pytest.approx(want.outcome.step_s)
    assert found.world == want.world == "event"
    assert engine._kernel is None or why in found.outcome.slow


def test_without_a_compiled_kernel_the_event_world_answers(monkeypatch):
    monkeypatch.setattr(engine, "_kernel", None)
    found = Replications(scenario())
    assert found.slow == engine.NOT_COMPILED
    assert len(found.outcome(0).step_s[0]) == 4
    ours = Scenario(protocols.make("fmb"), workload.read("toy_fc"), workers=3, steps=4, warmup=1)
    (note,) = (line for line in simulate(ours, replications=1).notes if "takes longer" in line)
    assert note.endswith(engine.NOT_COMPILED)


def test_many_rounds_draw_further_sleeps():
    assert differ(job(3, 300), FirstTwo(), engine._kernel) == {}


def test_one_file_for_cython_has_all_functions_of_the_kernel():
    text = building.source()
    for name in building.FILES:
        for line in (building.HERE / f"{name}.py").read_text().splitlines():
            if line.startswith("def "):
                assert line.split("(")[0] in text
    assert "op." not in text.replace("__pyx", "")
    assert sys.version_info >= (3, 11)


def test_a_message_of_a_ring_takes_few_op_codes():
    """Of both halves: the loops of the program that post."""
    rows = program_of(job(64), TEXTS["ddp"]()).rows
    loops = [rows[row[1] : at + 1] for at, row in enumerate(rows) if row[0] == layout.REPEAT]
    sizes = [len(loop) for loop in loops if layout.POST in [row[0] for row in loop]]
    assert len(sizes) == 2
    assert max(sizes) <= 20


def test_what_builds_the_engine_needs_no_package():
    """It is compiled before anything is installed beside Cython."""
    line = [sys.executable, "-S", "-c", "import sim.language.engine.layout, sim.language.engine.building"]
    subprocess.run(line, cwd=Path(__file__).parents[2], check=True)
