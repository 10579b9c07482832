"""Accuracies that the seeds of this project report, beside training in simulated time with their settings, as far as they give them.

Seed 002 is I. Schlag, "Distributed Tensorflow Example", 12 June 2016 (ischlag.github.io): asynchronous parameter servers, one sigmoid
layer, 20 epochs of plain gradient descent by each worker. First weights are drawn from N(0, 1), there and here.
Seed 000 is J. Choi, "BDDL 2018 HW 02 Parallax": an LSTM on three platforms, after A. Damien's examples. It names neither optimiser nor
rate; these are Adam and 0.001, as in Damien's recurrent network of 2016. Seed 001 is S. Kang's homework of the same course, whose captioner
has no data here; it says that the weights of its platforms differ. Seed 003, T. Adikari's AMB repository, shows panels without numbers.
"""

from __future__ import annotations

import shlex
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.kit import pages
from experiments.kit.agreement import distance
from real.learning.learning import learn
from real.learning.trainer import Trainer, Weights
from real.learning.values import Whole
from real.recording import parameters
from real.training.trainee import Training
from sim import plot, protocols, stragglers
from sim.base.home import installed
from sim.base.progress import each
from sim.job.scenario import Scenario
from sim.model import workload as workloads
from sim.model.costs import Costs, Line

# ---- Schlag: accuracy after 20 epochs, of 55,000 digits and 100 samples a step, by each of so many workers
SCHLAG = {1: 0.42, 2: 0.58, 3: 0.65}
EPOCH_STEPS, EPOCHS, RATE = 550, 20, 0.001
WHOLE_S = 170.0  # "takes ~170s": here it is the time of a worker's gradients alone
# ---- Choi: test accuracy at every 50th step
EVERY, LAST = 50, 250


class Platform(NamedTuple):
    """A platform of Choi's.

    Args:
        protocol: of ours that is nearest to it.
        said: the accuracies that its first worker printed, at step 0 and every 50th.
    """

    name: str
    protocol: str
    workers: int
    said: tuple[float, ...]


PLATFORMS = (
    Platform("TensorFlow servers, 2 workers", "ps-async", 2, (0.1070, 0.4729, 0.6838, 0.7740)),
    Platform("Horovod, 3 workers", "horovod", 3, (0.1609, 0.4279, 0.6284, 0.7302, 0.7732, 0.8109)),
    Platform("Parallax, 3 workers", "hybrid", 3, (0.8670, 0.8860, 0.8947, 0.9058, 0.8939, 0.9203)),
)
TESTED = 10_000
MNIST = Path("data/mnist.npz")
OF_CHOI = "the optimiser may, since the seed names none; its Parallax began with trained weights"
OF_WEIGHTS = "Seed 000 says that weights end near each other; seed 001, which trains a captioner, that no two platforms end alike."
# ---- Adikari: commands for ten workers; a minibatch of 256 took 5.64 s in the log
AMB = {"fmb": (), "amb": ("time_limit_s=5.5", "partitions=16")}
FMB_BATCH, BATCH_S, AMB_WORKERS, AMB_STEPS, PANELS = 256, 5.64, 10, 100, ("accuracy_vs_time", "loss_vs_step")
OF_AMB = "another model (mlp) with its commands' minibatches, time limit and stragglers"


def run(out: Path, seed: int = 0, *, data: str | None = None) -> None:
    """Train, print a table for each seed, and draw AMB's panels.

    Args:
        data: real data, such as a folder of MNIST's files; if None, MNIST as `make mnist` keeps it in the current folder, else digits.

    Raises:
        WrongSetting: no such data.
    """
    chosen = data or (str(MNIST) if MNIST.exists() else "digits")
    show_schlag(chosen, seed)
    show_choi(chosen, seed)
    draw_panels(out, chosen, seed)


def show_schlag(data: str, seed: int) -> None:
    """Accuracy by the number of asynchronous workers."""
    training = Training(data=data, optimiser="sgd", learning_rate=RATE, engine="numpy")
    model = workloads.read("mlp")
    model = model.model_copy(update={"costs": Costs(compute=Line(base_s=WHOLE_S / (EPOCHS * EPOCH_STEPS)))})
    trainer, steps = _NormalStart(model, seed, training), EPOCHS * EPOCH_STEPS
    title = f"Seed 002: accuracy after {EPOCHS} epochs of {EPOCH_STEPS} steps by each asynchronous worker; {trainer.data.name}"
    table = pages.table(title, "workers", "updates", "the seed", "simulated")
    for workers, said in each(SCHLAG.items(), "training in simulated time", label=lambda one: f"{one[0]} workers"):
        scenario = Scenario(
            protocols.make("ps-async"), model, workers=workers, batch=100, steps=steps, warmup=0, seed=seed
        )
        found = learn(scenario, training, replications=1, trainer=trainer, evaluate_every=steps)
        table.add_row(f"{workers}", f"{found.updates[0]:,}", f"{said:.2f}", f"{found.curves[0].accuracy[-1]:.2f}")
    pages.show(table, f"What differs: random weights and order; {_data(trainer)}.")


class _NormalStart(Trainer):
    """First weights from N(0, 1), as tf.random_normal draws them; biases 0."""

    def initial(self, replication: int = 0) -> np.ndarray:
        """First parameters of a replication, float32 (parameters,)."""
        rng = np.random.default_rng([self.seed, replication] if replication else self.seed)
        parts = [
            rng.standard_normal(variable.size, np.float32) * (len(variable.shape) > 1)
            for variable in self.workload.variables
        ]
        return np.concatenate(parts, dtype=np.float32)


def show_choi(data: str, seed: int) -> None:
    """Accuracy by step, and how far the platforms' weights are apart."""
    training = Training(data=data, optimiser="adm", learning_rate=0.001, threads=2)
    trainer = _KeepsLast(workloads.read("lstm_classifier"), seed, training)
    start = trainer.evaluate(Whole(trainer.initial()), TESTED)[1]
    learnt, ends = {}, {}
    for platform in each(PLATFORMS, "training in simulated time", label=lambda one: one.name):
        learnt[platform] = [start, *by_step(platform, trainer, training)]
        ends[platform.name] = parameters.joined(trainer.workload, [(slice(None), trainer.last)])
    title = f"Seed 000: accuracy by step of an LSTM; {trainer.data.name}"
    table = pages.table(title, "step", *(head for one in PLATFORMS for head in (one.name, "simulated")))
    for row in range(LAST // EVERY + 1):
        cells = (
            (f"{one.said[row]:.3f}" if row < len(one.said) else "", f"{learnt[one][row]:.3f}") for one in PLATFORMS
        )
        table.add_row(f"{EVERY * row}", *(cell for pair in cells for cell in pair))
    apart = pages.table(f"Seeds 000 and 001: weights after {LAST} steps", "one", "another", "largest difference")
    for one, other in combinations(ends, 2):
        apart.add_row(one, other, f"{distance(ends[one], ends[other]):.1e} of the largest weight")
    pages.show(table, f"What differs: {OF_CHOI}; {_data(trainer)}.", apart, OF_WEIGHTS)


def by_step(platform: Platform, trainer: _KeepsLast, training: Training) -> list[float]:
    """The accuracy after every 50th step of each worker."""
    job: dict = {"workers": platform.workers, "batch": 128, "steps": LAST, "warmup": 0, "seed": trainer.seed}
    scenario = Scenario(protocols.make(platform.protocol), trainer.workload, **job)
    every = EVERY * scenario.updates_per_step
    return learn(scenario, training, replications=1, trainer=trainer, evaluate_every=every).curves[0].accuracy.tolist()


class _KeepsLast(Trainer):
    """Keeps the parameters that it has evaluated last."""

    last: np.ndarray

    def evaluate(self, whole: Weights, size: int) -> tuple[float, float]:
        """Mean loss, and accuracy."""
        self.last = whole.vector
        return super().evaluate(whole, size)


def _data(trainer: Trainer) -> str:
    """What is trained on here."""
    return f"data (the seed: 55,000 digits of MNIST; here {trainer.data.name}, {len(trainer.data.train_y):,})"


def draw_panels(out: Path, data: str, seed: int) -> None:
    """Fixed and anytime minibatches as seed 003's commands have them, as traces, and its panels of them."""
    training = Training(data=data, engine="numpy")
    sample = Line(slope_s=BATCH_S / FMB_BATCH)
    model = workloads.read("mlp").model_copy(update={"costs": Costs(compute=sample, partition=sample)})
    trainer, files = Trainer(model, seed, training), []
    for name, settings in AMB.items():
        job: dict = {"workers": AMB_WORKERS, "batch": FMB_BATCH, "steps": AMB_STEPS, "warmup": 0, "seed": seed}
        scenario = Scenario(protocols.make(name, settings), model, **job, stragglers=stragglers.read("niagara"))
        trace = learn(scenario, training, replications=1, trainer=trainer, want_trace=True).trace
        assert trace is not None
        files.append(str(out / f"{name}.jsonl"))
        trace.write(files[-1])
    words = [*files, "--panels", *PANELS, "-o", str(out / "amb.png")]
    plot.main(words)
    pages.show(
        f"Seed 003: the AMB repository's panels, of {OF_AMB}:",
        shlex.join(["python", "-m", installed("sim.plot"), *words]),
    )
