"""A rank's data and gradients, and where it updates parameters its optimiser and test set."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from real import engines
from real.data import Batches, Data, data_for, default_of
from real.language.asked import asked_of
from real.models import initial
from real.training.gradients import Gradients
from real.training.optimiser import (
    LEARNING_RATES,
    WEIGHT_DECAY,
    Optimiser,
    OptimiserByPiece,
    Rates,
)
from real.training.row_optimiser import RowOptimiser
from sim.base.errors import WrongSetting
from sim.base.ranges import MOST_CORES, check_integer, check_kind
from sim.job.scenario import Scenario
from sim.model.workload import Workload
from sim.recording import traces


@dataclass(frozen=True)
class Training:
    """Settings of training that the simulator does not need.

    Args:
        data: digits, synthetic, words, or a path; data that fit the workload if None.
        optimiser: sgd, mom, rms or adm.
        learning_rate: of the first step; the optimiser's own default if None.
        weight_decay: times half the squared parameters is added to the loss.
        decay_steps, decay_rate: the rate falls by decay_rate every decay_steps steps; 0 steps is never.
        device: cpu or gpu; master_on_cpu keeps master and servers off the GPU (the AMB repository's cpu_master).
        threads: of the engine, for each rank.
        engine: what computes gradients and updates, by its name in real.engines.

    Raises:
        WrongSetting: a setting that cannot be.
    """

    data: str | None = None
    optimiser: str = "rms"
    learning_rate: float | None = None
    decay_steps: int = 0
    decay_rate: float = 1.0
    device: str = "cpu"
    master_on_cpu: bool = False
    threads: int = 1
    engine: str = engines.DEFAULT
    weight_decay: float = WEIGHT_DECAY

    def __post_init__(self):
        Rates(*self.rates)
        check_integer("--threads", self.threads, 1, MOST_CORES)
        check_kind("--data", self.data, str | os.PathLike | None, "a name, or a path")
        engines.engine_of(self.engine)
        if self.device not in ("cpu", "gpu"):
            raise WrongSetting("--device", self.device, "cpu or gpu")

    def recorded(self, workload: Workload) -> traces.Training:
        """The settings as in a trace: defaults by their names."""
        return traces.Training(**vars(self) | {"data": self.data or default_of(workload), "learning_rate": self.rate})

    @property
    def rates(self) -> tuple:
        """The optimiser's name and its rates, as real.training.optimiser.Rates takes them."""
        return self.optimiser, self.learning_rate, self.decay_steps, self.decay_rate, self.weight_decay

    @property
    def rate(self) -> float:
        """The learning rate of the first step."""
        return LEARNING_RATES[self.optimiser] if self.learning_rate is None else self.learning_rate


def kind_of(scenario: Scenario) -> str:
    """The gradients that a run's workers compute, as real.engines.entries.Engine names them."""
    if scenario.traffic.in_parts:
        return "rows"
    return "layered" if asked_of(scenario).layered else "whole"


class Workshop:
    """Trainees of one process; what is slow to make (data, traced graphs, updates) is made once and used for every run."""

    def __init__(self, training: Training, rank: int, gpu_index: int = 0):
        self.training, self.rank, self.gpu_index = training, rank, gpu_index
        self.engine = engines.engine_of(training.engine)
        self._gradients: dict[tuple, Gradients] = {}
        self._data: dict = {}
        self._optimisers: dict[tuple[int, int], tuple[Optimiser, list[np.ndarray]]] = {}

    def trainee(self, scenario: Scenario, replication: int, gradients: Gradients | None = None) -> Trainee:
        """The trainee of this rank for one run, warm; with gradients made for this run, if any are given."""
        gradients, data = gradients or self._made(scenario), self._loaded(scenario)
        for samples in asked_of(scenario).samples.get(self.rank, ()):  # compiling takes long
            gradients.warm_up(samples)
        if scenario.test_size and self.rank == 0:  # ranks that evaluate
            start, size = np.zeros(scenario.workload.parameters, np.float32), scenario.test_size
            gradients.evaluate(start, data.test_x[:size], data.test_y[:size])
        number = scenario.worker_number(self.rank)
        return Trainee(scenario, gradients, data, self._by_piece(scenario), replication, number, self._of_rows)

    def feeder(self, scenario: Scenario, replication: int, number: int) -> Trainee:
        """The data of worker `number` (from 1) alone, for a runtime that computes and updates by itself."""
        return Trainee(scenario, None, self._loaded(scenario), None, replication, number)

    def gpus(self, scenario: Scenario) -> list[str]:
        """The names of this host's GPUs, if this rank computes on one."""
        return self.engine.gpus() if self._device(scenario) == "gpu" else []

    def _device(self, scenario: Scenario) -> str:
        return "cpu" if self.training.master_on_cpu and self.rank < scenario.servers else self.training.device

    def _made(self, scenario: Scenario) -> Gradients:
        workload, training, kind = scenario.workload, self.training, kind_of(scenario)
        if (workload, kind) not in self._gradients:
            settings = workload, training.threads, self._device(scenario), self.gpu_index
            self._gradients[workload, kind] = self.engine.gradients(kind, *settings)
        return self._gradients[workload, kind]

    def _loaded(self, scenario: Scenario):
        workload = scenario.workload
        if workload not in self._data:
            self._data[workload] = data_for(workload, self.training.data, scenario.seed)
        return self._data[workload]

    def _of_rows(self) -> RowOptimiser:
        return RowOptimiser(*self.training.rates)

    def _new_optimiser(self) -> Optimiser:
        return self.engine.optimiser(*self.training.rates)

    def _by_piece(self, scenario: Scenario) -> OptimiserByPiece:
        """The optimisers of the pieces of the weights that this rank's text updates, but for rows."""
        pieces = asked_of(scenario).dense(self.rank)
        return OptimiserByPiece(
            {one: self._warm_optimiser(one[1] - one[0], one[0]) for one in pieces}, self._new_optimiser
        )

    def _warm_optimiser(self, size: int, first: int = 0) -> Optimiser:
        """Of so many numbers from the first on, at step 0; compiled in the first run that asks for it."""
        if (size, first) not in self._optimisers:
            made = self._new_optimiser()
            made.warm_up(size)
            self._optimisers[size, first] = made, made.state
        optimiser, start = self._optimisers[size, first]
        optimiser.restore([part.copy() for part in start])
        return optimiser


@dataclass
class Trainee:
    """One rank's share of one run.

    Args:
        optimiser: an OptimiserByPiece, and `of_rows` makes a RowOptimiser, where the rank updates by itself.
    """

    scenario: Scenario
    gradients: Any
    data: Data
    optimiser: Any
    replication: int
    number: int
    of_rows: Any = None
    _batches: Batches = field(init=False)

    def __post_init__(self):
        s = self.scenario
        self._batches = Batches(self.data, s.batch, s.seed, self.replication, self.number)

    def initial(self) -> np.ndarray:
        """First parameters, float32 (parameters,)."""
        return initial(self.scenario.workload, self.scenario.seed, self.replication)

    def next_batch(self) -> tuple[np.ndarray, np.ndarray]:
        """The next minibatch of this rank."""
        return next(self._batches)

    def evaluate(self, parameters: np.ndarray, size: int) -> tuple[float, float]:
        """Loss and accuracy on the first `size` test samples."""
        return self.gradients.evaluate(parameters, self.data.test_x[:size], self.data.test_y[:size])
