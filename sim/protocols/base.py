"""Protocols: texts for the ranks' roles, written with the primitives of `me` and the verbs over them."""

from __future__ import annotations

import dis
import inspect
import types
from collections.abc import Iterator
from dataclasses import Field
from typing import Any, ClassVar

from sim.verbs.me import ATTRIBUTES, PRIMITIVES, Me

INFINITE = "infinite"  # in the metadata of a setting that may be so
ATTRIBUTE = object()
VERBS_MODULE = Me.__module__.rpartition(".")[0]
Text = Iterator[object]  # a generator; the world knows the values that it yields


class Protocol:
    """Texts that each world runs with its own `me`. A subclass is a frozen dataclass of the protocol's settings.

    Settings are int, float, str or bool. A text decides only by these and by the values of `me`: random numbers, clocks and globals
    of its own would differ from world to world. A gradient is sent, summed or applied before the next is computed. Received gradients
    add up until the update. Where the text of rank 0 goes through `me.steps()`, it makes one update in each round;
    where it does not, its updates number the steps.

    The primitives of `me` are in sim/verbs/me.py; the verbs made of them are functions, in sim/verbs. Each is used with
    `yield from`: `yield from me.compute()`, `yield from pull(me, me.servers)`.

    The texts determine the roles: ranks 0, 1, ... are parameter servers if there is a text for a `server`, and rank 0 is a `master`
    if there is one for that. Otherwise every rank is a worker that updates its own parameters. The event world and MPI run
    all texts; the engine runs those that its subset of Python can say (docs/protocol.md).
    """

    name: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Field]]  # of every subclass
    __dataclass_params__: ClassVar[Any]
    # Of ours without a master: each rank waits for all in each step, so that rank 0's is that of all.
    in_step: ClassVar[bool] = False
    local_aggregation: bool = False  # the first worker of a host sends for all its workers
    delay_std_s: float = 0.0  # every message is delayed by |N(0, delay_std_s)| where it is received

    def __init_subclass__(cls, **named):
        """A protocol without a name is called as its class is."""
        super().__init_subclass__(**named)
        cls.name = vars(cls).get("name", cls.__name__)

    # Which roles there are

    @property
    def has_servers(self) -> bool:
        """Whether ranks 0, 1, ... are parameter servers."""
        return type(self).server is not Protocol.server

    @property
    def masterless(self) -> bool:
        """Whether every rank, from 0, is a worker that updates its own parameters."""
        return not self.has_servers and type(self).master is Protocol.master

    @property
    def can_be_alone(self) -> bool:
        """Whether a single process can train by it."""
        return type(self).alone is not Protocol.alone

    # What its texts do

    def uses(self, name: str) -> bool:
        """Whether a text of this protocol names a primitive, a message or a verb."""
        return name in names_in(type(self))

    @property
    def counts_updates(self) -> bool:
        """Whether the updates of rank 0 number the steps, since its text has no rounds."""
        role = "server" if self.has_servers else "worker" if self.masterless else "master"
        return "steps" not in names_in(type(self), role)

    @property
    def by_arrival(self) -> bool:
        """Whether the order in which gradients arrive decides what becomes of them."""
        return self.counts_updates or self.uses("take")

    @property
    def limits_computing(self) -> bool:
        """Whether time cuts computing short, whatever the minibatch."""
        return self.uses("compute_until") or self.uses("compute_renewing")

    def waits_for_all(self, workers: int) -> bool:
        """Whether training stands still while any one worker is missing."""
        return not self.by_arrival

    @property
    def overlaps(self) -> bool:
        """Whether messages travel while a rank computes."""
        return self.uses("beside") or self.layerwise

    @property
    def layerwise(self) -> bool:
        """Whether variables travel one by one between workers and servers."""
        return self.uses("Variable")

    def gradients_per_update(self, workers: int) -> int:
        """Gradients whose sum makes an update."""
        return max(1, workers)

    def updates_per_step(self, workers: int) -> int:
        """Updates of a server in which every worker contributes once on average."""
        return 1

    @property
    def way(self) -> str:
        """The kind of update: by each gradient as it comes, or by several at once."""
        return "asynchronous" if self.updates_per_step(2) > 1 else "synchronous"

    @property
    def in_library(self) -> bool:
        """Whether its messages travel within one call of MPI's."""
        return False

    # Which variables go where

    def served(self, workload) -> tuple:
        """The variables that the master or the servers hold; of sparse ones on servers, rows alone travel."""
        return () if self.masterless else workload.variables

    def summed(self, workload) -> tuple:
        """The variables that workers allreduce, and update by themselves."""
        return workload.variables if self.masterless else ()

    def gathered(self, workload) -> tuple:
        """The sparse variables whose rows all workers hand to one another, and which they update by themselves."""
        return ()

    def check(self, scenario) -> None:
        """Refuse a scenario that the settings do not fit.

        Raises:
            WrongSetting: naming the setting.
        """

    # The texts

    def master(self, me: Me) -> Text:
        """The text of rank 0."""
        raise NotImplementedError

    def server(self, me: Me) -> Text:
        """The text of each parameter server."""
        raise NotImplementedError

    def worker(self, me: Me) -> Text:
        """The text of the ranks after master or servers."""
        raise NotImplementedError

    def alone(self, me: Me) -> Text:
        """The text of a single process that trains undistributed."""
        raise NotImplementedError


ROLES = ("master", "server", "worker", "alone")
_NAMES: dict[tuple[type, tuple[str, ...]], frozenset[str]] = {}  # what was found before


def names_in(protocol: type, *roles: str) -> frozenset[str]:
    """Primitives and attributes of `me`, verbs and messages that the texts of a class use, whatever name they were imported by.

    Args:
        roles: methods to begin with; all texts if none are given.
    """
    if (protocol, roles) not in _NAMES:
        named = [one for function in _functions(protocol, roles or ROLES) for one in _named(function)]
        found = {name for name, value in named if value is ATTRIBUTE and name in VERBS}
        _NAMES[protocol, roles] = frozenset(
            found | {getattr(value, "__name__", "") for _, value in named if _is_verb(value)}
        )
    return _NAMES[protocol, roles]


def texts_in(protocol: type) -> frozenset[str]:
    """Constants of the texts of a class that are text, such as the name of an algorithm."""
    codes = [code for function in _functions(protocol, ROLES) for code in _with_inner(function.__code__)]
    return frozenset(constant for code in codes for constant in code.co_consts if isinstance(constant, str))


def _functions(protocol: type, roles: tuple[str, ...]) -> list[types.FunctionType]:
    """Methods, and all methods and functions of the user's own that these call."""
    found: list[types.FunctionType] = []
    todo = [one for role in roles for one in _methods(protocol, role)]
    while todo:
        if (function := todo.pop()) not in found:
            found.append(function)
            for name, value in _named(function):
                is_own = isinstance(value, types.FunctionType) and not _is_verb(value)
                is_own = is_own and (inspect.isgeneratorfunction(value) or value.__module__ == function.__module__)
                todo += [value] if is_own else _methods(protocol, name)
    return found


def _methods(protocol: Any, name: str) -> list[types.FunctionType]:
    """The method of a class by its name, and what it overrides if it calls that."""
    found: list[types.FunctionType] = []
    for one in protocol.__mro__[: protocol.__mro__.index(Protocol)]:
        method: Any = vars(one).get(name)
        method = inspect.unwrap(getattr(method, "__func__", method))
        if inspect.isfunction(method) and (not found or "super" in found[-1].__code__.co_names):
            found.append(method)
    return found


def _is_verb(value: object) -> bool:
    return str(getattr(value, "__module__", "")).startswith(VERBS_MODULE)


def _named(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """The names in a function and what they are: ATTRIBUTE if of another object than its own, `self`, and None if of that."""
    known = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
    for code in _with_inner(function.__code__):
        before: object = None
        for one in dis.get_instructions(code):
            name, held = one.argval, before
            before = name[-1] if name and isinstance(name, tuple) else name
            if one.opname in ("LOAD_GLOBAL", "LOAD_DEREF") and name in known:
                before = known[name]
                yield name, before
            elif one.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"):
                before = getattr(held, name, None) if isinstance(held, types.ModuleType) else ATTRIBUTE
                yield name, None if isinstance(held, str) and held == "self" else before


def _with_inner(code: types.CodeType) -> list[types.CodeType]:
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return [code, *(each for one in inner for each in _with_inner(one))]


VERBS = (*ATTRIBUTES, *PRIMITIVES)  # all that `me` has
