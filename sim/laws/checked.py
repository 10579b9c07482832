"""A user's own law, checked before anybody reckons with it; a mistake is one line with its place, in every world."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from sim.base import own
from sim.base.deadline import deadline
from sim.base.errors import WrongSetting
from sim.base.files import validated
from sim.base.ranges import LONGEST_S, Name
from sim.laws.base import Law, Steps, Stragglers

if TYPE_CHECKING:
    from sim.laws.randomness import RandomStreams, Stream

SECONDS, FACTORS = f"seconds from 0 to {LONGEST_S:,}", f"factors from 0 to {LONGEST_S:,}"
LONGEST_TRIAL_S = 10.0  # of the processor, for the first steps of a worker
OURS = __name__.rpartition(".")[0] + "."


def is_ours(law: Stragglers) -> bool:
    """Whether the class comes with the simulator."""
    return type(law).__module__.startswith(OURS)


def owned(law: Stragglers) -> list[Stragglers]:
    """The user's own among some stragglers, which may be several at once."""
    if not is_ours(law):
        return [law]
    if isinstance(law, Own):
        return [law.made]
    return [one for part in getattr(law, "of", ()) for one in owned(part)]


def try_out(stragglers: Stragglers, draws) -> None:
    """Ask a user's own law for its mean and for the first steps of a worker, before anything is run with it.

    Args:
        draws: the job's, sim.job.draws.

    Raises:
        WrongSetting: what it gives is no number in its range, or it fails.
    """
    theirs = owned(stragglers)
    if not theirs:
        return

    def endless(error: BaseException) -> WrongSetting:
        place = next((found for law in theirs if (found := own.place(error, _files(law)))), "--stragglers")
        return WrongSetting(place, f"no end within {LONGEST_TRIAL_S:g} s of processor time", "a law whose methods end")

    with deadline(LONGEST_TRIAL_S, endless):
        for law in theirs:
            mean(law)
            with told(law, "sole"):
                sole = getattr(law, "sole", None)
                _ = sole is None or _numbers(sole, (), SECONDS)
        draws.sleeps(0, 1).first(1)
        draws.noise(0, 1).first(1)


def drawn(law: Law, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Draws of a law, a new array of that shape.

    Raises:
        WrongSetting: a user's own does not give numbers of this shape, all of them in their range, or fails.
    """
    if is_ours(law):
        return law.draw(rng, shape)
    with told(law, "draw"):
        return _numbers(law.draw(rng, shape), shape, SECONDS)


def sequence(law: Stragglers, method: str, scenario, random: RandomStreams, worker: int) -> Stream | Steps:
    """What the method `sleeps` or `factors` gives; the values of a user's own are checked as they are asked for.

    Raises:
        WrongSetting: it gives something else, or fails.
    """
    if is_ours(law):
        return getattr(law, method)(scenario, random, worker)
    allowed = SECONDS if method == "sleeps" else FACTORS
    with told(law, method, allowed):
        found = getattr(law, method)(scenario, random, worker)
        if not callable(getattr(found, "first", None)) or not hasattr(found, "sole"):
            raise _Wrong(_shown(found), "trainsim.laws.Steps, or random.draws(law, number)")
        if found.sole is not None:
            return Steps(sole=float(_numbers(found.sole, (), allowed)))

    def values(count: int) -> np.ndarray:
        with told(law, method, allowed):
            return _numbers(found.first(count), (count,), allowed)

    return Steps(values)


def mean(law: Stragglers) -> float:
    """The mean that a user's own law says, seconds; WrongSetting if it says none, or one out of its range."""
    with told(law, "mean"):
        if not hasattr(type(law), "mean") and "mean" not in type(law).model_fields:
            raise _Wrong(None, "the expected sleep of a worker and step, seconds, as a property or a parameter")
        return float(_numbers(law.mean, (), SECONDS))


class _Wrong(Exception):
    """What a method gave, and what is allowed."""


@contextmanager
def told(law: Stragglers, method: str, allowed: str = SECONDS) -> Iterator[None]:
    """Within it, whatever a user's own law does wrong is a WrongSetting with the place in its file."""
    try:
        with np.errstate(all="ignore"):  # a warning of numpy's: what comes of it, nan or inf, is told
            yield
    except WrongSetting:
        raise
    except _Wrong as error:
        raise WrongSetting(_named(law, method, _place_of(law, method)), *error.args) from None
    except (Exception, SystemExit) as error:
        place = own.place(error, _files(law)) or _place_of(law, method)
        raise WrongSetting(_named(law, method, place), own.complaint(error), allowed) from error


def _named(law: Stragglers, method: str, place: str) -> str:
    return ": ".join(part for part in (place, f"{type(law).__qualname__}.{method}") if part)


def _numbers(given: Any, shape: tuple[int, ...], allowed: str) -> np.ndarray:
    """Numbers of a shape, as floats; _Wrong if they are something else, or out of the range."""
    try:
        array = np.asarray(given)
    except ValueError:  # lists of different lengths
        array = np.empty(0, object)
    if array.dtype.kind not in "iuf":
        raise _Wrong(_shown(given), allowed)
    if array.shape != shape:
        raise _Wrong(f"numbers of shape {array.shape}", f"{allowed}, of shape {shape}" if shape else allowed)
    array = np.array(array, float)  # an integer, or a float of 16 bits, may not be compared with the range
    wrong = array[~((array >= 0) & (array <= LONGEST_S))]
    if wrong.size:
        raise _Wrong(wrong.flat[0], allowed)
    return array


def _shown(given: Any) -> Any:
    """What was given, in a word or two if it is an array."""
    dtype = getattr(given, "dtype", None)
    if dtype is not None:
        return f"numbers of type {dtype.name}"
    return given if isinstance(given, str) else repr(given)


def _files(law: Stragglers) -> set[str]:
    """The files of the user's own classes of a law."""
    return own.sources(type(law), Stragglers)


def _place_of(law: Stragglers, method: str) -> str:
    """Where a method is written in a user's file, or the class, as file:line; empty if it is in none."""
    found = inspect.getattr_static(type(law), method, None)
    code = getattr(getattr(found, "fget", found), "__code__", None)
    if code is not None and code.co_filename in _files(law):
        return f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"
    try:
        return f"{os.path.basename(inspect.getfile(type(law)))}:{inspect.getsourcelines(type(law))[1]}"
    except (OSError, TypeError):  # typed in, as in a notebook
        return ""


class Own(Stragglers):
    """A user's class, a subclass of sim.laws.Law or of sim.laws.Stragglers, made with settings.

    Args:
        name: module:Class.
        settings: names and values of its parameters.
    """

    kind: Literal["own"] = "own"
    name: Name
    settings: tuple[tuple[str, bool | int | float | str], ...] = Field(default=(), max_length=100)

    @model_validator(mode="after")
    def _can_be_made(self):
        _ = self.made
        return self

    @cached_property
    def made(self) -> Stragglers:
        """The object; WrongSetting if there is no such class, or not with these settings."""
        allowed = "module:Class, a subclass of trainsim.laws.Law or of trainsim.laws.Stragglers"
        found = own.imported("name", self.name, allowed)
        if not (isinstance(found, type) and issubclass(found, Stragglers)):
            raise WrongSetting("name", self.name, allowed)
        try:
            return validated(found, dict(self.settings), self.name)
        except WrongSetting:
            raise
        except Exception as error:  # whatever its class does
            raise WrongSetting("name", self.name, f"a class that can be made ({own.complaint(error)})") from error

    @property
    def mean(self) -> float:
        return mean(self.made)

    @property
    def slows_computing(self) -> bool:
        with told(self.made, "slows_computing", "true or false"):
            return bool(self.made.slows_computing)

    def sleeps(self, scenario, random, worker):
        return sequence(self.made, "sleeps", scenario, random, worker)

    def factors(self, scenario, random, worker):
        return sequence(self.made, "factors", scenario, random, worker)

    def check(self, scenario):
        with told(self.made, "check", "a method that raises WrongSetting alone"):
            self.made.check(scenario)

    def scaled(self, factor):
        raise ValueError("no factor of a law of one's own: give it a parameter")

    def notes(self, scenario):
        with told(self.made, "notes", "a list of lines of text"):
            return [str(line) for line in self.made.notes(scenario)]

    def unreal(self):
        with told(self.made, "unreal", "text"):
            return str(self.made.unreal())
