"""The text of a role, as a world runs it; what is wrong with a user's own is said in one line, with its place."""

from __future__ import annotations

import os
from collections.abc import Collection
from copy import deepcopy
from difflib import get_close_matches
from functools import partial
from inspect import GEN_CREATED, currentframe, getgeneratorstate, isgenerator

import sim
from sim.errors import RunFailed, WrongSetting, WrongText
from sim.protocols import is_ours, name_of, own
from sim.protocols.base import VERBS, Protocol
from sim.scenario import Scenario

WITH_PEERS = ("send", "receive", "gather", "take", "answer", "post", "newest", "pull", "push", "let_go", "tell", "hear")
OURS = os.path.dirname(sim.__file__) + os.sep
NO_TEXT = "it has no text: write `def {}(self, me)`, or set masterless = True if every rank is a worker"
NO_GENERATOR = "it is no generator: verbs need `yield from`"
NOT_FROM = "`yield from me.verb()` is all that a text may yield; `for _ in me.steps()` is a loop"


def role_of(scenario: Scenario, rank: int) -> str:
    """The name of the text that a rank runs: worker, master, server or alone."""
    if scenario.workers == 0:
        return "alone"
    if rank >= scenario.servers:
        return "worker"
    return "server" if scenario.protocol.has_servers else "master"


def text_of(scenario: Scenario, role: str, me):
    """The generator of a role, which `me` runs.

    Raises:
        WrongText: as it runs, if it is a user's own and makes a mistake.
    """
    protocol = scenario.protocol
    return getattr(protocol, role)(me) if is_ours(protocol) else _watched(protocol, role, me)


def _watched(protocol: Protocol, role: str, me):
    """A user's text. Each rank has an object of its class to itself, as where ranks are processes."""
    own.SOURCES.update(own.sources(type(protocol)))
    try:
        if getattr(type(protocol), role) is getattr(Protocol, role):
            raise WrongText(NO_TEXT.format(role))
        watched = Watched(me)
        text = getattr(deepcopy(protocol), role)(watched)
        if not isgenerator(text):
            watched.check_made()
            raise WrongText(NO_GENERATOR)
        yield from _followed(text)
        watched.check_made()
    except WrongText as error:
        raise _placed(protocol, role, error.place or own.place(error), str(error)) from error
    except (RunFailed, WrongSetting):
        raise
    except Exception as error:
        raise _placed(protocol, role, own.place(error), own.complaint(error)) from error


def _placed(protocol: Protocol, role: str, place: str, said: str) -> WrongText:
    where = ", ".join(part for part in (name_of(protocol), f"the {role}'s text", place) if part)
    return WrongText(f"{where}: {said}", place)


def _followed(text):
    """As `yield from text`, but that only verbs may yield.

    Raises:
        WrongText: the text yields by itself.
    """
    reply, go_on = None, text.send
    while True:
        try:
            awaited = go_on(reply)
        except StopIteration:
            return
        inner = text
        while isgenerator(inner.gi_yieldfrom):
            inner = inner.gi_yieldfrom
        if not inner.gi_code.co_filename.startswith(OURS) or inner.gi_code.co_name == "steps":
            raise WrongText(NOT_FROM, _line(inner.gi_frame))
        try:
            reply, go_on = (yield awaited), text.send
        except GeneratorExit:
            text.close()
            raise
        except BaseException as error:
            reply, go_on = error, text.throw


class Watched:
    """`me` of a user's text: it knows which verbs there are, and sees one that is called and never run."""

    def __init__(self, me):
        self._me, self._made = me, None

    def __getattr__(self, name: str):
        try:
            found = getattr(self._me, name)
        except AttributeError:
            raise AttributeError(_unknown(name)) from None
        return partial(self._call, name, found) if callable(found) else found

    def __setattr__(self, name: str, value) -> None:
        if not name.startswith("_") and hasattr(self._me, name):
            raise WrongText(f"me.{name} is not a text's to set")
        super().__setattr__(name, value)

    def _call(self, name: str, verb, *given, **named):
        self.check_made(given)
        if name in WITH_PEERS and given:
            _check_peers(name, given[0], self._me.scenario.ranks)
        made = verb(*given, **named)
        if isgenerator(made) and name != "steps":
            self._made = (name, made, _line(currentframe().f_back))
        return made

    def check_made(self, given=()) -> None:
        """Whether the verb that was called last has begun, or is one of the arguments `given` to the next.

        Raises:
            WrongText: it has not.
        """
        name, made, place = self._made or (None, None, None)
        if made and getgeneratorstate(made) == GEN_CREATED and not any(one is made for one in given):
            raise WrongText(f"me.{name}() does nothing without `yield from`", place)


def _check_peers(name: str, peers, ranks: int) -> None:
    """Refuse what is no rank; a list of ranks that is made as it is read is not looked into."""
    peers = peers if isinstance(peers, Collection) else [peers] if isinstance(peers, int) else []
    wrong = [peer for peer in peers if peer not in range(ranks)]
    if wrong:
        raise WrongText(f"me.{name}: {wrong[0]!r} is no rank; there are 0 to {ranks - 1}")


def _unknown(name: str) -> str:
    if name in VERBS:
        return f"me.{name} is not to be had in this world"
    near = get_close_matches(name, VERBS, 1)
    return f"me has no {name}" + (
        f"; the nearest is me.{near[0]}" if near else "; sim/protocols/base.py lists its verbs"
    )


def _line(frame) -> str:
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
