"""Several things at a time, on threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")


def in_order(function: Callable[[Item], Found], items: Iterable[Item], threads: int) -> Iterator[Found]:
    """What a function gives for each item, in order; so many are computed at a time.

    None is begun once the results are no longer asked for, and none runs on.
    """
    if threads == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(function, items)
