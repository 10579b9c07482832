"""Several things at a time, on threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
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
    ahead: deque[Future[Found]] = deque()
    pool = ThreadPoolExecutor(threads)
    try:
        for item in items:
            ahead.append(pool.submit(function, item))
            if len(ahead) == threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
