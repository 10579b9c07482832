"""A rank as its text sees it. Each primitive is a generator, used with `yield from`, which yields one command to the world that runs it."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from difflib import get_close_matches
from itertools import accumulate
from typing import Any

from sim.language import commands
from sim.language.layers import stages
from sim.language.pieces import Handle, Message, Piece

MASK = 2**64 - 1


class Rank:
    """One rank of a job: `me` of its text.

    Args:
        rank: its number.
        job: sim.language.job.Job.
        servers: ranks that come before the workers and hold parameters for them (the text's `servers`).
        world: that runs the text; it has `now_s(me)`, `begin_round(me)`, `end_round(me)`.
        shared: whether all ranks have the same minibatch.
    """

    def __init__(self, rank: int, job, servers: int = 0, world: Any = None, shared: bool = False):
        self.rank, self.n, self.batch, self.item_bytes = rank, job.ranks, job.batch, job.item_bytes
        self.master, self.servers, self.workers = 0, range(servers), range(servers, job.ranks)
        self.layers = range(len(job.layers))
        self.sparse, self.dense = job.sparse, job.dense  # layers, and stretches (first, stop) of the others
        self.library = job.library
        self.step, self.round = 0, -1  # the step of the job, and how many rounds this rank has begun, less one
        self.leads = False  # whether it goes through the rounds itself, and does not follow
        self._ends = [0, *accumulate(layer.items for layer in job.layers)]  # where layers end, in items
        self.weights, self.gradient = (Piece(name, 0, self._ends[-1]) for name in ("weights", "gradient"))
        self.samples = job.batch if shared else job.batch * len(self.workers)  # of a minibatch of all workers
        self._job, self._world, self._own = job, world, dict[str, int]()

    def __getattr__(self, name: str):
        near = get_close_matches(name, dir(type(self)), 1)
        raise AttributeError(
            f"me has no {name}; " + (f"the nearest is me.{near[0]}" if near else "sim/language/rank.py lists all")
        )

    # ---- what takes no time, and is called without `yield from`

    def now(self) -> float:
        """The clock of this rank, seconds."""
        return self._world.now_s(self)

    def of(self, vector: Piece, first: int, stop: int | None = None) -> Piece:
        """The items of layers first to stop - 1, or of one layer, in a vector that has as many items as the weights."""
        return vector[self._ends[first] : self._ends[first + 1 if stop is None else stop]]

    def held(self, vector: Piece, server: int) -> Piece:
        """The items that a server holds of a vector that has as many items as the weights."""
        shares = self._job.shares
        if not shares:
            return vector.part(server, len(self.servers))
        return vector[sum(shares[:server]) : sum(shares[: server + 1])]

    def host(self, rank: int) -> int:
        """The host of a rank, by its number."""
        return self._job.host(rank)

    def draw(self, n: int) -> int:
        """A random number below n: the same at all ranks in a step."""
        return drawn(self._job.seed, self._job.replication, self.step) % n

    def vector(self, name: str, items: int) -> Piece:
        """A vector of the text's own, of zeros when it is first asked for."""
        self._own.setdefault(name, items)
        return Piece(name, 0, self._own[name])

    def items(self, piece: Piece) -> int:
        """The number of items of the whole vector of which a piece is part."""
        return self._own.get(piece.vector, piece.stop)

    def activation(self, layer: int, micro: int = 0, of: int = 1) -> Piece:
        """The input of a layer for micro-batch `micro` of `of`."""
        return Piece(f"activation {layer} {micro}", 0, self._job.activation_items(layer, micro, of))

    def slope(self, layer: int, micro: int = 0, of: int = 1) -> Piece:
        """The gradient with respect to that input."""
        return Piece(f"slope {layer} {micro}", 0, self._job.activation_items(layer, micro, of))

    # ---- sparse layers, whose gradients are rows, and the servers that hold layers

    def share(self, layer: int, minibatches: int = 1, numbered: bool = False) -> float:
        """The share of a layer's items that are in rows which so many minibatches touch together; 1 of a dense layer.

        Args:
            numbered: the numbers of these rows are items, too: a gradient says which rows it has.
        """
        return self._job.share(layer, minibatches, numbered)

    def rows(self, layer: int) -> Piece:
        """The numbers of the rows of a sparse layer that this rank's minibatch touches; of a dense one, nothing."""
        return Piece(f"rows {layer}", 0, self._job.touched(layer))

    def held_share(self, server: int, minibatches: int = 1, numbered: bool = False) -> float:
        """The share of what a server holds, as that of a layer."""
        return self._job.held_share(server, len(self.servers), minibatches, numbered)

    def asked(self, server: int) -> Piece:
        """The numbers of the rows that this rank's minibatch touches of what a server holds."""
        return Piece("rows", 0, self._job.asked(server, len(self.servers)))

    def server_of(self, layer: int) -> int:
        """The server that holds a layer."""
        return self._job.server_of(layer, len(self.servers))

    def neighbours(self, rank: int) -> range:
        """The workers on the host of a worker, itself among them; of a server, nobody."""
        return self._job.neighbours(rank, len(self.servers))

    @property
    def stages(self) -> list[int]:
        """The first layer of each rank's stage of a pipeline, and the end of the last, shape (ranks + 1,)."""
        return stages(self._job.layers, self.n)

    def steps(self) -> Iterator[int]:
        """Go through the rounds: `for step in me.steps()`. A step of the job is over when the last rank has ended its round."""
        self.leads = True
        for step in range(self._job.steps):
            self.step = self.round = step
            self._world.begin_round(self)
            yield step
            self._world.end_round(self)

    # ---- primitives

    def sleep(self) -> Generator[Any, Any, None]:
        """Sleep as the law of stragglers says for this rank and its round; each further sleep of a round is drawn anew."""
        yield commands.Sleep()

    def forward(
        self, first: int = 0, stop: int | None = None, micro: int = 0, of: int = 1
    ) -> Generator[Any, Any, None]:
        """The forward pass through layers first to stop - 1, all by default, with micro-batch `micro` of `of` of the minibatch.

        Before the first layer the samples are fetched, those that are not there; through no layer (0 to 0) it does that alone.
        """
        yield commands.Forward(first, len(self.layers) if stop is None else stop, micro, of)

    def backward(
        self, first: int = 0, stop: int | None = None, micro: int = 0, of: int = 1, weight: float = 1.0
    ) -> Generator[Any, Any, None]:
        """The backward pass through the same layers, the last first; `weight` times the gradient is added to `me.gradient`."""
        yield commands.Backward(first, len(self.layers) if stop is None else stop, micro, of, weight)

    def update(
        self, piece: Piece | None = None, rate: float | None = None, samples: float | None = None, share: float = 1.0
    ) -> Generator[Any, Any, None]:
        """The optimiser on a piece of the weights, all by default; the gradient of the piece begins anew.

        Args:
            rate: learning rate; the job's if None.
            samples: in the gradient, which is divided by them; those of all workers' minibatches if None.
            share: of the items that have a gradient.
        """
        yield commands.Update(piece or self.weights, rate, self.samples if samples is None else samples, share)

    def mix(self, into: Piece, what: Piece | Message, a: float = 1.0, b: float = 1.0) -> Generator[Any, Any, None]:
        """Into = a into + b what."""
        yield commands.Mix(into, what, a, b)

    def work(
        self, seconds: float | None = None, flops: float | None = None, bytes: float | None = None
    ) -> Generator[Any, Any, None]:
        """Work of the rank's core that is no pass of the model: as long as the longest of the three takes.

        Args:
            flops: operations, at the rate of the model's passes.
            bytes: of vectors, at the rate at which they are added.
        """
        yield commands.Work(*(0.0 if one is None else one for one in (seconds, flops, bytes)))

    def evaluate(self) -> Generator[Any, Any, None]:
        """Compute loss and accuracy on test samples in steps in which they are due."""
        yield commands.Evaluate()

    def post(self, piece: Piece, to: int, share: float = 1.0, taken: bool = False) -> Generator[Any, Any, Handle]:
        """Send what a piece is now to a rank, and go on; the handle is done when it has left, within a host when it is copied.

        Args:
            share: of the piece's items that travel: compression, or rows of a sparse layer.
            taken: the handle is done when the receiver has taken it, and not when it has left.
        """
        return (yield commands.Post(piece, to, share, taken))

    def take(
        self,
        frm: int | range,
        into: Piece | None = None,
        adds: bool = False,
        weight: float = 1.0,
        newest: bool = False,
        until_s: float | None = None,
    ) -> Generator[Any, Any, Any]:
        """Receive the next message of a rank, or of a group in order of arrival.

        Args:
            into: the piece that becomes what has come; it must have as many items.
            adds: it is added to the piece instead.
            weight: factor on what has come.
            newest: take the last of those that are there; those before are lost.
            until_s: time of the clock after which nothing is waited for; None is then returned. Infinite: until nothing can come any more,
                because the main texts of all that it could come from have ended.

        Returns:
            The Message.

        Raises:
            WrongText: the sizes differ.
        """
        return (yield commands.Take(frm, into, adds, weight, newest, until_s))

    def follow(self, frm: int | range, into: Piece, wait: bool = True) -> Generator[Any, Any, bool]:
        """Take the newest message of a rank, and go on with its step: `while (yield from me.follow(0, me.weights)):`.

        Of a group the newest of each, in order: the k-th one's message becomes the k-th part of the piece, and the first one's step
        this rank's.

        Args:
            wait: for news; else go on at once where there are none.

        Returns:
            False once the main text of one of them has ended and nothing of it is left to take.
        """
        return (yield commands.Follow(frm, into, wait))

    def start(self, text: Generator, after: Sequence[Handle] = ()) -> Generator[Any, Any, Handle]:
        """Start another text of this rank, which begins when the handles `after` are done, and go on.

        Messages of a text are taken by the text of the same number at the peer: 0 is the main one, then in the order of `start`.
        """
        return (yield commands.Start(text, tuple(after)))

    def wait(self, handles: Handle | Sequence[Handle], count: int | None = None) -> Generator[Any, Any, None]:
        """Wait until `count` of the handles are done, all by default."""
        several = (handles,) if isinstance(handles, Handle) else tuple(handles)
        yield commands.Wait(several, len(several) if count is None else count)

    def stop(self, handle: Handle) -> Generator[Any, Any, None]:
        """End a started text where it is. Its computation is given up; what it has posted is delivered."""
        yield commands.Stop(handle)

    def drop(self, piece: Piece, but: Piece | None = None) -> Generator[Any, Any, None]:
        """Free the memory of a piece but for a part of it; what was in it is lost."""
        yield commands.Drop(piece, but)


def drawn(seed: int, replication: int, step: int) -> int:
    """A random number of 63 bits by step (SplitMix64, Steele et al., 2014), which any world can make."""
    x = (seed * 0x9E3779B97F4A7C15 + replication * 0xD1342543DE82EF95 + (step + 1) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return (x ^ (x >> 31)) >> 1
