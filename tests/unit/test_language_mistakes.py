"""Mistakes in a user's text are one line with its place, whichever world was to run it."""

import random
import time
from dataclasses import dataclass
from pathlib import Path
from random import randrange

import numpy as np
import pytest
from test_language_engine_jobs import Own

from sim import protocols
from sim.base.errors import RunFailed, WrongText
from sim.job.scenario import Scenario
from sim.language import mistakes
from sim.language.event import run
from sim.language.job import Job, Layer
from sim.language.text import Text
from sim.language.verbs import compute
from sim.model import workload
from sim.runs.replications import Replications
from sim.texts import TEXTS

SEEN: list = []
COUNTS: dict = {}


def made(body) -> Text:
    """A text whose rounds run a function of (self, me)."""
    return type("Made", (Own,), {"__call__": body, "name": "own"})()


def no_yield_from(self, me):
    for _ in me.steps():
        me.forward()
        yield from me.update()


def no_yield_from_of_a_verb(self, me):
    for _ in me.steps():
        compute(me)
        yield from me.update()


def no_yield_from_of_a_message(self, me):
    for _ in me.steps():
        message = me.take(0)
        yield from me.update(samples=message.samples)


def a_list_of_all(self, me):
    for step in me.steps():
        SEEN.append(step)
        yield from me.update()


def a_table_of_all(self, me):
    for step in me.steps():
        COUNTS[me.rank] = step
        yield from me.update()


def a_global(self, me):
    global SEEN  # noqa: PLW0603
    for _ in me.steps():
        SEEN = [*SEEN, me.rank]
        yield from me.update()


def a_list_of_the_class(self, me):
    for step in me.steps():
        self.kept.append(step)
        yield from me.update()


def its_own_number(self, me):
    for _ in me.steps():
        yield from me.work(seconds=random.random())


def its_own_number_by_name(self, me):
    for _ in me.steps():
        yield from me.work(seconds=randrange(3))


def its_own_numbers(self, me):
    for _ in me.steps():
        yield from me.work(seconds=np.random.default_rng().random())


def its_own_clock(self, me):
    for _ in me.steps():
        yield from me.work(seconds=time.monotonic())


def sets_its_rank(self, me):
    for step in me.steps():
        me.step = step + 1
        yield from me.update()


def yields(self, me):
    for _ in me.steps():
        yield me.update()


def deep(self, me):
    for _ in me.steps():
        yield from helper(me)
        yield from me.update()


def helper(me):
    me.sleep()
    yield from compute(me)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (no_yield_from, "me.forward(...) does nothing without `yield from`"),
        (no_yield_from_of_a_verb, "compute(...) does nothing without `yield from`"),
        (no_yield_from_of_a_message, "me.take(...) does nothing without `yield from`"),
        (a_list_of_all, "SEEN is changed, and belongs to all ranks"),
        (a_table_of_all, "COUNTS is changed, and belongs to all ranks"),
        (a_global, "SEEN is of the module: ranks are processes that share nothing"),
        (a_list_of_the_class, "self.kept is changed, and belongs to all ranks"),
        (its_own_number, "random.random differs from world to world"),
        (its_own_number_by_name, "randrange differs from world to world"),
        (its_own_numbers, "np.random.default_rng differs from world to world"),
        (its_own_clock, "time.monotonic differs from world to world: a text has me.draw(n) and me.now()"),
        (sets_its_rank, "me.step is not a text's to set"),
        (yields, "a text yields from primitives of me alone"),
        (deep, "me.sleep(...) does nothing without `yield from`"),
    ],
)
def test_what_the_source_shows_is_said_with_its_line(body, words):
    with pytest.raises(WrongText) as caught:
        mistakes.check(made(body))
    assert words in str(caught.value)
    assert "own, test_language_mistakes.py:" in str(caught.value)
    line = int(str(caught.value).split(".py:")[1].split(":")[0])
    source = Path(__file__).read_text().splitlines()[line - 1]
    assert words.split("(")[0].split(" ")[0].removeprefix("a ") in source or "yield me" in source


class Right(Own):
    """Lists of its own, of which other texts know; texts that are started, and kept until then; numbers of numpy."""

    SIZES = (3, 4)

    def __call__(self, me):
        kept, handles = [0 for _ in range(me.n)], []
        for step in me.steps():
            text = self.beside(me, handles) if step else compute(me)
            handles.append((yield from me.start(text)))
            kept[me.rank] += int(np.sqrt(self.SIZES[0]))
            sums = [me.of(me.weights, layer) for layer in me.layers]
            yield from me.wait(handles[-1:])
            for piece in sums:
                yield from me.update(piece)

    def beside(self, me, handles: list):
        handles.append((yield from me.post(me.weights, me.rank)))
        yield from compute(me)


@pytest.mark.parametrize("text", [Right(), *(one() for one in TEXTS.values())], ids=lambda one: one.name)
def test_right_texts_are_right(text, monkeypatch):
    monkeypatch.setattr(mistakes, "OURS", ("sim.language",))
    mistakes.check(text)


def job(ranks: int = 2) -> Job:
    return Job(ranks, (Layer(100, 1e-3, 2e-3),) * 2, 2, batch=8)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (lambda me: me.recieve(0), "me has no recieve; sim/language/rank.py lists all"),
        (lambda me: me.tak(0), "me has no tak; the nearest is me.take"),
        (lambda me: me.post(me.weights), "missing 1 required positional argument: 'to'"),
        (lambda me: me.post(3, 0), "me.post: piece 3; allowed: a piece of a vector"),
        (lambda me: me.post(me.weights, 0, share=-1), "me.post: share -1; allowed: a number from 0"),
        (lambda me: me.work(seconds=-1.0), "me.work: seconds -1.0; allowed: seconds from 0"),
        (lambda me: me.work(seconds=float("nan")), "me.work: seconds nan"),
        (lambda me: me.take(0, until_s=float("nan")), "me.take: until_s nan; allowed: a time of me.now()"),
        (lambda me: me.take(0, into="weights"), "me.take: into 'weights'"),
        (lambda me: me.mix(me.weights, 3.0), "me.mix: what 3.0; allowed: a piece of a vector, or a message"),
        (lambda me: me.wait([3]), "me.wait: handles (3,); allowed: handles"),
        (lambda me: me.start(3), "me.start: text 3; allowed: a text that has not begun"),
        (lambda me: me.stop(None), "me.stop: handle None"),
        (lambda me: me.forward(0, 1.5), "me.forward: stop 1.5; allowed: an integer"),
        (lambda me: me.update(samples=-3), "me.update: samples -3"),
        (lambda me: me.post(me.weights, 9), "me.post to rank 9 of 2"),
        (lambda me: me.forward(0, 9), "layers 0 to 9 of 2"),
        (lambda me: me.forward(micro=3, of=3), "micro-batch 3 of 3"),
        (lambda me: me.forward(micro=0, of=17), "micro-batch 0 of 17, of a minibatch of 8 samples"),
        (lambda me: me.update(me.gradient), "me.update of gradient: a piece of me.weights"),
        (lambda me: me.wait([], 1), "me.wait for 1 of 0 handles"),
        (lambda me: iter([3]), "yield from me.NAME"),
        (lambda me: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda me: me.take("a"), "me.take from 'a'"),
        (lambda me: me.take(7), "me.take from 7"),
        (lambda me: me.follow(range(1, 4), me.weights), "me.follow from range(1, 4)"),
    ],
)
def test_wrong_arguments_are_one_line_with_their_place(what, words):
    def body(self, me):
        for _ in me.steps():
            yield from what(me)

    with pytest.raises(RunFailed) as caught:
        run(job(), made(body))
    assert words in str(caught.value)
    assert "own, rank 0, test_language_mistakes.py:" in str(caught.value)
    assert "\n" not in str(caught.value)


@dataclass(frozen=True)
class Empty(Text):
    pass


@dataclass(frozen=True)
class Plain(Text):
    def __call__(self, me):
        return [me.rank]


@pytest.mark.parametrize(("text", "words"), [(Empty, "Empty has no text: write"), (Plain, "it is no generator")])
def test_a_class_without_a_text_is_one_line(text, words):
    protocol = protocols.make(f"{__name__}:{text.__name__}")
    with pytest.raises(WrongText, match=words):
        Replications(Scenario(protocol, workload.read("mlp"), 2))


def timed():
    return time.time()


@dataclass(frozen=True)
class NamesakeOfAFunction(Text):
    """Its setting is called as a function of its module, which it does not call."""

    timed: float = 0.0

    def __call__(self, me):
        for _ in me.steps():
            yield from me.work(seconds=self.timed)


def test_a_setting_is_no_function_of_the_same_name():
    mistakes.check(NamesakeOfAFunction())
