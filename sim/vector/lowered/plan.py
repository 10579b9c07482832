"""What ranks do in many steps, from texts that are played once: stretches of work, each up to a verb by which ranks meet.

Where nothing cools down and nobody is slower after a sleep, a stretch takes as long whenever it begins. It is therefore reckoned from
moment 0, for all steps and replications at once, and loops put the stretches of a step together (sim.vector.compiled).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sim.vector.cycles.overlap import ALONE, ByLayer, InCycles, all_count
from sim.vector.group import CLOCKS, Group
from sim.vector.step_world import Rows, StepWorld
from sim.vector.world import VectorWorld
from sim.verbs.at_hand import SUM
from sim.verbs.me import PARAMETERS


class NotLowered(Exception):
    """No loop does what these texts do."""


class Stretch(NamedTuple):
    """Work, and the verb that ends it.

    Args:
        verb: by its name; "" at the end of a text.
        work_s: seconds of each rank, shape (steps * replications, ranks); None if there is no work.
        about: the verb.
    """

    verb: str
    work_s: np.ndarray | None
    about: tuple


class Planned(Group):
    """Ranks whose clocks begin at 0 after each verb by which ranks meet."""

    stretches: list[Stretch]
    _zero: np.ndarray

    def resumed(self, *given):
        """As of groups."""
        found = super().resumed(*given)
        found.stretches, found._zero = [], found.now_s
        return found

    def steps(self):
        """The one that stands for all."""
        yield self.step

    def send(self, what, to, wait=True):
        """A message from each rank, or to each rank of the other group."""
        others = self._receivers(what, to, wait)
        self._spend(self._link.overhead_s)
        others.inbox.append((self._zero, self.samples))
        yield from self._meet("send")

    def receive(self, frm, until_s=math.inf, variable=None):
        """A message to each rank."""
        self._only_parameters(frm, until_s, variable)
        yield from self._until_message()
        self.inbox.popleft()
        yield from self._meet("receive")
        self._spend(self._link.overhead_s)
        return PARAMETERS

    def gather(self, peers):
        """A message from each rank of the other group."""
        self._only_workers(peers)
        yield from self._until_message()
        _, samples = self.inbox.popleft()
        self.samples = self.samples + samples.sum(axis=1, keepdims=True)
        self.at_hand.what = SUM
        yield from self._meet("gather")

    def allreduce(self, algorithm="auto", fused=True):
        """A sum of all ranks."""
        self._begin_allreduce()
        self._all_samples()
        yield from self._meet("allreduce", algorithm, fused)

    def allgather(self):
        """Rows of all ranks, of which there is no loop."""
        if self.world.scenario.gathered_variables:
            raise NotLowered
        yield from self._did()

    def beside(self, computing, communicating):
        """A sum of all ranks, in cycles beside their computing."""
        if not (isinstance(computing, ByLayer) and isinstance(communicating, InCycles)):
            raise self.world.refuse(ALONE)
        before_s, self.now_s = self.now_s, self._zero
        layers_s, shares = self._layers(*computing.settings)
        if not all_count(shares, layers_s):
            raise NotLowered
        input_s, self.now_s = self.now_s, before_s
        self.samples = self._whole_batch
        self._all_samples()
        yield from self._meet("beside", communicating.settings, input_s, layers_s / self.speeds, np.cumsum(shares)[1:])

    def update(self, variables=None):
        """The end of a step."""
        yield from super().update(variables)
        yield from self._meet("update")

    def ended(self) -> list[Stretch]:
        """All of a step, once its text is over."""
        return [*self.stretches, Stretch("", self._worked_s, ())]

    def _meet(self, verb: str, *about):
        self.stretches.append(Stretch(verb, self._worked_s, about))
        self.now_s = self._zero
        yield from self._did()

    @property
    def _worked_s(self) -> np.ndarray | None:
        return None if self.now_s is self._zero else self.now_s


class PlannedWorld(VectorWorld):
    """The ranks of a scenario, of which nothing is played here."""

    def _group(self, ranks, speeds):
        return Planned(self, ranks, speeds)

    @property
    def can_be_lowered(self) -> bool:
        """Whether work takes as long whenever it begins, and ranks have hosts and ports to themselves."""
        hosts = self.scenario.hosts
        alone = len(set(hosts)) == len(hosts) and self.scenario.workers > 0
        return alone and not any(group._cools or group._resume_s is not None for group in self.groups)


class Plan:
    """What ranks do in some steps, next to one another.

    Args:
        world: of the scenario.
        steps: of one block of random numbers.

    Raises:
        Refused: the text does what this world cannot do exactly.

    Attributes:
        master, workers: what they do in a step.
        samples: of each step's update, shape (steps, replications).
        ran_out: how often a rank had no more partitions to compute.
    """

    def __init__(self, world: PlannedWorld, steps: range):
        self._shape = len(steps), len(world.replications)
        rows = Rows(steps, self._shape[1], np.arange(math.prod(self._shape)))
        count = len(rows.chosen)
        still: list[tuple[list[np.ndarray], list[np.ndarray]]] = [
            ([np.zeros((count, len(group.ranks)))] * CLOCKS, []) for group in world.groups
        ]
        played = StepWorld(world, rows, still, None, np.ones(count, bool))
        played.play()
        self.master, self.workers = (
            group.ended() if isinstance(group, Planned) and group.ranks else []
            for group in (played.master, played.workers)
        )
        self.samples, self.ran_out = played.updates[0][1].reshape(self._shape), int(played.ran_out.sum())
        played.fall_apart()

    def does(self, master: tuple[str, ...], workers: tuple[str, ...]) -> bool:
        """Whether ranks meet by these verbs."""
        asked = (*master, "") if master else (), (*workers, "")
        return asked == tuple(tuple(stretch.verb for stretch in own) for own in (self.master, self.workers))

    def of_master(self, stretch: int) -> np.ndarray:
        """Seconds of its work, shape (steps, replications)."""
        return self.in_steps(self.master[stretch].work_s)[:, :, 0]

    def of_workers(self, stretch: int) -> np.ndarray:
        """Seconds of their work, shape (steps, replications, workers)."""
        return self.in_steps(self.workers[stretch].work_s)

    def in_steps(self, seconds: np.ndarray | None) -> np.ndarray:
        """Seconds of all rows, by step and replication; of one rank, where nobody works."""
        rows = np.zeros((math.prod(self._shape), 1)) if seconds is None else seconds
        return np.ascontiguousarray(rows).reshape(*self._shape, -1)
