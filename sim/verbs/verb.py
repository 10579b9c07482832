"""How a verb is made: a generator function over the primitives of `me`."""

from __future__ import annotations

from functools import wraps


def verb(function):
    """A function over `me`.

    A world may do the whole of it at once: its `me` then has a method of that name, and that is used. A world that cannot do it any
    other way has `refuse_verb`. A text of a user's own has its `me` watched: calling a verb and never running it is a mistake.
    """
    name = function.__name__

    @wraps(function)
    def called(me, *given, **named):
        watched = getattr(me, "watch_verb", None)
        if watched is not None:
            return watched(called, name, given, named)
        whole = getattr(me, name, None)
        if whole is not None:
            return whole(*given, **named)
        refuse = getattr(me, "refuse_verb", None)
        if refuse is not None:
            raise refuse(name)
        return function(me, *given, **named)

    return called
