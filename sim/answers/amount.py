"""The amount of a simulation, and what is said where it is less than was asked for."""

from __future__ import annotations

from typing import NamedTuple


class Amount(NamedTuple):
    """The amount of simulation.

    Args:
        runs: replications.
        steps: measured steps of each.
        warmup: steps before them.
    """

    runs: int
    steps: int
    warmup: int


def cut_short(asked: Amount, done: Amount) -> list[str]:
    """A note, if there was no time for all that was asked for.

    >>> cut_short(Amount(20, 100, 10), Amount(3, 100, 10))
    ['3 of 20 runs, because time ran out; --within SECONDS allows more']
    """
    if asked == done:
        return []
    said = f"{done.runs} of {asked.runs} runs"
    if asked[1:] != done[1:]:
        said = f"{done.steps} of {asked.steps} steps of {'one run' if done.runs == 1 else f'{done.runs} runs'}"
    if done.warmup < asked.warmup:
        said += f" (warm-up: {done.warmup} of {asked.warmup})"
    return [f"{said}, because time ran out; --within SECONDS allows more"]


def of_answer(answer: dict) -> list[str]:
    """The same of a JSON answer, schema answer/1."""
    return cut_short(Amount(**answer["asked"]), Amount(**answer["done"]))
