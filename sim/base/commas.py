"""Lists as they are written on a command line, with commas between their items."""

from __future__ import annotations

from collections.abc import Iterator

BRACKETS = {"(": ")", "[": "]", "{": "}"}


def parts(text: str) -> Iterator[str]:
    """Cut at commas, but not within quotes and brackets.

    >>> list(parts("none,lognormal(mean=50ms, cv=1.5)"))
    ['none', 'lognormal(mean=50ms, cv=1.5)']
    """
    part = ""
    closing: list[str] = []
    for letter in text:
        if closing and letter == closing[-1]:
            closing.pop()
        elif letter in "\"'" and not (closing and closing[-1] in "\"'"):
            closing.append(letter)
        elif letter in BRACKETS and not (closing and closing[-1] in "\"'"):
            closing.append(BRACKETS[letter])
        if letter == "," and not closing:
            yield part
            part = ""
        else:
            part += letter
    yield part
