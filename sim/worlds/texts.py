"""The text of a role, as a world runs it. Mistakes in a user's own text become one line, with their place."""

from __future__ import annotations

import os
from collections.abc import Collection
from copy import deepcopy
from difflib import get_close_matches
from functools import partial
from inspect import GEN_CREATED, currentframe, getgeneratorstate, iscoroutine, isgenerator
from pathlib import Path

import numpy as np

from sim import verbs
from sim.base import own
from sim.base.errors import PlacedText, RunFailed, WrongSetting, WrongText
from sim.job.scenario import Scenario
from sim.protocols import is_ours, name_of
from sim.protocols.base import VERBS, Protocol, names_in
from sim.verbs.me import GRADIENT, PARAMETERS, PRIMITIVES
from sim.verbs.servers import ranks_of
from sim.worlds.arguments import check_arguments

WITH_PEERS = (
    "receive",
    "gather",
    "take",
    "take_first",
    "answer",
    "newest",
    "pull",
    "push",
    "let_go",
    "tell",
    "hear",
    "collect",
)
OURS = str(Path(__file__).parents[1]) + os.sep
NO_TEXT = "it has no text: write `def {}(self, me)`"
NO_GENERATOR = "it is no generator: verbs need `yield from`"
A_FUNCTION = "{0} is a function: `from trainsim.verbs import {0}`, then `yield from {0}(me, ...)`"
STEPPING = {"steps", "push", "newest"}  # what begins a worker's next step
NO_STEPS = "its steps are not counted: loop over `for _ in me.steps()`, or use push(me, ...) or newest(me, ...)"
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
        _check_roles(protocol, role)
        watched = Watched(me, role)
        text = getattr(deepcopy(protocol), role)(watched)
        if not isgenerator(text):
            watched.check_made()
            if iscoroutine(text):
                text.close()
            raise WrongText(NO_GENERATOR)
        yield from _followed(text)
        watched.check_made()
    except PlacedText:  # of another rank's text, which this one waits for
        raise
    except WrongText as error:
        raise _placed(protocol, role, error.place or own.place(error), str(error)) from error
    except (RunFailed, WrongSetting):
        raise
    except (Exception, SystemExit) as error:
        raise _placed(protocol, role, own.place(error), own.complaint(error)) from error


def _check_roles(protocol: Protocol, role: str) -> None:
    """Refuse a worker's text that speaks to a rank that has no text, or whose steps nobody counts."""
    used = names_in(type(protocol), role)
    if protocol.masterless and "master" in used:
        raise WrongText(NO_TEXT.format("master"))
    if role == "worker" and used & set(PRIMITIVES) and not used & STEPPING:
        raise WrongText(NO_STEPS)


def _placed(protocol: Protocol, role: str, place: str, said: str) -> PlacedText:
    where = ", ".join(part for part in (name_of(protocol), f"the {role}'s text", place) if part)
    return PlacedText(f"{where}: {said}", place)


def _followed(text):
    """The same as `yield from text`, except that only verbs may yield.

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


MAY_BE_NONE = ("delays",)
AT_ONCE = 2  # texts that me.beside takes
# Verbs of a rank between two moments, for each pair of a rank and a variable: a right text sends, or takes, each of them some times.
ENDLESS, ENDLESS_EACH = 10_000, 100


class Watched:
    """`me` of a user's text: it knows which verbs there are, and sees one that is called and never run.

    Args:
        me: the rank.
        role: whose text it is.
    """

    def __init__(self, me, role: str):
        self._me, self._serves = me, role in ("master", "server")
        self._made: list[tuple] = []  # verbs that were called, and neither run nor handed to another since
        job = me.scenario
        self._most = ENDLESS + ENDLESS_EACH * (job.ranks + 1) * (len(job.workload.variables) + 1)
        self._peers = None  # those of the last verb, which are ranks
        self._moment = np.empty(0)  # of a verb that was called
        self._since = 0  # how many have been called since that moment

    def __getattr__(self, name: str):
        found = getattr(self._me, name, None) if name in VERBS else None
        if found is None and (name not in VERBS or name not in MAY_BE_NONE):
            raise AttributeError(_unknown(name))
        return partial(self._call, name, found) if callable(found) else found

    def __setattr__(self, name: str, value) -> None:
        if not name.startswith("_") and hasattr(self._me, name):
            raise WrongText(f"me.{name} is not a text's to set")
        super().__setattr__(name, value)

    def watch_verb(self, verb, name: str, given, named):
        """Run a verb (sim.verbs) on the rank itself, which may do what a text may not."""
        return self._call(f"{name}(me)", partial(verb, self._me), *given, **named)

    def _call(self, name: str, verb, *given, **named):
        self._check_endless()
        handed = [*given, *named.values()]
        self._made = [one for one in self._made if not any(one[-1] is text for text in handed)]
        self.check_made(AT_ONCE)
        peers = given[1:] if name == "send" else given
        if name.removesuffix("(me)") in (*WITH_PEERS, "send") and peers and peers[0] is not self._peers:
            _check_peers(name, peers[0], self._me.scenario.ranks)
            self._peers = peers[0]  # a list of ten thousand is read once
        check_arguments(name, given, named, self._me.scenario)
        if name == "send":
            self._check_send(*given, **named)
        if name.removesuffix("(me)") not in (*PRIMITIVES, *verbs.__all__) or name == "training(me)":
            return verb(*given, **named)
        made = self._begun(verb, given, named)
        self._made.append((name, _line(_outside(currentframe())), made))
        return made

    def _begun(self, verb, given, named):
        """A verb, that does nothing before it is run."""
        self.check_made()
        return (yield from verb(*given, **named))

    def _check_endless(self) -> None:
        """Refuse a text that goes on for ever while no time passes.

        Raises:
            WrongText: it has called more verbs than a right one could.
        """
        self._since += 1
        if self._since % ENDLESS:
            return
        now_s = self._me.now_s
        moment = np.array(getattr(now_s, "values", now_s))  # of many ranks at once
        if not np.array_equal(moment, self._moment):
            self._moment, self._since = moment, 0
        elif self._since > self._most:
            raise WrongText(
                f"{self._since:,} verbs, and no time has passed: a loop that does not end",
                _line(_outside(currentframe())),
            )

    def _check_send(self, what=None, to=(), wait=True, **_named) -> None:
        """Refuse a message that no world could send.

        Raises:
            WrongText: it carries what this rank does not hold, or goes to the rank itself.
        """
        if what in (GRADIENT, PARAMETERS) and self._serves is not (what is PARAMETERS):
            raise WrongText("me.send: the master and servers send PARAMETERS, and workers their GRADIENT")
        job = self._me.scenario
        if what in (GRADIENT, PARAMETERS) and job.protocol.layerwise:
            raise WrongText("me.send: variables travel one by one here, as Variable(number)")
        if what is PARAMETERS and not ranks_of(to).isdisjoint(range(job.servers)) and job.servers > 1:
            raise WrongText("me.send: PARAMETERS go to workers")
        if what is PARAMETERS and wait and job.traffic.sends_rows:
            raise WrongText("me.send: rows of sparse variables are answers: use answer(me, ...), which does not wait")
        together = (
            getattr(self._me, "refuse_verb", None) is not None
        )  # one text for all workers, of which none has a number
        if self._me.servers and not together and self._me.rank in ranks_of(to):
            raise WrongText(f"me.send: {self._me.rank} is this rank itself")

    def check_made(self, but: int = 0) -> None:
        """Whether all verbs that were called have begun.

        Args:
            but: so many called last may be arguments of the next one.

        Raises:
            WrongText: one has not.
        """
        self._made = [one for one in self._made if getgeneratorstate(one[-1]) == GEN_CREATED]
        if len(self._made) > but:
            name, place, _ = self._made[0]
            said = f"me.{name}()" if "(" not in name else name
            raise WrongText(f"{said} does nothing without `yield from`", place)


def _outside(frame):
    """The frame of the text that called."""
    while frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back
    return frame


def _check_peers(name: str, peers, ranks: int) -> None:
    """Refuse arguments that are no ranks; a lazy list of ranks is not read."""
    if isinstance(peers, range):  # as me.workers is, which may be ten thousand
        peers = (*peers[:1], *peers[-1:])
    peers = peers if isinstance(peers, Collection) else [peers] if isinstance(peers, int) else []
    wrong = [peer for peer in peers if peer not in range(ranks)]
    if wrong:
        raise WrongText(f"{'' if '(' in name else 'me.'}{name}: {wrong[0]!r} is no rank; there are 0 to {ranks - 1}")


def _unknown(name: str) -> str:
    if name in VERBS:
        return f"me.{name} is not to be had in this world"
    if name in verbs.__all__:
        return f"me has no {name}: " + A_FUNCTION.format(name)
    near = get_close_matches(name, VERBS, 1)
    functions = get_close_matches(name, verbs.__all__, 1)
    if functions and not near:
        return f"me has no {name}; the nearest is {functions[0]}(me, ...), of trainsim.verbs"
    return f"me has no {name}" + (f"; the nearest is me.{near[0]}" if near else "; sim/verbs/me.py lists its verbs")


def _line(frame) -> str:
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
