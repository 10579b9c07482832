"""The MPI world's methods, which block, as verbs of a protocol's text, which are generators."""

from __future__ import annotations

from functools import wraps


def verb(function):
    """A method that blocks, as the generator that a protocol's text expects; it never yields."""

    @wraps(function)
    def text(*arguments, **named):
        function(*arguments, **named)
        return
        yield

    return text
