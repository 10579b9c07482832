"""The verbs of the event world for variables that travel one by one, while ranks compute: see sim.protocols.ps_layers."""

from __future__ import annotations

from functools import partial

from sim.network import Message
from sim.traces import Activity

FORWARD_SHARE = 1 / 3  # of a gradient's computation; backward takes the rest (as nominal costs have it)


class Shelf:
    """Where a worker's parameters are put down as they come, and picked up as they are needed; in place of its inbox."""

    def __init__(self, rank):
        self._rank, self._here, self._awaited = rank, set(), {}

    def put(self, message: Message) -> None:
        """The first byte of a message is here; it is put down with its last."""
        rank = self._rank
        if message.asked is not None:
            message.landed.callbacks.append(lambda _: self._put_down(message))
            rank.ask(message)
            return
        if message.end_s is None:
            message.begin_s = rank.now_s
            message.end_s = rank.now_s + rank.world.scenario.cluster.local.occupancy_s(message.size_bytes)
            message.copied.succeed()
        rank._after(message.end_s - rank.now_s, partial(self._put_down, message))

    def _put_down(self, message: Message) -> None:
        rank, key = self._rank, (message.version, message.variable)
        about = (message.size_bytes, message.sender, message.version)
        rank.world.activities.append(
            Activity(message.begin_s, rank.now_s, rank.rank, message.version, "receive", 0, *about)
        )
        rank.pass_on(message)
        self.add(key)

    def add(self, key) -> None:
        """The parameters of (step, variable) are at hand."""
        self._here.add(key)
        if key in self._awaited:
            self._awaited.pop(key).succeed()

    def pick_up(self, key):
        """An event that fires when the parameters of (step, variable) are at hand; None if they are."""
        if key in self._here:
            self._here.remove(key)
            return None
        self._awaited[key] = self._rank.world.env.event()
        return self._awaited[key]


class Layers:
    """Verbs of a rank whose variables travel one by one; mixed into the event world's Rank."""

    def begin_layers(self) -> None:
        """Who holds what, and for whom this rank speaks; when all ranks are on their machines."""
        scenario = self.world.scenario
        if not scenario.protocol.layerwise:
            return
        placed = scenario.placed
        self.variables = range(len(placed))
        self._server_of = [server for _, server in placed]
        self._variable_bytes = [variable.load(scenario.batch).gradient_bytes for variable, _ in placed]
        self.held = [v for v in self.variables if self._server_of[v] == self.rank]
        self._updates = dict.fromkeys(self.held, 0)
        self._summed = {}
        if self.rank in self.workers:
            self.inbox = Shelf(self)

    def begin(self):
        """Fetch the minibatch."""
        self.version = self.step
        yield from self._input(self.world.scenario.batch)
        seconds = self._factor() * self.world.costs.compute(self.world.scenario.batch) / len(self.variables)
        self._forward_s, self._backward_s = FORWARD_SHARE * seconds, (1 - FORWARD_SHARE) * seconds
        self._computing_since_s = self.now_s

    def parameters(self, variable: int):
        """Wait until the parameters of a variable are here."""
        missing = self.inbox.pick_up((self.step, variable))
        if missing is not None:
            self._computed()
            start_s = self.now_s
            yield missing
            self.inbox.pick_up((self.step, variable))
            self._record("wait", start_s, peer=self._server_of[variable])
            self._computing_since_s = self.now_s

    def forward(self, variable: int):
        """The forward pass through one variable: an equal share of it."""
        yield from self._spend(self._forward_s, computing=True)

    def backward(self, variable: int):
        """The gradient of one variable: an equal share of back-propagation; the last ends the step's computation."""
        yield from self._spend(self._backward_s, computing=True)
        if variable == self.variables[0]:
            self._computed(self.world.scenario.batch)

    def _computed(self, samples: int = 0) -> None:
        if self.now_s > self._computing_since_s or samples:
            self._record("compute", self._computing_since_s, samples=samples)

    def send_off(self, variable: int) -> None:
        """Let a gradient leave, and go on: to its server, or to the host's first worker, which adds up those of its host."""
        gradient = (self.step, variable)
        if self.leader == self.rank:
            self._add_here(gradient)
        else:
            self._through_memory(variable, partial(self.world.ranks[self.leader]._add_here, gradient))

    def _add_here(self, gradient: tuple[int, int]) -> None:
        self._summed[gradient] = self._summed.get(gradient, 0) + 1
        if self._summed[gradient] == 1 + len(self.neighbours):
            del self._summed[gradient]
            step, variable = gradient
            samples = self.world.scenario.batch * (1 + len(self.neighbours))
            self._ship(self._server_of[variable], step, variable, samples)

    def pass_on(self, message: Message) -> None:
        """Hand parameters that came for the whole host to its other workers."""
        for neighbour in self.neighbours:
            shelf = self.world.ranks[neighbour].inbox
            self._through_memory(message.variable, partial(shelf.add, (message.version, message.variable)))

    def hand_out(self, variables) -> None:
        """A server lets parameters leave, and goes on; variable by variable, as they are needed; none after the last step."""
        for variable in variables:
            for worker in self.senders if self._updates[variable] < self.world.scenario.rounds else ():
                self._ship(worker, self._updates[variable], variable)

    def take_gradient(self):
        """The variable whose gradient comes next, when it has been added to the sum."""
        self.taken = message = yield from self.arrival(self.senders)
        if message.variable != self.held[0]:
            message.samples = 0  # of all that a server holds, one variable counts the samples
        yield from self.add()
        return message.variable

    def apply(self, variable: int):
        """The optimiser makes new parameters of a variable's sum."""
        slope_s = self.world.costs.update.slope_s * self._variable_bytes[variable]
        yield from self._work("reduce", slope_s, bytes=self._variable_bytes[variable])
        self._updates[variable] += 1

    def end_step(self):
        """All that a server holds has been updated."""
        yield from self._work(
            "update",
            self.world.costs.update.base_s,
            samples=self.samples,
            bytes=sum(self.scenario.updated_bytes(self.rank)),
        )
        self.version, self.samples = self.version + 1, 0

    def meet(self):
        """Go on when all servers are here: a message to the first of them and one back."""
        meeting, start_s = self.world.meetings, self.now_s
        here = meeting.setdefault(self.step, self.world.env.event())
        here.missing = getattr(here, "missing", len(self.servers)) - 1
        if here.missing == 0:
            link = self.world.scenario.network
            self._after(2 * (link.latency_s + 2 * link.overhead_s), here.succeed)
            del meeting[self.step]
        yield here
        self._record("wait", start_s)

    def _ship(self, peer: int, version: int, variable: int, samples: int = 0) -> None:
        message = Message(self.rank, version, samples, self._variable_bytes[variable], variable=variable)
        departure = self._depart(peer, message)
        departure.callbacks.append(partial(self._left, self.now_s, version, message, peer))

    def _through_memory(self, variable: int, call) -> None:
        """A copy within the host, one after another."""
        link = self.world.scenario.cluster.local
        _, end_s = self.machine.memory.take(self.now_s, link.occupancy_s(self._variable_bytes[variable]))
        self._after(end_s - self.now_s + link.latency_s, call)
