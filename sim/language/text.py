"""A protocol in the language: a class of its few settings, whose call is the text that every rank runs."""

from __future__ import annotations

from typing import ClassVar

from sim.base.errors import WrongSetting
from sim.language.rank import Rank


class Text:
    """A protocol. Subclasses are frozen dataclasses of settings, one file each in sim/texts.

    Args:
        name: by which commands know it.
        servers: ranks before the workers that hold parameters for them; a setting where a text has any number.
        data: own: each rank has samples of its own; shared: all ranks have those of one minibatch.
    """

    name: ClassVar[str]
    servers: int = 0
    data: ClassVar[str] = "own"

    def check(self, job) -> None:
        """Refuse a job that the protocol cannot have.

        Raises:
            WrongSetting: naming the setting.
        """

    def __call__(self, me: Rank):
        """The text of a rank: a generator."""
        raise NotImplementedError


def require(ok: bool, setting: str, given: object, allowed: str) -> None:
    """Refuse a setting that is not right.

    Raises:
        WrongSetting: if not `ok`.
    """
    if not ok:
        raise WrongSetting(setting, given, allowed)
