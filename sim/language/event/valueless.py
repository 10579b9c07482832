"""A world without values: vectors have sizes and names alone."""

from __future__ import annotations


class Valueless:
    """What a world does with values where it has none; sim.language.learning has the other."""

    def begin(self, ranks) -> None:
        """The ranks are made."""

    def forward(self, me, command) -> None:
        """A forward pass is over."""

    def backward(self, me, command) -> None:
        """A backward pass is over."""

    def update(self, me, command) -> object:
        """An update is over."""

    def mix(self, me, command) -> None:
        """A mix is over."""

    def drop(self, me, command) -> None:
        """A piece is dropped."""

    def ended(self, me) -> None:
        """A rank that goes through the rounds has ended one."""

    def read(self, me, piece):
        """The values of a piece, copied, to be sent."""

    def put(self, me, piece, values, adds: bool, weight: float) -> None:
        """Values have come."""
