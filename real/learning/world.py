"""The event world with parameters and gradients in its messages."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import numpy as np
from sim.event.world import EventWorld

from real.data import Batches
from real.learning.layers import Layers
from real.learning.parameters import Gradient, Held, Shared, Whole
from real.learning.rank import LearningRank
from sim.base.errors import RunFailed
from sim.protocols import is_ours, name_of

if TYPE_CHECKING:
    from real.learning.trainer import RowUpdater, Trainer, Updater
    from sim.job.scenario import Scenario
    from sim.model.workload import Variable

KEPT_BYTES = 1e9  # of sums that several ranks may ask for
DENSE, SPARSE = "dense", "sparse"  # sections that workers update themselves
BOTH = "{}: rank {} exchanges pieces of its gradient and then calls allreduce; in simulated time a step is trained by one of the two"
TWICE = "{}: rank {} sums a piece of its gradient twice; in simulated time a piece is summed once a step"
NOT_ALL = "{}: a sum of {} of {} workers; in simulated time allreduce needs all of them"
NO_PARAMETERS = "{}: rank {} computes on parameters that nobody has sent it"


@dataclass(eq=False)
class Section:
    """Parameters that are updated together.

    Args:
        key: the server that holds them, or DENSE or SPARSE of workers.
        places: where they are in the model's flat vector, shape (numbers,).
        updater: makes new ones.
        of_rows: only rows with a gradient are updated.
    """

    key: object
    places: np.ndarray
    updater: Updater | RowUpdater
    of_rows: bool


class LearningWorld(EventWorld):
    """The ranks of one scenario, which train.

    Args:
        scenario: the job.
        replication: the number of the run, which draws its times and the order of its data; that has the scenario's `sleeps_of`, if any.
        trainer: computes.
        made: called with each version: the number of updates of rank 0 so far, seconds since the start, and samples in all updates; says
            whether training is over with it. With a text without a master it is called once a step.
        want_trace: record all activities.
    """

    rank_class = LearningRank

    def __init__(
        self,
        scenario: Scenario,
        replication: int,
        trainer: Trainer,
        made: Callable[[LearningWorld, int, float, int], bool],
        want_trace: bool = False,
    ):
        self.scenario, self.trainer, self._made = scenario, trainer, made
        self._versions, self._applied = 0, 0
        self._run = replication if scenario.sleeps_of is None else scenario.sleeps_of
        self._wholes: WeakValueDictionary[tuple, Whole] = WeakValueDictionary()
        self._calls: dict[int, Shared] = {}
        self._ahead: dict[
            int, dict
        ] = {}  # parameters of rank 0 after steps that other ranks have not ended, where a step is that of all
        self._sums: OrderedDict[frozenset[Gradient], np.ndarray] = OrderedDict()
        several = scenario.ranks if scenario.servers > 1 else 2 if scenario.summed or scenario.protocol.layerwise else 0
        self._most_sums = min(several, max(1, int(KEPT_BYTES / (4 * scenario.workload.parameters))))
        start = trainer.initial(self._run)
        self.layers = Layers(scenario, trainer, start, self.sum) if scenario.protocol.layerwise else None
        self.sections = [] if self.layers else self._made_sections()
        self._start = {section.key: Held(start[section.places]) for section in self.sections}
        super().__init__(scenario, replication, want_trace=want_trace)
        self._start.clear()  # each version knows the next one: who keeps the first keeps all

    def _made_sections(self) -> list[Section]:
        scenario, trainer, found = self.scenario, self.trainer, []
        served = self._places_of(scenario.served)
        for server in range(scenario.servers):
            places = np.concatenate([served[piece] for piece in scenario.traffic.server_slices[server]] or [served[:0]])
            of_rows = scenario.traffic.sends_rows
            updater = trainer.updater_of_rows() if of_rows else trainer.updater(places.size)
            found.append(Section(server, places, updater, of_rows))
        if scenario.summed:
            places, alike = self._places_of(scenario.summed), is_ours(scenario.protocol) and not scenario.by_all_ranks
            found.append(Section(DENSE, places, trainer.updater(places.size, branches=not alike), False))
        if scenario.gathered_variables:
            places = self._places_of(scenario.gathered_variables)
            found.append(Section(SPARSE, places, trainer.updater_of_rows(), True))
        return found

    def _places_of(self, variables: tuple[Variable, ...]) -> np.ndarray:
        """The places of some variables in the model's flat vector, one after another."""
        model, start, found = self.scenario.workload.variables, 0, [np.empty(0, int)]
        for variable in model:
            if variable in variables:
                found.append(np.arange(start, start + variable.size))
            start += variable.size
        return np.concatenate(found)

    # ---- asked by ranks

    def order_of_data(self, rank: int) -> Callable[[], np.ndarray]:
        """Gives the places in the training set of a rank's next minibatch, shape (samples,): those of the same real run."""
        scenario = self.scenario
        given = scenario.batch, scenario.seed, self._run, scenario.worker_number(rank)
        return Batches(self.trainer.data, *given).places

    def at_the_start(self, rank: int) -> dict:
        """The parameters that a rank holds before any come, by section."""
        serves = rank < self.scenario.servers
        return {key: held for key, held in self._start.items() if (key == rank if serves else key in (DENSE, SPARSE))}

    def whole(self, rank: LearningRank) -> Whole:
        """All parameters that a rank has at hand."""
        return self.layers.whole(rank.step) if self.layers else self._joined(rank.parameters, rank.rank)

    def _joined(self, parameters: dict, rank: int) -> Whole:
        try:
            pieces = [parameters[section.key] for section in self.sections]
        except KeyError:
            raise RunFailed(NO_PARAMETERS.format(name_of(self.scenario.protocol), rank)) from None
        key = tuple(map(id, pieces))
        found = self._wholes.get(key)
        if found is None:
            found = self._wholes[key] = Whole(pieces, [section.places for section in self.sections])
        return found

    def updated_parameters(self, rank: LearningRank) -> dict:
        """A rank's parameters after an update of those that it holds."""
        found, calls = dict(rank.parameters), tuple(one.number for one in rank.shared)
        for section in self.sections:
            if section.key in (DENSE, SPARSE) if not rank.serves else section.key == rank.rank:
                held, shared = found[section.key], calls if _is_of_all(section, rank.shared) else ()
                made = held.next.get(shared) if shared else None
                if made is None:
                    made = self._updated(section, held, rank)
                if shared:
                    held.next[shared] = made
                found[section.key] = made
        return found

    def _updated(self, section: Section, held: Held, rank: LearningRank) -> Held:
        if not section.of_rows:
            return section.updater.updated(held, self._total(section, rank), rank.samples)
        gradients = [one for shared in rank.shared for one in shared.gradients] or rank.at_sum
        total, touched = self.sum(gradients), self.trainer.touched(gradients)
        return section.updater.updated(held, total[section.places], rank.samples, touched[section.places])

    def _total(self, section: Section, rank: LearningRank) -> np.ndarray:
        """The sum that a rank has at hand of a section's gradient."""
        if rank.vector is not None:
            return rank.vector
        whole = _is_of_all(section, rank.shared)
        total = np.empty(section.places.size, np.float32) if whole else self.sum(rank.at_sum)[section.places]
        for shared in rank.shared:
            total[shared.piece] = self.sum(shared.gradients)[section.places[shared.piece]]
        return total

    def vector(self, rank: LearningRank) -> np.ndarray:
        """The gradient at hand of the variables that workers sum, float32 (numbers,), a rank's own to write to."""
        section = next(section for section in self.sections if section.key == DENSE)
        return self._total(section, rank).copy()

    def enter(self, rank: LearningRank, piece: slice) -> Shared:
        """A rank enters the next sum of all workers with the gradients that it has at hand."""
        if rank.vector is not None:
            raise RunFailed(BOTH.format(name_of(self.scenario.protocol), rank.rank))
        if any(max(piece.start, one.piece.start) < min(piece.stop, one.piece.stop) for one in rank.shared):
            raise RunFailed(TWICE.format(name_of(self.scenario.protocol), rank.rank))
        number, rank.calls_entered = rank.calls_entered, rank.calls_entered + 1
        shared = self._calls.setdefault(number, Shared(number, piece))
        shared.gradients += rank.own if self.scenario.served else rank.at_sum
        shared.entered += 1
        return shared

    def taken(self, shared: Shared) -> Shared:
        """A rank takes a sum."""
        workers = self.scenario.workers
        if shared.entered < workers:
            raise RunFailed(NOT_ALL.format(name_of(self.scenario.protocol), shared.entered, workers))
        shared.taken += 1
        if shared.taken == workers:
            del self._calls[shared.number]
        return shared

    def sum(self, gradients: Iterable[Gradient]) -> np.ndarray:
        """The sum of gradients, float32 (parameters,), which several ranks may ask for; added up in the order of the first who asks."""
        ordered = list(dict.fromkeys(gradients))
        wanted = frozenset(ordered)
        found = self._sums.get(wanted)
        if found is None:
            found = self.trainer.sum(ordered)
            if self._most_sums:
                self._sums[wanted] = found
        if len(self._sums) > self._most_sums:
            self._sums.popitem(last=False)
        return found

    def fall_apart(self) -> None:
        """Cut references that form circles, so that memory is free at once."""
        super().fall_apart()
        self._sums.clear()
        self._calls.clear()

    # ---- versions

    @property
    def newest(self) -> Whole:
        """The newest parameters: the servers' own, and the first worker's; of a step that is that of all, those after it."""
        if self.layers:
            return self.layers.newest
        first = self.ranks[self.scenario.servers if self.scenario.workers else 0]
        own = next(iter(self._ahead.values()), first.parameters)
        held = {**own, **{server: self.ranks[server].parameters[server] for server in self.servers}}
        return self._joined(held, 0)

    def updated(self, rank, samples: int):
        """Rank 0 has made an update; or any rank, where a step is that of all."""
        if self.all_ranks is not None and rank.rank == 0:
            self._ahead[rank.step] = dict(rank.parameters)
        found = super().updated(rank, samples)
        if self.all_ranks is None and self._ends_training(rank.clock_s, samples):
            return self._ended_early(rank)
        return found

    def step_over(self, end_s: float, samples: int) -> None:
        """All ranks have ended a step, where it is that of all."""
        super().step_over(end_s, samples)
        if self._ends_training(end_s, samples):
            self.at(end_s, self._cut)
        self._ahead.pop(next(iter(self._ahead)), None)

    def _ends_training(self, time_s: float, samples: int) -> bool:
        self._versions, self._applied = self._versions + 1, self._applied + samples
        self.patience.over = self._made(self, self._versions, time_s, self._applied) or self.patience.over
        return self.patience.over


def _is_of_all(section: Section, shared: list[Shared]) -> bool:
    """Whether sums of all workers leave nothing of a section that is a rank's own."""
    size = section.places.size
    return section.of_rows or sum(len(range(*one.piece.indices(size))) for one in shared) == size
