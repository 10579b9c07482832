"""What texts yield: a command for each primitive, which every world executes. sim.language.rank explains the fields."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Generator, Sequence
from functools import cache
from numbers import Integral, Real
from typing import Any, NamedTuple

from sim.language.pieces import Handle, Message, Piece


class Sleep(NamedTuple):
    """The induced straggler."""


class Forward(NamedTuple):
    """The forward pass through layers first to stop - 1."""

    first: int
    stop: int
    micro: int
    of: int


class Backward(NamedTuple):
    """The backward pass through layers stop - 1 down to first."""

    first: int
    stop: int
    micro: int
    of: int
    weight: float


class Update(NamedTuple):
    """The optimiser on a piece of the weights."""

    piece: Piece
    rate: float | None
    samples: float
    share: float = 1.0


class Mix(NamedTuple):
    """into = a into + b what."""

    into: Piece
    what: Piece | Message
    a: float
    b: float


class Work(NamedTuple):
    """Work of the rank's core that is no pass: the longest of the three."""

    seconds: float
    flops: float
    bytes: float


class Evaluate(NamedTuple):
    """Loss and accuracy on test samples, where they are due."""


class Post(NamedTuple):
    """Send a piece and go on."""

    piece: Piece
    to: int
    share: float
    taken: bool


class Take(NamedTuple):
    """Receive a message."""

    frm: int | range
    into: Piece | None
    adds: bool
    weight: float
    newest: bool
    until_s: float | None


class Follow(NamedTuple):
    """Receive the newest message of a rank, or of each of a group, and its step."""

    frm: int | range
    into: Piece
    wait: bool


class Start(NamedTuple):
    """Start a text when handles are done."""

    text: Generator
    after: Sequence[Handle]


class Wait(NamedTuple):
    """Wait until some handles are done."""

    handles: Sequence[Handle]
    needed: int


class Stop(NamedTuple):
    """End a text where it is."""

    handle: Handle


class Drop(NamedTuple):
    """Free the memory of a piece, but for a part of it."""

    piece: Piece
    but: Piece | None


def _is(one: Any, kind: type) -> bool:
    """Whether it is a number of a kind; most are Python's own, of which nothing is asked."""
    return type(one) is int or (type(one) is float and kind is Real) or isinstance(one, kind)


PIECE, INTEGER, NUMBER, SECONDS = "a piece of a vector", "an integer", "a number from 0", "seconds from 0"
FIELDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("first", "stop", "micro", "of", "to", "needed"), (INTEGER, lambda one: _is(one, Integral))),
    **dict.fromkeys(("share", "flops", "bytes", "samples"), (NUMBER, lambda one: _is(one, Real) and float(one) >= 0)),
    **dict.fromkeys(("weight", "a", "b"), ("a number", lambda one: _is(one, Real) and not math.isnan(one))),
    "piece": (PIECE, lambda one: isinstance(one, Piece)),
    "into": (PIECE, lambda one: one is None or isinstance(one, Piece)),
    "but": (PIECE, lambda one: one is None or isinstance(one, Piece)),
    "what": (f"{PIECE}, or a message", lambda one: isinstance(one, Piece | Message)),
    "seconds": (SECONDS, lambda one: _is(one, Real) and float(one) >= 0),
    "until_s": ("a time of me.now()", lambda one: one is None or (_is(one, Real) and not math.isnan(one))),
    "text": ("a text that has not begun: a call of a function with `yield from`", inspect.isgenerator),
    "handle": ("the handle of a text", lambda one: isinstance(one, Handle)),
    "handles": ("handles", lambda several: all(isinstance(one, Handle) for one in several)),
    "after": ("handles", lambda several: all(isinstance(one, Handle) for one in several)),
}


def wrong(command: NamedTuple) -> str:
    """What is wrong with a command's fields, in words; nothing if they are right."""
    for place, allowed, fits in _checks(type(command)):
        if not fits(value := command[place]):
            said = f"{command._fields[place]} {value!r}; allowed: {allowed}"
            return f"me.{type(command).__name__.lower()}: {said}"
    return ""


@cache
def _checks(kind: type[NamedTuple]) -> list[tuple[int, str, Callable[[Any], bool]]]:
    """Of a kind of command, the places of fields that not all values fit, what is allowed there, and what says so."""
    return [(place, *FIELDS[name]) for place, name in enumerate(kind._fields) if name in FIELDS]
