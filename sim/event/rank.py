"""`me` of the event world: the primitives of sim.verbs.me in simulated time."""

from __future__ import annotations

import math
from bisect import bisect_right
from functools import partial

from sim import collectives
from sim.collectives.base import DENSE, ROWS, Exchange
from sim.errors import WrongText
from sim.event.drawn import Drawn
from sim.event.layerwise import Layerwise
from sim.event.message import Message, note_of
from sim.event.thread import Strand
from sim.laws import LogNormal
from sim.randomness import Stream
from sim.rows import Load
from sim.traces import NOBODY
from sim.verbs import fusion
from sim.verbs.at_hand import GRADIENT as GRADIENT_AT_HAND
from sim.verbs.at_hand import SUM, AtHand
from sim.verbs.book import CLOCK_S, Book
from sim.verbs.me import GRADIENT, PARAMETERS, Layer, Note, Partition, Place
from sim.workload import ITEM_BYTES

NOTHING_TO_SEND = "me.send needs a master or servers; workers without one sum by allreduce(me)"
NOTHING_TO_UPDATE = "me.update is for ranks that hold parameters: the master, servers, or workers that sum them"
NO_PARAMETERS_COME = (
    "me.take_up takes up parameters: a master has gather(me, ...), or take(me, ...) and me.add, for gradients"
)
HELD = GRADIENT_AT_HAND
DONE = ()  # what a verb that waits for nothing returns: `yield from` it goes on at once


class Rank:
    """One rank. Its clock runs ahead of the world's while it needs nobody else; its mechanics bring it back where it does.

    Args:
        world: sim.event.world.EventWorld.
        place: where it stands among the others.
        machine: its host.
        mechanics: how its work, its messages and its waits take time (sim.event.free, sim.event.contended).
    """

    def __init__(self, world, place: Place, machine, mechanics):
        scenario, costs = world.scenario, world.costs
        self.world, self.env, self.scenario, self.costs, self.machine = world, world.env, scenario, costs, machine
        self.recorder, self.rows = world.recorder, world.recorder.rows is not None
        self.place, self.rank, self.master = place, place.rank, 0
        self.servers, self.workers, self.hosts = place.servers, place.workers, place.hosts
        self.senders, self.neighbours, self.aggregators = place.senders, place.neighbours, place.aggregators
        self.serves = self.rank in self.servers
        self.step = self.version = self.samples = self.minibatches = 0
        self.updates = scenario.updates if self.rank == 0 else math.inf
        self.summed = bool(scenario.summed) and not self.serves
        self.variables, self.held = world.variables, world.held_by(self.rank)
        self.counts_updates, self.layerwise = scenario.protocol.counts_updates, scenario.protocol.layerwise
        self.book, self.at_hand = Book(), AtHand()
        self.thread, self.clock_s, self.idle_from_s = None, 0.0, 0.0
        self.computed_s = self.applied_s = 0.0  # seconds of a core so far, for gradients, and for sums and updates
        self.oldest = 0  # version of the parameters that the gradient was begun on
        self._fetched, self._slept_s, self._warm_s = False, 0.0, 0.0  # when it was last warm
        self._begin_luck(world.replication, scenario.worker_number(self.rank))
        self._begin_amounts()
        self._parts: dict[tuple[int, int], tuple[tuple[int, ...], int]] = {}
        self.ready_s: list[float] = []  # of each gradient of a variable, since the start
        self.cycle_from_s, self._layers_since_s = -math.inf, None
        self.layers = Layerwise(self) if self.layerwise else None
        self.mechanics = mechanics(self)
        self.work, self.works, self.receive = self.mechanics.work, self.mechanics.works, self.mechanics.receive
        self.quick = self.mechanics.quick and not self.rows and not self._rests
        self._posts = self.mechanics.post if self.mechanics.own_port and self.quick and not self.serves else None
        self.speed, self._factor_sole, self._waits = self.machine.speed, self._factors.sole, self.recorder.waits

    def _begin_luck(self, replication: int, number: int) -> None:
        scenario, costs, world = self.scenario, self.costs, self.world
        self.luck = luck = (scenario.seed, replication, number)
        self._sleeps, self.delays = Drawn(scenario.sleeps(replication, number)), scenario.delays(replication, number)
        run_factor, self._resume_s = (
            scenario.run_factor(replication, self.machine.index),
            scenario.resume_s(replication),
        )
        self._factors = Drawn(scenario.noise(replication, number), run_factor)
        self._input_noise = Drawn(Stream(costs.input_noise, *luck, "input"))
        self._update_noise = Drawn(Stream(costs.update_noise, *luck, "update"))
        self._sleepless = self._sleeps.sole == 0
        self.weights = Stream(LogNormal(cv=world.link.unfairness), *luck, "share")

    def _begin_amounts(self) -> None:
        """Seconds of a core that do not change from step to step."""
        costs, batch, packed = self.costs, self.scenario.batch, self.scenario.packed_bytes
        self._input_s, self._compute_s, self._pack_s = costs.input(batch), costs.compute(batch), costs.pack(packed)
        self._pack = ("pack", self._pack_s, 0, packed)
        self._updated = self.scenario.updated_bytes(self.rank)
        self._batch, self._reduce_s, self._take_up_s = batch, {}, {}
        self._rests = costs.compute.cold_s or costs.partition.cold_s or costs.update.cold_s

    # ---- where it is

    @property
    def now_s(self) -> float:
        """Simulated seconds since the start."""
        return self.clock_s

    @property
    def ready(self) -> int:
        """Gradients of variables that are ready here, since the start."""
        return bisect_right(self.ready_s, self.clock_s)

    # ---- time

    def steps(self):
        """Every round; sets `step`."""
        for step in range(self.scenario.rounds):
            self.step = step
            yield step

    def sleep(self):
        """The induced straggler; one that sleeps at all oversleeps a little."""
        if self._sleepless:
            return DONE
        seconds = self._sleeps[self.step]
        if seconds <= 0:
            return DONE
        return self._sleep(seconds + self.scenario.cluster.oversleep_s)

    def _sleep(self, seconds: float):
        start_s = self.clock_s
        yield from self.mechanics.rest(seconds)
        self._slept_s = self.clock_s - start_s
        self.record("sleep", start_s)

    def cycle(self, cycle_s: float):
        """Asleep until the first cycle that finds a gradient ready everywhere; the empty ones before it are taken to cost nothing."""
        begin_s, asleep_s = max(self.clock_s, self.cycle_from_s + cycle_s), self.clock_s
        readiness, count = self.world.readiness, self.book.reduced
        if readiness.is_to_come(count, self.env.now):
            readiness.wait(count, self.rank, self.thread.go)
            yield
        ready_s = max(self.clock_s, readiness.everywhere_s(count))
        if ready_s > begin_s:
            begin_s = begin_s + math.ceil((ready_s - begin_s) / cycle_s) * cycle_s if cycle_s else ready_s
        yield from self.mechanics.rest_until(max(ready_s, begin_s))
        self.cycle_from_s = self.clock_s
        if self.timeline:
            self.timeline.cycle(self.clock_s)
        self.waited(min(self.clock_s, max(asleep_s, self.idle_from_s)), self.clock_s)

    # ---- work

    def fetch(self):
        """A minibatch, before the parameters for it."""
        self._fetched = True
        if self.layerwise:
            self.version = self.step
        self.mechanics.begin_step(self._slept_s)
        return self.works((self._input(),))

    def compute(self, part=None):
        """The gradient of the whole minibatch, or a part of it."""
        if part is not None:
            return (self._partition if type(part) is Partition else self._layer)(part)
        if self.at_hand.what:
            self.at_hand.begin_gradient()
        self.at_hand.what = HELD
        self.oldest, self.samples, self.minibatches = self.version, self._batch, 1
        if self.quick:
            return self._compute_quickly()
        batch = self._batch
        gradient = ("compute", self._gradient_s(self._compute_s, self.costs.compute), batch, 0)
        if self._fetched:
            self._fetched = False
            return self.works((gradient, self._pack))
        self.mechanics.begin_step(self._slept_s)
        return self.works((self._input(), gradient, self._pack))

    def _compute_quickly(self):
        """The same in one go, where nobody else can come between."""
        step = self.step
        seconds = (
            self._compute_s * (self._factor_sole if self._factor_sole is not None else self._factors[step])
            + self._pack_s
        )
        if self._fetched:
            self._fetched = False
        else:
            seconds += self._fetch_s(step)
        self.computed_s += seconds
        self.clock_s += seconds / self.speed
        return DONE

    def _fetch_s(self, step: int) -> float:
        noise = self._input_noise
        seconds = self._input_s * (noise.sole if noise.sole is not None else noise[step])
        if self._slept_s:
            self._slept_s, seconds = 0.0, max(0.0, seconds + self._resume_s)
        return seconds

    def _partition(self, part: Partition):
        """By itself, added to those before."""
        micro_batch, works = self.scenario.batch // part.of, []
        if part.index == 0:
            self.at_hand.begin_gradient()
            self.samples, self.minibatches, self.oldest = 0, 1, self.version
            works.append(self._input())
        seconds = self.costs.compute(micro_batch)
        works += [("compute", self._gradient_s(seconds, self.costs.compute), micro_batch, 0), self._pack]
        self.samples += micro_batch
        return self.works(works)

    def compute_until(self, deadline_s, partitions):
        """Partitions while there is time, at least one; the last overruns."""
        self.at_hand.begin_gradient()
        yield from self.works((self._input(),))
        start_s, factor, costs = self.clock_s, self._factor(), self.costs
        micro_batch = self.scenario.batch // partitions
        yield from self.mechanics.spend(factor * costs.loop_s + self._cold_s(costs.partition), computing=True)
        done, partition_s = 0, factor * costs.partition(micro_batch)
        while done < partitions and (done == 0 or deadline_s - self.clock_s > CLOCK_S):
            yield from self.mechanics.spend(partition_s, computing=True)
            done += 1
        if done == partitions and deadline_s - self.clock_s > CLOCK_S:
            self.run_out()
        self.samples, self.minibatches = done * micro_batch, 1
        self.record("compute", start_s, samples=self.samples)
        self.warm()
        yield from self.works((self._pack,))

    def run_out(self) -> None:
        """There was time left, and no data."""
        self.recorder.ran_out += 1

    def _layer(self, part: Layer):
        """The forward or backward pass through one variable."""
        if self._layers_since_s is None:
            yield from self._begin_layers()
        if part.share > 0:
            yield from self.mechanics.spend(self._layers_s * part.share, computing=True)
        if part.backward and part.variable is not None and not self.layerwise:
            self._announce()
        if part.last:
            self._computed(self.scenario.batch)
            self._layers_since_s = None

    def _begin_layers(self):
        if not self._fetched:
            self.at_hand.begin_gradient()
            yield from self.works((self._input(),))
        self._fetched = False
        self._layers_since_s = self.clock_s
        self.samples, self.minibatches = self.scenario.batch, 1
        self._layers_s = self._factor() * self._compute_s + self._cold_s(self.costs.compute)

    def pause_layers(self) -> None:
        """It waits for parameters."""
        if self._layers_since_s is not None:
            self._computed()

    def resume_layers(self) -> None:
        """It has waited."""
        if self._layers_since_s is not None:
            self._layers_since_s = self.clock_s

    def _announce(self) -> None:
        self.ready_s.append(self.clock_s)
        self.world.readiness.announce(len(self.ready_s) - 1, self.clock_s)
        if self.world.timeline:
            self.world.timeline.ready(self.rank, len(self.ready_s), self.clock_s)

    def _computed(self, samples: int = 0) -> None:
        """Record what was computed of layers since the rank began, or last waited for parameters."""
        if self.clock_s > self._layers_since_s or samples:
            self.record("compute", self._layers_since_s, samples=samples)
        self._warm_s = self.clock_s

    def add(self, letter):
        """Add the gradient of a letter to what is at hand."""
        hand = self.at_hand
        if letter is None or letter.note or letter is hand.added:
            hand.begin_add(letter)
        hand.what, hand.added = SUM, letter
        if self.layerwise and letter.variable != self.held[0]:
            letter.samples = 0  # of all that a server holds, one variable counts the samples
        self.samples += letter.samples
        self.minibatches += letter.minibatches
        if self.rank == 0 and self.counts_updates:
            self.world.meter.added(self.version, self.version - letter.version)
        if self.quick:
            seconds = self._reduce_s.get(letter.size_bytes)
            if seconds is None:
                seconds = self._reduce_s[letter.size_bytes] = self.costs.reduce(letter.size_bytes)
            self.applied_s += seconds
            self.clock_s += seconds / self.speed
            return DONE
        about = (letter.samples, letter.size_bytes, letter.sender, letter.version)
        if len(letter.sizes_bytes) == 1 and not self.scenario.sends_rows:
            return self.mechanics.work_on([self.costs.reduce(letter.size_bytes)], "reduce", *about)
        parts_s = map(self._sum_s, letter.sizes_bytes, self._loads_with(letter.sender))
        return self.mechanics.work_on(list(parts_s), "reduce", *about)

    def _sum_s(self, size_bytes: int, load: Load) -> float:
        costs = self.costs
        return (costs.reduce_rows if load.rows and costs.reduce_rows else costs.reduce)(size_bytes)

    def take_up(self, letter):
        """New parameters replace those at hand."""
        if self.serves:
            raise WrongText(NO_PARAMETERS_COME)
        if letter.sender == 0:
            self.version = letter.version
        size_bytes = letter.size_bytes
        if self.quick:
            seconds = self._take_up_s.get(size_bytes)
            if seconds is None:
                seconds = self._take_up_s[size_bytes] = self.costs.take_up(size_bytes)
            self.clock_s += seconds / self.speed
            return DONE
        return self.work("update", self.costs.take_up(size_bytes), 0, size_bytes)

    def update(self, variables=None):
        """Make new parameters of the sum."""
        if variables is not None:
            return self._update_some(variables)
        if not self._updated:
            raise WrongText(NOTHING_TO_UPDATE)
        self.at_hand.begin_update(self.samples, self.step, None if self.counts_updates or self.rank else self.version)
        if self.counts_updates:
            self.step = self.version
        return self._update()

    def _update(self):
        self.version += 1
        start_s, samples = self.clock_s, self.samples
        noise, update = self._update_noise[self.step], self.costs.update
        parts_s = [noise * update(size) for size in self._updated]
        if self.layerwise:
            parts_s = [update.base_s]  # what each variable takes has been charged
        parts_s[0] += self._cold_s(update)
        yield from self.mechanics.work_on(parts_s, "update", samples, sum(self._updated), NOBODY, self.version)
        self._warm_s, self.samples, self.minibatches = self.clock_s, 0, 0
        if self.rank == 0:
            yield from self.world.updated(self, samples, start_s)

    def _update_some(self, variables):
        """The optimiser makes new parameters of some variables' sums."""
        for number in variables:
            size_bytes = self.world.variable_bytes[number]
            yield from self.work("reduce", self.costs.update.slope_s * size_bytes, 0, size_bytes)

    def evaluate(self):
        """Loss and accuracy, where they are due."""
        if self.rank or not self.scenario.evaluates(self.step):
            return DONE
        test_size = self.scenario.test_size
        return self.work("evaluate", self.costs.evaluate(test_size), test_size)

    def copy(self, piece: slice):
        """Into the fusion buffer, or out of it."""
        start_s, size_bytes = self.clock_s, ITEM_BYTES * (piece.stop - piece.start)
        yield from self.work("pack", self.costs.pack(size_bytes), 0, size_bytes)
        if self.timeline:
            self.timeline.copied(piece, start_s, self.clock_s)

    def _input(self):
        """Fetching a minibatch; the first work after a sleep."""
        slept_s, self._slept_s = self._slept_s, 0.0
        seconds = max(0.0, self._input_noise[self.step] * self._input_s + (self._resume_s if slept_s else 0.0))
        return ("input", seconds, self.scenario.batch, 0)

    def _gradient_s(self, seconds: float, line):
        """Seconds of computing; where caches go cold they are known when it begins."""
        seconds *= self._factors[self.step]
        return (lambda: seconds + self._cold_s(line)) if self._rests else seconds

    def _factor(self) -> float:
        return self._factors[self.step]

    def _cold_s(self, line) -> float:
        return float(line.cold(self.clock_s - self._warm_s)) if line.cold_s else 0.0

    def warm(self) -> None:
        """A gradient has just been computed, or packed."""
        self._warm_s = self.clock_s

    # ---- messages

    def send(self, what, to, wait: bool = True):
        """A message to each of `to`."""
        if what is GRADIENT and wait and self._posts and type(to) is int:
            self.at_hand.what = ""
            self.clock_s = self._posts(to, self._message(self.version, to))
            return DONE
        peers = (to,) if isinstance(to, int) else to
        if what is PARAMETERS or what is GRADIENT:
            version = self.version if self.serves or wait else self.oldest
            if not self.serves:
                self.at_hand.what = ""
            if wait:
                return self.mechanics.send_all(peers, partial(self._message, version))
            return self.mechanics.post_all(peers, partial(self._message, version), record=True, one=not self.serves)
        if type(what) is Note:
            return self.mechanics.post_all(peers, partial(self._note, what))
        self.layers.send(what.number, peers)
        return DONE

    def _note(self, note: Note, peer: int) -> Message:
        version = self.version if note.version is None else note.version
        if peer in self.servers and not self.serves and not note.last:
            sizes = tuple(load.request_bytes for load in self.scenario.loads(peer))
            return note_of(self.rank, version, note.last, sizes)
        return note_of(self.rank, version, note.last)

    def _message(self, version: int, peer: int) -> Message:
        """Parameters, where a server sends, or a gradient: to a server of what it holds, to another worker of what all do."""
        sizes, size_bytes = self._sizes(peer)
        return Message(self.rank, version, self.samples, sizes, size_bytes, self.minibatches)

    def _sizes(self, peer: int) -> tuple[tuple[int, ...], int]:
        """Bytes of the messages that carry what this rank sends to `peer`, and of all of them."""
        key = peer if self.minibatches <= 1 or self.serves else (peer, self.minibatches)
        sizes = self._parts.get(key)
        if sizes is None:
            sized = self._sized(peer, 1 if self.serves else self.minibatches)
            sizes = self._parts[key] = sized, sum(sized)
        return sizes

    def _sized(self, peer: int, minibatches: int) -> tuple[int, ...]:
        if self.serves:
            sizes = tuple(load.answer_bytes for load in self.scenario.loads(self.rank))
        else:
            sizes = tuple(load.gradient_bytes for load in self._loads_with(peer, minibatches))
        if not sizes:
            raise WrongText(NOTHING_TO_SEND)
        return sizes

    def _loads_with(self, peer: int, minibatches: int = 1) -> list[Load]:
        """What a gradient carries between this rank and `peer`: what the server of the two holds, or all do if none is one."""
        holders = [rank for rank in (self.rank, peer) if rank in self.servers] or self.servers
        return [load for server in holders for load in self.scenario.loads(server, minibatches)]

    # ---- two texts

    def beside(self, computing, communicating):
        """Both texts at once, until both are at their end."""
        self.idle_from_s, before, left = math.inf, self.thread, 2

        def ended(strand_computes: bool):
            nonlocal left
            left -= 1
            if strand_computes:
                self.idle_from_s = self.clock_s
            ends_s.append(self.clock_s)
            if not left:
                self.mechanics.at(max(ends_s), partial(self._together, before, ends_s))

        ends_s: list[float] = []
        strands = [Strand(self, text, partial(ended, text is computing)) for text in (computing, communicating)]
        for strand in strands:
            self.mechanics.at(self.clock_s, strand.go)
        yield

    def _together(self, thread, ends_s: list[float]) -> None:
        self.clock_s = max(ends_s)
        thread.go()

    # ---- records

    def record(self, activity: str, start_s: float, samples=0, size_bytes=0, peer=NOBODY, version=None) -> None:
        """An activity that has just ended."""
        if self.rows:
            version = self.version if version is None else version
            self.recorder.row(start_s, self.clock_s, self.rank, self.step, activity, samples, size_bytes, peer, version)

    def waited(self, from_s: float, to_s: float, peer=NOBODY) -> None:
        """A wait that has ended."""
        if to_s > from_s:
            self._waits.append((self.rank, from_s, to_s))
        if self.rows:
            self.recorder.row(from_s, to_s, self.rank, self.step, "wait", 0, 0, peer, self.version)

    @property
    def timeline(self):
        """The timeline, at rank 0, of whose thread it is."""
        return self.world.timeline if self.rank == 0 else None

    # ---- verbs that this world does as a whole, for what a library does around them, and for speed

    def gather(self, peers):
        """Receive a gradient from each of `peers`, in order of arrival, and add them up."""
        return self.mechanics.gather({peers} if isinstance(peers, int) else set(peers))

    def allreduce(self, algorithm: str = "auto", fused: bool = True):
        """The sum of all workers' gradients, after a library's agreement to begin."""
        if self.summed:
            self.at_hand.begin_sum()
        for piece in collectives.pieces(self.scenario.summed, fused):
            yield from self._agree()
            yield from self.reduce(algorithm, piece)

    def _agree(self):
        """Asleep until the library begins."""
        start_s, agree_s = self.clock_s, self.costs.agree_s
        if agree_s:
            yield from self.mechanics.rest(agree_s)
            self.waited(start_s, self.clock_s)
        yield from self.mechanics.come_together()
        yield from self._negotiated()

    def _negotiated(self):
        """What it takes to agree with others, besides the messages."""
        if len(self.workers) > 1 and self.costs.negotiate_s:
            yield from self.work("pack", self.costs.negotiate_s)

    def reduce(self, algorithm: str, piece: slice):
        """One call: what a library does around its exchanges, and these."""
        start_s, size_bytes = self.clock_s, ITEM_BYTES * (piece.stop - piece.start)
        call_s = self.costs.call(size_bytes)
        if call_s:
            yield from self.work("pack", call_s, 0, size_bytes)
        first = self.workers[0]
        for exchange in self.world.exchanges(algorithm, self.rank - first, piece):
            yield from self.exchange(exchange)
        yield from self.departed()
        if self.timeline:
            self.timeline.moved(piece, start_s, self.clock_s)

    def negotiate(self, by_name: bool = False):
        """As the verb, and what it costs."""
        before = self.book.reduced
        agreed = yield from fusion.negotiate.__wrapped__(self, by_name)
        yield from self._negotiated()
        if self.timeline:
            self.timeline.agreed(range(before, self.book.reduced), self.clock_s)
        return agreed

    # ---- exchanges

    def exchange(self, exchange: Exchange, ready: int = 0, messages: int = 1):
        """Hand a piece over while taking another; then add it up."""
        message = None
        if exchange.to is not None:
            size_bytes = exchange.sent_bytes
            message = Message(self.rank, self.version, self.samples, (size_bytes,) * messages, size_bytes * messages)
            message.ready = ready
        letter = yield from self.mechanics.swap(message, exchange.to, exchange.source, exchange.ahead)
        if exchange.adds:
            seconds = self._exchanged_s(exchange, letter.size_bytes)
            peer = NOBODY if exchange.kind == ROWS else letter.sender
            yield from self.work("reduce", seconds, 0, letter.size_bytes, peer)
        if exchange.kind == DENSE and letter is not None and self._brings_samples(exchange):
            self.samples = letter.samples + self.samples * exchange.adds
        return letter

    def _exchanged_s(self, exchange: Exchange, size_bytes: int) -> float:
        costs = self.costs
        return (costs.reduce_rows if exchange.kind == ROWS and costs.reduce_rows else costs.reduce)(size_bytes)

    def _brings_samples(self, exchange: Exchange) -> bool:
        """Whether the number of samples, the last item of what is summed, is in what is taken."""
        return exchange.taken.stop == self.scenario.summed_items + 1 and exchange.taken.start < exchange.taken.stop

    def departed(self):
        """Until all that was handed over ahead has left."""
        return self.mechanics.departed()
