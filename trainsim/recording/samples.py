"""The samples of a batch: as the user says, or counted in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sim.base.errors import WrongSetting

SETTING = "Recorder: batch"
MOST = 10**9
DEEPEST = 100  # containers within one another; one that holds itself has no end


class Samples:
    """Counts the samples of each batch.

    Args:
        given: their number, a function of the batch, or None to look for it in the batch.

    Raises:
        WrongSetting: none of these.
    """

    def __init__(self, given: int | Callable[[Any], int] | None):
        if given is not None and not callable(given):
            _check(given)
        self._given, self.last = given, 0

    def need(self, by: str) -> None:
        """Refuse a batch that could only be counted, where no batch is to be seen.

        Raises:
            WrongSetting: there is no number.
        """
        if not isinstance(self._given, int):
            raise WrongSetting(SETTING, None, f"samples per rank and step: {by} does not see the batch")

    def of(self, batch: Any) -> int:
        """The samples of one batch.

        Raises:
            WrongSetting: they cannot be told.
        """
        if self._given is None:
            self.last = _counted(batch)
        else:
            self.last = _check(self._given(batch)) if callable(self._given) else self._given
        return self.last


def _check(number: Any) -> int:
    whole = getattr(number, "__index__", None)  # of integers of numpy and torch, too
    if isinstance(number, bool) or whole is None or not 1 <= whole() <= MOST:
        raise WrongSetting(
            SETTING, number, f"samples of a batch, an integer from 1 to {MOST}, or a function that gives them"
        )
    return whole()


def _counted(batch: Any) -> int:
    """The length of the first array in a batch, which may be a pair, a list or a table of arrays."""
    found = batch
    for _ in range(DEEPEST):
        if hasattr(found, "shape"):
            break
        if isinstance(found, Mapping):
            found = next(iter(found.values()), None)
        elif isinstance(found, list | tuple) and found:
            found = found[0]
    if not hasattr(found, "shape"):
        raise WrongSetting(SETTING, None, f"samples of a batch: a {type(batch).__name__} does not tell them")
    if not len(found.shape):
        raise WrongSetting(SETTING, None, "samples of a batch: its first array has no length")
    return _check(found.shape[0])
