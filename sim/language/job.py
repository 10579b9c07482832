"""A job as the worlds of the language run it: ranks on hosts, a model of layers, links, and the laws of what is random."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from sim.base.errors import RunFailed, WrongSetting
from sim.language.hosts import Fair, Host, Windows
from sim.language.layers import Layer
from sim.language.library import Library
from sim.laws import Constant, Law
from sim.laws.base import NOTHING, Sleeps, Steps
from sim.laws.randomness import BLOCK, Stream, generator
from sim.platform.polling import STAGES, polls_per_s

PIECES = 8  # of a round's background work, which comes with messages: a pull and a push have four, with two ends each
MANY = 100  # steps for each rank
MOST_NAMED = 4  # texts of a dead end that are named
# Numbers from 0 to 1: the purpose for which they are drawn, how many at once, and in which order they are taken.
BLOCKS: dict[str, tuple[str, int, Callable]] = {
    "pause": ("pause", BLOCK, np.fliplr),
    "moment": ("background", PIECES, np.sort),
}
NONE, ONE = Constant(value=0.0), Constant(value=1.0)


@dataclass(frozen=True)
class Laws:
    """What is random of a job: independent draws of a law for each rank.

    Args:
        sleep: seconds of induced sleep, of each rank and round.
        noise: factor on a rank's passes in a round.
        input: factor on fetching a rank's minibatch of a round.
        update: factor on each update of a rank.
        delay: seconds for which each message is held back where it has come.
        share: weight of each message of a rank, by which those that pass a port at once share it.
        seed: of all random numbers.
    """

    sleep: Law = NONE
    noise: Law = ONE
    input: Law = ONE
    update: Law = ONE
    delay: Law = NONE
    share: Law = ONE
    seed: int = 0

    def sleeps(self, replication: int, worker: int, call: int = 0) -> Stream:
        """The sleeps of a worker by its number; call 1 and on are further sleeps of a round."""
        return Stream(self.sleep, self.seed, replication, worker, "sleep", call)

    def noises(self, replication: int, worker: int, of: str = "noise") -> Stream:
        """The factors of a worker by its number: on passes (noise), fetching (input), updates; or delays of what has come, shares."""
        return Stream(getattr(self, of), self.seed, replication, worker, of)


@dataclass(frozen=True)
class Job:
    """One job.

    Args:
        ranks: processes, servers included.
        layers: of the model, in the order of the forward pass.
        steps: rounds of the ranks that go through `me.steps()`; the first `warmup` of them are left out of idle seconds.
        batch: samples of a rank's minibatch.
        per_host: ranks on each host, in order.
        placement: the host of each rank instead, shape (ranks,).
        cores: of a host, which its ranks share; None: each rank has one of its own.
        in_turn: shared cores serve one computation after another; else all at once, evenly.
        kinds: of each host instead, shape (hosts,).
        one_machine: the hosts are containers on one machine, whose cores are those of the first.
        speeds: of the ranks' cores, shape (ranks,); all 1 if empty.
        latency_s: from one port to the next.
        overhead_s: seconds of a core at each end of a message between hosts. Overheads of one rank, and its copies within a host, are
            paid one at a time, in the order in which its texts ask: a rank has one thread for messages, beside those that compute.
        gap_s: seconds that a message takes a port between hosts besides its bytes.
        bandwidth: bytes/s of a port between hosts.
        sustained: bytes/s that such a port earns in the long run, if less: it has earned none at the start, and passes no byte before.
        whole_messages: a message reaches the next port when all of it has passed this one (store and forward); else as it passes.
        windows: of TCP, from each rank to each other one; None: there are none.
        fair: how messages share ports; None: they pass one after another.
        shared_ports: the ranks of a host share its port in each direction; else each has one of its own.
        local_latency_s, local_bandwidth: of messages within a host, which pass its memory one after another, from each sender.
        local_wakes: that latency is the time to wake an idle core: there is none while all cores of the host are busy.
        local_overhead_s, local_copy_s: seconds of the receiver's core for each of them, and for each of its bytes, which it copies.
        message_background_s, local_background_s: seconds of a core that other threads work at each end of a message between hosts, or
            within one, from when it is posted on; no text waits for that.
        per_rack: hosts of a rack, behind an uplink of `uplink` bytes/s in each direction; 0: no racks.
        item_bytes, header_bytes: of a number, and of a message besides its numbers.
        update_s, mix_s: seconds of a core for an item that the optimiser updates, or that is added, mixed or weighed.
        update_base_s, mix_base_s: seconds of each update or sum besides.
        rows_s, rows_base_s: the same of a sum with a message that has a share of its items, as of rows, if it is another.
        update_cold_s: seconds of an update more after the rank was idle.
        poll_s: seconds of a core for one poll of a rank that waits for others; it sleeps in between, and sees at its next poll what has
            happened (sim.platform.polling). 0: it is woken.
        oversleep_s: by which a sleep lasts too long.
        background_s: seconds of a core of each round that other threads of a rank's runtime work, and that no text waits for: PIECES equal
            pieces at random moments from its first forward pass on, within as long as there was between the two before without sleep.
        fixed: share of a pass's seconds that a part of a minibatch takes as well as the whole: what launching it takes.
        least: share of a pass's seconds that any part of a minibatch takes.
        loop_s: seconds of a pass more with the first layer of a minibatch's first part: entering a loop over the parts.
        cold_s: seconds more of a forward pass from the first layer after the rank was idle (sim.model.costs.Line).
        input_s: seconds of fetching a minibatch, before a pass from its first layer; those of a part of it are in proportion. What a rank
            has of a round's minibatch it does not fetch again.
        resume_s: seconds more if the rank has slept before.
        to_device_s: seconds of copying a minibatch to the device of its passes, before their first layer; in proportion.
        copied_at_once: a minibatch is copied with its first part, and not each part with its own pass.
        pack_s: seconds of joining the gradients of all layers: of a backward pass through no layer (sim.language.verbs.join).
        take_up_base_s, take_up_s: seconds of a message with weights that come in place of others, and of each item.
        library: what sums take besides their messages.
        evaluate_s: seconds of an evaluation, every `evaluate_every` steps.
        flops, memory_bandwidth: operations/s and bytes/s of a core, for `me.work`.
        shares: items of the weights at each server; equal parts if empty.
        laws: Laws, or what has its methods.
        seed, replication: of the random numbers that texts draw.
        rate: learning rate, where a world trains.
    """

    ranks: int
    layers: tuple[Layer, ...]
    steps: int = 1
    warmup: int = 0
    batch: int = 1
    per_host: int = 1
    placement: tuple[int, ...] = ()
    cores: int | None = None
    in_turn: bool = True
    kinds: tuple[Host, ...] = ()
    one_machine: bool = False
    speeds: tuple[float, ...] = ()
    latency_s: float = 20e-6
    overhead_s: float = 0.0
    gap_s: float = 0.0
    bandwidth: float = 1.25e9
    sustained: float = math.inf
    whole_messages: bool = False
    windows: Windows | None = None
    fair: Fair | None = None
    shared_ports: bool = False
    local_latency_s: float = 0.0
    local_bandwidth: float = math.inf
    local_overhead_s: float = 0.0
    local_copy_s: float = 0.0
    local_wakes: bool = False
    message_background_s: float = 0.0
    local_background_s: float = 0.0
    per_rack: int = 0
    uplink: float = math.inf
    item_bytes: float = 4
    header_bytes: float = 0
    update_s: float = 0.0
    mix_s: float = 0.0
    update_base_s: float = 0.0
    mix_base_s: float = 0.0
    rows_s: float | None = None
    rows_base_s: float | None = None
    update_cold_s: float = 0.0
    poll_s: float = 0.0
    oversleep_s: float = 0.0
    background_s: float = 0.0
    fixed: float = 0.0
    least: float = 0.0
    loop_s: float = 0.0
    cold_s: float = 0.0
    input_s: float = 0.0
    resume_s: float = 0.0
    to_device_s: float = 0.0
    copied_at_once: bool = False
    pack_s: float = 0.0
    take_up_base_s: float = 0.0
    take_up_s: float = 0.0
    library: Library = field(default_factory=Library)
    evaluate_s: float = 0.0
    evaluate_every: int = 1
    flops: float = math.inf
    memory_bandwidth: float = math.inf
    shares: tuple[int, ...] = ()
    laws: Any = field(default_factory=Laws)
    seed: int = 0
    replication: int = 0
    rate: float = 0.1

    def __post_init__(self):
        if not sum(layer.items for layer in self.layers):
            raise WrongSetting("layers", self.layers, "layers with at least one item in all")
        for name in ("speeds", "placement"):
            if getattr(self, name) and len(getattr(self, name)) != self.ranks:
                raise WrongSetting(name, getattr(self, name), f"none, or {self.ranks} numbers, one for each rank")
        if self.kinds and len(self.kinds) < self.hosts:
            raise WrongSetting("kinds", f"{len(self.kinds)} hosts", f"none, or those of {self.hosts}")
        for name, least in (("ranks", 1), ("steps", 1), ("batch", 1), ("per_host", 1), ("evaluate_every", 1)):
            if getattr(self, name) < least:
                raise WrongSetting(name, getattr(self, name), f"an integer from {least}")
        for name, allowed in (("windows", None), ("sustained", math.inf), ("whole_messages", False)):
            if self.fair and getattr(self, name) != allowed:
                raise WrongSetting(name, getattr(self, name), f"{allowed} where messages share ports")
        for name in ("bandwidth", "uplink")[: 1 + bool(self.per_rack)]:
            if self.fair and getattr(self, name) == math.inf:
                raise WrongSetting(name, getattr(self, name), "a finite one where messages share ports")

    @cached_property
    def forward_to(self) -> list[float]:
        """Seconds of the forward pass up to each layer, shape (layers + 1,)."""
        return [0.0, *accumulate(layer.forward_s for layer in self.layers)]

    @cached_property
    def backward_to(self) -> list[float]:
        """The same of the backward pass, from the first layer on."""
        return [0.0, *accumulate(layer.backward_s for layer in self.layers)]

    def micro_batch(self, micro: int, of: int) -> range:
        """The samples of the micro-batch `micro` of `of`, by their index in a minibatch."""
        return range(self.batch * micro // of, self.batch * (micro + 1) // of)

    def activation_items(self, layer: int, micro: int, of: int) -> int:
        """Numbers in the input of a layer for a micro-batch.

        Raises:
            ValueError: nobody knows.
        """
        each = self.layers[layer].activation_items
        if each is None:
            raise ValueError(f"layer {layer} does not say what its input has (activation_items)")
        return each * len(self.micro_batch(micro, of))

    @cached_property
    def sparse(self) -> tuple[int, ...]:
        """The sparse layers."""
        return tuple(k for k, layer in enumerate(self.layers) if layer.rows)

    @cached_property
    def dense(self) -> tuple[tuple[int, int], ...]:
        """The stretches (first, stop) of layers between them."""
        ends = [-1, *self.sparse, len(self.layers)]
        return tuple((before + 1, after) for before, after in pairwise(ends) if after > before + 1)

    def touched(self, layer: int, minibatches: int = 1) -> int:
        """Rows of a layer that so many minibatches touch together; 0 of a dense one."""
        rows = self.layers[layer].rows
        return rows.touched(minibatches) if rows else 0

    def share(self, layer: int, minibatches: int = 1, numbered: bool = False) -> float:
        """As sim.language.rank.Rank.share."""
        rows = self.layers[layer].rows
        if rows is None:
            return 1.0
        touched = rows.touched(minibatches)
        return touched / rows.count + numbered * touched / self.layers[layer].items

    def held_share(self, server: int, servers: int, minibatches: int = 1, numbered: bool = False) -> float:
        """As sim.language.rank.Rank.held_share."""
        if not self.sparse:
            return 1.0
        layers = self._held(server, servers)
        travel = sum(self.layers[one].items * self.share(one, minibatches, numbered) for one in layers)
        return travel / max(1, sum(self.layers[one].items for one in layers))

    def asked(self, server: int, servers: int) -> int:
        """Rows that a minibatch touches of what a server holds."""
        return sum(map(self.touched, self._held(server, servers)))

    def _held(self, server: int, servers: int) -> list[int]:
        """The layers of which a server holds some items: of equal parts, all."""
        every = range(len(self.layers))
        return [one for one in every if not self.shares or self.server_of(one, servers) == server]

    def server_of(self, layer: int, servers: int) -> int:
        """The server that holds a layer, of so many."""
        found = self.layers[layer].server
        return layer % max(1, servers) if found is None else found

    def neighbours(self, rank: int, servers: int) -> range:
        """The workers on the host of a worker, of those behind so many servers; none of a server."""
        first = stop = rank
        while rank >= servers < first and self.host(first - 1) == self.host(rank):
            first -= 1
        while servers <= rank and stop < self.ranks and self.host(stop) == self.host(rank):
            stop += 1
        return range(first, stop)

    @cached_property
    def shares_hosts(self) -> bool:
        """Whether several ranks are on one host."""
        return len({self.host(rank) for rank in range(self.ranks)}) < self.ranks

    @property
    def hosts(self) -> int:
        """The number of hosts, up to the last that has a rank."""
        return max(self.placement) + 1 if self.placement else -(-self.ranks // self.per_host)

    def host(self, rank: int) -> int:
        """The host of a rank."""
        return self.placement[rank] if self.placement else rank // self.per_host

    def machine(self, host: int) -> Host:
        """What a host is."""
        return self.kinds[host] if self.kinds else Host(self.cores, math.inf if self.in_turn else 0.0)

    @cached_property
    def levels(self) -> list[tuple[float, list[int]]]:
        """The ports between hosts, level by level: bytes/s of each, and by rank the number of its port, shape (ranks,).

        A message goes out through its sender's ports of all levels below the first that both ends have in common, and in through its
        receiver's. The lowest level is that of ranks, or of hosts whose ranks share ports.
        """
        hosts = [self.host(rank) for rank in range(self.ranks)]
        found = [(self.bandwidth, hosts if self.shared_ports else [*range(self.ranks)])]
        if self.per_rack:
            found.append((self.uplink, [host // self.per_rack for host in hosts]))
        return found

    def bytes_of(self, items: int, share: float = 1.0) -> float:
        """Bytes of a message with so many items."""
        return self.header_bytes + items * self.item_bytes * share

    def too_large(self, world: str, size_bytes: float, most_bytes: float) -> WrongSetting:
        """Why a world cannot run it: memory, which is due to its steps where there are many for each rank, and else to its ranks."""
        given = {"--steps": self.steps - self.warmup, "--warmup": self.warmup}
        option = max(given, key=given.__getitem__) if self.steps > MANY * self.ranks else "--workers"
        takes = f"{size_bytes / 1e9:,.1f} GB of memory, and {most_bytes / 1e9:,.1f} GB are the most here"
        return WrongSetting(option, given.get(option, self.ranks), f"a smaller job: the {world} would take {takes}")

    # Costs of messages, in numbers; or in symbols of the engine, which adds no op-code for what is 0.

    def sum_s(self, items: Any, share: Any) -> Any:
        """Seconds of a core for adding a message with a share of so many items, or for mixing as many."""
        usual_s = self.mix_base_s + self.mix_s * items * share
        if self.rows_s is None:
            return usual_s
        return (share != 1) * ((self.rows_base_s or 0.0) + self.rows_s * items * share) + (share == 1) * usual_s

    def put_s(self, into: Any, share: Any) -> Any:
        """Seconds of a core for putting a message with a share of the items in place of a piece."""
        if into.vector != "weights" or not (self.take_up_base_s or self.take_up_s):
            return 0.0
        return (into.items > 0) * (self.take_up_base_s + self.take_up_s * into.items * share)

    def taken_s(self, is_far: bool, items: Any, share: Any) -> Any:
        """Seconds of a core for a message that has come, of another host or of this one, before it is added or put anywhere."""
        if is_far:
            return self.overhead_s
        return self.local_overhead_s + (self.local_copy_s and self.local_copy_s * self.bytes_of(items, share))

    def speed(self, rank: int) -> float:
        """The speed of a rank's core."""
        return self.speeds[rank] if self.speeds else 1.0

    @cached_property
    def poll_rates(self) -> list[float]:
        """Cores that the polls of a waiting rank take, by the stage of its wait."""
        return [self.poll_s * polls_per_s(stage, self.oversleep_s) for stage in range(len(STAGES))]

    def sleeps(self, rank: int, servers: int) -> Sleeps:
        """The induced sleeps of a rank, seconds, by its own rounds."""
        return Sleeps(lambda call: self.noise(rank, servers, "sleep", call))

    def noise(self, rank: int, servers: int, of: str = "noise", call: int = 0) -> Any:
        """Numbers of a rank, one after another, as sim.laws.base.Steps.

        Args:
            of: sleep; noise, input, update, delay or share (Laws.noises); pause: shares of its sleeps between polls that are left when
                something happens, 0 to 1; moment: shares of a round's time after which PIECES pieces of background work begin, round by
                round.
            call: of several sleeps of a round.
        """
        worker = worker_number(rank, servers)
        if of == "sleep":
            return self.laws.sleeps(self.replication, worker, call)
        if of not in BLOCKS:
            return self.laws.noises(self.replication, worker, of)
        drawn, size, ordered = BLOCKS[of]
        if not (self.poll_s if of == "pause" else self.background_s):
            return NOTHING
        key = self.seed, self.replication, worker, drawn
        return Steps(lambda count: ordered(generator(*key).random((-(-count // size), size))).ravel())


def dead_end(name: str, waiting: Sequence[str]) -> RunFailed:
    """Why a run ends in which all texts wait for ever.

    Args:
        name: of the text.
        waiting: the place of each, and what it waits for.
    """
    more = f"; and {len(waiting) - MOST_NAMED} more" if len(waiting) > MOST_NAMED else ""
    return RunFailed(f"{name}: all wait for ever: {'; '.join(waiting[:MOST_NAMED])}{more}")


def message_of(frm: range) -> str:
    """What a text waits for that takes from these ranks."""
    if len(frm) == 1:
        return f"a message of rank {frm[0]}"
    return f"a message of any of ranks {', '.join(map(str, frm[:4]))}{', ...' * (len(frm) > 4)}"


def first_measured(warmup: int, complete: int) -> int:
    """The first step behind the warm-up, of which one is left if a run ends among its steps."""
    return warmup if complete > warmup else min(warmup, 1)


def worker_number(rank: int, servers: int) -> int:
    """1 for the first worker, whatever the number of servers, so that its random numbers are the same; a server's is its rank."""
    return rank - servers + 1 if rank >= servers else rank


@dataclass(frozen=True)
class Result:
    """What a run of a job comes to.

    Args:
        ends_s: when each step ended, that is, when the last rank that goes through `me.steps()` ended its round; shape (steps,).
        samples: that entered an update in each step, shape (steps,).
        idle_s: of each rank, shape (ranks,): seconds from the end of the warm-up to the end of the last step, as long as its main text
            goes on, in which none of its texts computes, waits for a core or sleeps as a straggler, and neither leaves a message of it
            nor comes one: from when it begins to pass its last port until it is there.
    """

    ends_s: list[float]
    samples: list[float]
    idle_s: list[float]
