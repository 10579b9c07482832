"""The runs of real.calibrate: some that a profile is fitted on, and others that it is checked on, which are never fitted."""

from __future__ import annotations

from dataclasses import dataclass, replace

from real.cells import SLEEPS, Cell, fitted_cells
from sim import protocols
from sim.base.errors import WrongSetting

LEAST_BATCH = 8  # of which a half, three quarters and a partition differ
PILOT_STEPS, WARMUP = 8, 3
LIMIT = 0.6  # of the time of computing a batch: the limit for protocols that stop by the clock
SHORTEST_S = 1e-3  # such a limit
WINDOW = 1.7  # of that limit, after which their master updates
CHECKS = 2  # times that each checked run is made
LARGER = 8  # times as many samples of the larger evaluation that is fitted, as far as there are test samples
EVERY = 2  # steps from one evaluation to the next, of runs that evaluate
OTHER_SEED = 1000  # from the seed of runs that are fitted to that of runs that are checked


@dataclass(frozen=True)
class Asked:
    """The subject of a calibration.

    Args:
        workload: a name, or a file, of a model that can be trained here.
        workers: the largest number that runs.
        protocols: that the profile is to predict.
        batch: the larger of the two that are fitted, samples of a worker.
        steps: of each run, after those of warm-up.
        repeats: of each run that is fitted.
        data, engine, device: as of real.run; its defaults, or data that fit the workload, if None.
    """

    workload: str
    workers: int
    protocols: tuple[str, ...]
    batch: int
    steps: int
    repeats: int
    seed: int
    data: str | None = None
    engine: str | None = None
    device: str | None = None

    def __post_init__(self):
        if self.workers < 1:
            raise WrongSetting("--workers", self.workers, "an integer from 1")
        if self.batch < LEAST_BATCH:
            raise WrongSetting("--batch", self.batch, f"an integer from {LEAST_BATCH}: several batches are fitted")
        for name in self.protocols:
            protocol = protocols.make(name)
            if protocol.overlaps:
                allowed = "protocols whose messages wait for computing: which part computing hides is not fitted"
                raise WrongSetting("--protocol", name, allowed)

    @property
    def partitions(self) -> int:
        """Partitions of a batch, for protocols that cut it: 16, or fewer so that each has four samples."""
        return max(1, min(16, self.batch // 4))

    @property
    def ladder(self) -> list[int]:
        """Smaller batches that are fitted on a GPU, whose time has a floor: down to a sixty-fourth."""
        known = {self.batch, self.batch // 2, self.batch // self.partitions}
        return [batch for part in (4, 8, 32, 64) if (batch := self.batch // part) and batch not in known] * self.on_gpu

    @property
    def on_gpu(self) -> bool:
        """Whether a GPU computes."""
        return self.device == "gpu"

    @property
    def anytime(self) -> tuple[str, ...]:
        """The protocols that cut a batch into partitions."""
        return tuple(name for name in self.protocols if protocols.make(name).limits_computing)

    @property
    def job(self) -> dict:
        """Fields that all cells share."""
        return {
            "workload": self.workload,
            "partitions": self.partitions,
            "data": self.data,
            "engine": self.engine,
            "device": self.device,
            "steps": self.steps,
            "warmup": WARMUP,
        }


def pilots(asked: Asked) -> list[Cell]:
    """Two short runs, of a batch and a partition, which say how long computing takes."""
    job = asked.job | {"steps": PILOT_STEPS, "seed": asked.seed}
    return [Cell("fmb", 1, batch, **job) for batch in (asked.batch, asked.batch // asked.partitions)]


def fitted(asked: Asked, compute_s: float) -> list[Cell]:
    """The cells that the profile is learned from.

    Args:
        compute_s: seconds in which one worker computes the whole batch.
    """
    batches, counts = (asked.batch // 2, asked.batch), tuple(sorted({1, min(2, asked.workers), asked.workers}))
    cells = fitted_cells(
        seed=asked.seed, batches=batches, workers=counts, anytime=bool(asked.anytime), **asked.job
    )  # and what renews its parameters between partitions
    cells += [Cell("fmb", 1, batch, seed=asked.seed, **asked.job) for batch in asked.ladder]
    cells += [
        Cell("fmb", 1, batches[0], seed=asked.seed, test_size=size, evaluate_every=EVERY, **asked.job)
        for size in (asked.batch, LARGER * asked.batch)
    ]
    renewing = [name for name in asked.anytime if "window_s" in protocols.find(name).__dataclass_fields__]
    return cells + [_anytime(name, 1, asked.batch, compute_s, asked, stragglers=SLEEPS) for name in renewing]


def checked(asked: Asked, compute_s: float) -> list[Cell]:
    """Runs of all workers that are not fitted: each protocol, of a batch between the fitted ones, with sleeps of another seed and without.

    Args:
        compute_s: see `fitted`.
    """
    between, later = asked.batch * 3 // 4, replace(asked, seed=asked.seed + OTHER_SEED)
    return [
        _anytime(name, asked.workers, between, compute_s, later, stragglers=law)
        if name in asked.anytime
        else Cell(name, asked.workers, between, stragglers=law, runtime="mpi", servers=1, seed=later.seed, **asked.job)
        for name in asked.protocols
        for law in ("none", SLEEPS)
    ]


def _anytime(name: str, workers: int, batch: int, compute_s: float, asked: Asked, **further) -> Cell:
    limit_s = float(f"{max(SHORTEST_S, LIMIT * compute_s):.3g}")
    windowed = "window_s" in protocols.find(name).__dataclass_fields__
    settings = (f"window_s={WINDOW * limit_s:.3g}",) if windowed else ()
    return Cell(
        name, workers, batch, limit_s, settings=settings, runtime="mpi", seed=asked.seed, **asked.job, **further
    )


def named(asked: Asked, compute_s: float) -> list[tuple[str, Cell, int]]:
    """All runs, (name, cell, times), for real.cells.interleaved: fit-... and check-..."""
    fits = [(f"fit-{number}", cell, asked.repeats) for number, cell in enumerate(fitted(asked, compute_s))]
    return fits + [(f"check-{number}", cell, CHECKS) for number, cell in enumerate(checked(asked, compute_s))]


def computing_s(asked: Asked, steps_s: tuple[float, float]) -> float:
    """Seconds that computing a batch takes, from steps of the pilots: what a sample takes more, times the samples."""
    whole_s, part_s = steps_s
    return max(0.0, whole_s - part_s) * asked.batch / (asked.batch - asked.batch // asked.partitions)
