"""The language of protocols: what a text may ask of `me`. Each world implements it; every other verb is a function over it (sim.verbs)."""

from __future__ import annotations

import math
import typing
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

if typing.TYPE_CHECKING:
    from sim.collectives.base import Exchange
    from sim.model.sparse_rows import Load
    from sim.model.workload import Variable as OfModel
    from sim.model.workload import Workload
    from sim.verbs.book import Book

# Used with `yield from`; what they yield is the world's business.
Given = typing.TypeVar("Given")
Doing = Iterable[object]  # gives nothing
Giving = Generator[Any, Any, Given]  # gives something
FORWARD_SHARE = 1 / 3  # of a gradient's computation; backward takes the rest (as nominal costs have it)


class Gradient(NamedTuple):
    """Message: the gradient at hand; to a server, of the variables that it holds."""


class Parameters(NamedTuple):
    """Message: the parameters that the sender holds."""


class Note(NamedTuple):
    """Message: a header alone.

    Args:
        version: that it says; the sender's own if None.
        last: it says that training is over.
    """

    version: int | None = None
    last: bool = False


class Variable(NamedTuple):
    """Message: one variable's gradient from a worker, one variable's parameters from a server."""

    number: int


GRADIENT, PARAMETERS = Gradient(), Parameters()
What = Gradient | Parameters | Note | Variable


class Partition(NamedTuple):
    """Part of a gradient: the `index`-th of `of` equal micro-batches; it is added to those before."""

    index: int  # type: ignore[assignment]  # nobody looks for a value in it, as tuple.index would
    of: int


class Layer(NamedTuple):
    """Part of a gradient: the forward or the backward pass through one variable.

    Args:
        variable: its number; None is the whole forward pass.
        share: of the gradient's computing time, 0 to 1.
        backward: the gradient of the variable is then ready.
        last: it ends the gradient.
    """

    variable: int | None
    share: float
    backward: bool = True
    last: bool = False


Part = Partition | Layer | None  # None is the whole gradient


class Letter(typing.Protocol):
    """A message that was received.

    Args:
        sender: its rank.
        version: updates in the parameters that it carries, or on which its gradient was computed; of a note, its number.
        samples: in the gradient.
        note: it is a header alone.
        last: it says that training is over.
        variable: the number of the one variable that it carries.
        ready: how many gradients the sender said are ready, where ranks negotiate.
    """

    sender: int
    version: int
    samples: int
    note: bool
    last: bool
    variable: int
    ready: int

    def kept(self) -> Letter:
        """The same, which later messages do not overwrite."""


class Job(typing.Protocol):
    """The job, as verbs see it (sim.job.scenario.Scenario).

    Args:
        workload: the model and its minibatch.
        summed: the variables that workers sum, in order.
        gathered_loads: the load that a worker hands on, of each sparse variable whose rows all workers hand to one another.
    """

    @property
    def workload(self) -> Workload:
        """The model and its minibatch."""
        ...

    @property
    def summed(self) -> Sequence[OfModel]:
        """The variables that workers sum, in order."""
        ...

    @property
    def gathered_loads(self) -> Sequence[Load]:
        """The load that a worker hands on, of each sparse variable whose rows all workers hand to one another."""
        ...

    def algorithm(self, name: str, /) -> str:
        """The algorithm that is called so: what the library takes for `auto`."""
        ...


class Numbers(typing.Protocol):
    """Numbers of which there is always one more."""

    def __getitem__(self, index: int, /) -> float: ...


class Me(typing.Protocol):
    """A rank, as its text sees it. All methods but `steps`, `run_out` and properties are used with `yield from`."""

    # Its role and its peers, by rank
    master: int
    servers: range  # their ranks; the master's alone where there is one, none without either
    workers: range
    senders: Collection[
        int
    ]  # workers that send to servers: all, or the first of each host where it adds up those of its host
    neighbours: Collection[int]  # the other workers whose gradients this one adds up and sends
    aggregators: Collection[int]  # where this worker's gradient goes: the servers, or the worker that sends for it
    hosts: list[int]  # the host of each rank, shape (ranks,)
    # Its state
    step: int  # the number of its step, from 0
    version: int  # updates in the parameters that it holds
    updates: float  # that rank 0 makes in the whole run; infinite at other ranks
    summed: bool  # whether workers sum any variables among themselves
    variables: range  # numbers of the variables that travel one by one
    held: list[int]  # those of them that this server holds
    samples: int  # in the gradient or the sum at hand
    minibatches: int  # whose gradients it sums
    book: Book  # the memory of verbs

    @property
    def rank(self) -> int:
        """Its number."""

    @property
    def now_s(self) -> float:
        """Seconds since the start."""

    @property
    def scenario(self) -> Job:
        """The job; for verbs, a text does not need it."""

    @property
    def delays(self) -> Numbers | None:
        """Induced delays of the messages that this rank receives, seconds, in their order; None without. For verbs."""

    @property
    def ready(self) -> int:
        """The number of variables' gradients that have become ready at this rank since the start."""

    # Time
    def steps(self) -> Iterator[int]:
        """Go through the numbers of the steps, warm-up included, and set `step`."""

    def sleep(self) -> Doing:
        """Sleep as the law of stragglers says for this rank and step; each further sleep of a step is drawn anew."""

    def cycle(self, cycle_s: float) -> Doing:
        """Sleep until the next cycle of this rank begins, `cycle_s` seconds after the last one at the earliest.

        A world may leave out cycles that would find no gradient ready at all ranks.
        """

    # Work
    def fetch(self) -> Doing:
        """Fetch a minibatch before the parameters arrive; without this, `compute` fetches it."""

    def compute(self, part: Part = None) -> Doing:
        """Compute the gradient of the minibatch, or a part of it: a `Partition` or a `Layer`.

        Raises:
            WrongText: a gradient or a sum is at hand that was neither sent, summed nor applied.
        """

    def compute_until(self, deadline_s: float, partitions: int) -> Doing:
        """Compute partitions of the minibatch, at least one, while `now_s` is below `deadline_s`; the last one overruns.

        Args:
            deadline_s: seconds since the start.
            partitions: of a minibatch; `samples` then says how many samples were computed.
        """

    def add(self, letter: Letter) -> Doing:
        """Add the gradient of a letter to the sum at hand.

        Raises:
            WrongText: the letter's gradient was added before.
        """

    def take_up(self, letter: Letter) -> Doing:
        """Replace the parameters at hand by those of a letter."""

    def update(self, variables: Collection[int] | None = None) -> Doing:
        """Divide the sum by its samples and apply the optimiser.

        Args:
            variables: their numbers; None is all that were not updated in this step, which makes a new version.

        Raises:
            WrongText: no samples, or an update of rank 0 outside of the rounds of `steps`.
        """

    def evaluate(self) -> Doing:
        """Compute loss and accuracy on test samples, at rank 0, in steps where they are due."""

    def run_out(self) -> None:
        """Note that there was time left and no data."""

    def copy(self, piece: slice) -> Doing:
        """Copy items of the gradient into a buffer, or out of it."""

    # Messages
    def send(self, what: What, to: int | Collection[int], wait: bool = True) -> Doing:
        """Send a message to each of `to`; go on when the last one has left.

        Args:
            what: PARAMETERS, GRADIENT, a Note or a Variable.
            to: a rank, or several.
            wait: if false, go on at once; a gradient first waits until the one before has left, which is when its receiver has taken it.
        """

    @typing.overload
    def receive(self, frm: int | Collection[int], *, variable: int | None = None) -> Giving[Letter]: ...

    @typing.overload
    def receive(
        self, frm: int | Collection[int], until_s: float, variable: int | None = None
    ) -> Giving[Letter | None]: ...

    def receive(self, frm, until_s=math.inf, variable=None):
        """Receive the next letter from one of `frm`.

        Args:
            frm: a rank, or several.
            until_s: seconds since the start; None is returned if no letter begins to arrive by then.
            variable: wait for the parameters of this variable in this step; others may arrive first.
        """

    def exchange(self, exchange: Exchange, ready: int = 0) -> Giving[Any]:
        """Hand a piece to one rank while taking a piece from another, which is added to this rank's or replaces it.

        Args:
            exchange: see sim.collectives.base.Exchange.
            ready: how many gradients are ready here; it travels along.

        Returns:
            The letter that was taken, if any.
        """

    def departed(self) -> Doing:
        """Wait until all that `exchange` handed over ahead has left."""

    # Texts
    def beside(self, computing: Doing, communicating: Doing) -> Doing:
        """Both texts at once, until both have ended; the first only computes."""


PRIMITIVES = ("sleep", "cycle", "fetch", "compute", "compute_until", "add", "take_up", "update", "evaluate", "copy", "send", "receive",
              "exchange", "departed", "beside")  # fmt: skip
ATTRIBUTES = (*Me.__annotations__, "rank", "now_s", "scenario", "delays", "ready", "steps", "run_out")
