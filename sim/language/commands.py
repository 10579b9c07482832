"""What texts yield: a command for each primitive, which every world executes. sim.language.rank explains the fields."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import NamedTuple

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
