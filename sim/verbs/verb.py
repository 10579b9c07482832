"""How a verb is made: a generator function over the primitives of `me`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import isfunction


def verb(function):
    """A function over `me`.

    A world may do the whole of it at once: its `me` then has a method of that name, and that is used. A world that cannot do it any
    other way has `refuse_verb`. A text of a user's own has its `me` watched: calling a verb and never running it is a mistake.
    """
    name = function.__name__
    ways: dict[type, Callable] = {}  # what is done, by the type of `me`

    @wraps(function)
    def called(me, *given, **named):
        try:
            way = ways[type(me)]
        except KeyError:
            way = ways[type(me)] = chosen(me)
        return way(me, *given, **named)

    def chosen(me):
        if getattr(me, "watch_verb", None) is not None:
            return lambda me, *given, **named: me.watch_verb(called, name, given, named)
        own = getattr(type(me), name, None)
        if isfunction(own):
            return own
        if getattr(me, name, None) is not None:
            return lambda me, *given, **named: getattr(me, name)(*given, **named)
        return refused if getattr(me, "refuse_verb", None) is not None else function

    def refused(me, *given, **named):
        raise me.refuse_verb(name)

    return called
