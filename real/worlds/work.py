"""A rank's work for real: minibatches, gradients, sums, updates and evaluation."""

from __future__ import annotations

import sys

import numpy as np
from sim.verbs.me import Partition

from real.training.gradients import Gradient
from real.worlds.parcels import Letter, put
from real.worlds.verbs import verb
from sim.base.errors import WrongText

NOTHING_TO_UPDATE = "me.update is for ranks that hold parameters: the master, servers, or workers that sum them"


class Work:
    """The part of a rank that computes."""

    @verb
    def fetch(self):
        """Fetch a minibatch before the parameters for it have come."""
        self._fetched = self._input()

    @property
    def has_fetched(self) -> bool:
        """Whether a fetched minibatch has not been used yet."""
        return self._fetched is not None

    def minibatch(self) -> tuple[np.ndarray, np.ndarray]:
        """The fetched minibatch, or the next."""
        fetched, self._fetched = self._fetched or self._input(), None
        return fetched

    @verb
    def compute(self, part=None):
        """The gradient of the whole minibatch, or of a part of it."""
        if isinstance(part, Partition):
            self._compute_partition(part)
            return
        if part is not None:
            self._layers.compute(part)
            return
        self.at_hand.begin_gradient()
        self.oldest, self.minibatches = self.version, 1
        x, y = self.minibatch()
        start_s = self.now_s
        self._computed(start_s, self._gradient(x, y))

    def _gradient(self, x: np.ndarray, y: np.ndarray):
        return self.trainee.gradients.fixed(self.parameters, x, y)

    @verb
    def compute_until(self, deadline_s, partitions):
        """Compute partitions while there is time, at least one. The last one overruns."""
        self.at_hand.begin_gradient()
        x, y = self.minibatch()
        start_s, self.minibatches = self.now_s, 1
        gradient = self.trainee.gradients.anytime(self.parameters, x, y, partitions, deadline_s - start_s)
        if gradient.samples == len(x) // partitions * partitions and start_s + gradient.computed_s < deadline_s:
            self.run_out()
        self._computed(start_s, gradient)

    def _compute_partition(self, part: Partition) -> None:
        """Compute the gradient of one partition, and add it to those before."""
        self.at_hand.begin_partition(part)
        if part.index == 0:
            self.samples, self.oldest, self.minibatches = 0, self.version, 1
            self._minibatch = self.minibatch()
        x, y = self._minibatch
        size = len(x) // part.of
        items, start_s = slice(part.index * size, (part.index + 1) * size), self.now_s
        gradient = self._gradient(x[items], y[items])
        self._put(gradient, adds=part.index > 0)
        self.samples += gradient.samples
        self._record_computed(start_s, gradient)
        if part.index == part.of - 1:
            self._minibatch = None

    @verb
    def take_up(self, letter: Letter):
        """New parameters replace those at hand."""
        start_s = self.now_s
        self._paste(letter)
        if letter.sender == 0:
            self.version = letter.version
        self.record("update", start_s, bytes=letter.size_bytes)

    def _paste(self, letter: Letter) -> None:
        """Copy parameters that have come to their place. Those of a single server are received there."""
        if len(self.servers) > 1:
            self._shards.paste(letter.payload, self._held, letter.sender)
        elif letter.payload is not self._held:
            np.copyto(self._held, letter.payload)

    @verb
    def add(self, letter: Letter):
        """Add the gradient of a letter to what is at hand."""
        if not (self.serves or self.at_hand.what):  # what was handed on is not added to
            self.samples = 0
        self.at_hand.begin_add(letter)
        start_s = self.now_s
        samples = self._add_up(letter)
        self.samples += samples
        about = {"samples": samples, "bytes": letter.size_bytes, "peer": letter.sender, "version": letter.version}
        self.record("reduce", start_s, **about)

    def _add_up(self, letter: Letter) -> int:
        """The number of samples that are new in the sum."""
        adds = self.samples > 0
        if self._sum is not None:
            put(self._sum, letter.payload, adds)
            return letter.samples
        start = 0
        for server in self.servers:  # of a worker: its gradient lies in the messages in which it is sent
            shard = self._out[server].payload
            put(shard, letter.payload[start : start + shard.size], adds)
            start += shard.size
        return letter.samples

    @verb
    def update(self, variables=None):
        """Make new parameters of the sum."""
        if variables is not None:
            self._update_some(variables)
            return
        if not self.scenario.traffic.updated_bytes(self.rank):
            raise WrongText(NOTHING_TO_UPDATE)
        due = None if self.counts_updates or self.rank else self.version
        self.at_hand.begin_update(self.samples, self.step, due)
        if self.counts_updates:
            self.step = self.version
        start_s = self.now_s
        size_bytes = self._apply()
        self.version += 1
        self.record("update", start_s, samples=self.samples, bytes=size_bytes)
        self.samples = 0

    def _apply(self) -> int:
        """Apply the optimiser; the number of bytes that it updated."""
        self.trainee.optimiser.apply(self._held, self._sum, self.samples)
        return sum(self.scenario.traffic.updated_bytes(self.rank))

    @verb
    def evaluate(self):
        """Evaluate loss and accuracy at rank 0, where they are due."""
        if self.rank or not self.scenario.evaluates(self.step):
            return
        start_s = self.now_s
        self.evaluations.append((self.step, *self.trainee.evaluate(self.parameters, self.scenario.test_size)))
        self.record("evaluate", start_s, samples=len(self.trainee.data.test_y[: self.scenario.test_size]))

    def _input(self):
        start_s = self.now_s
        x, y = self.trainee.next_batch()
        self.record("input", start_s, samples=len(x))
        return x, y

    def _computed(self, start_s: float, gradient: Gradient) -> None:
        self.samples = gradient.samples
        self._put(gradient)
        self._record_computed(start_s, gradient)

    def _put(self, gradient: Gradient, adds: bool = False) -> None:
        """Copy the gradient to the messages in which it is sent, or to the sum if no other rank adds to it; or add it to what is there."""
        if self._sum is not None:
            put(self._sum, gradient.sum, adds)
        else:
            for server in self.servers:
                self._shards.copy(gradient.sum, server, self._out[server].payload, adds)

    def _record_computed(self, start_s: float, gradient: Gradient) -> None:
        computed_s = start_s + gradient.computed_s
        self.record("compute", start_s, computed_s, samples=gradient.samples)
        self.record("pack", computed_s, bytes=self._packed_bytes())

    def _packed_bytes(self) -> int:
        return self.scenario.traffic.packed_bytes

    def run_out(self) -> None:
        """Count a step in which data ran out before the time did."""
        self.ran_out += 1
        if self.ran_out == 1:
            print(f"rank {self.rank}: ran out of data before the time limit in step {self.step}", file=sys.stderr)
