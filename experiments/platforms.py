"""TensorFlow's servers, Horovod, TensorFlow's collectives and our texts over MPI on one model, compared as in seeds 000 and 001.

Every platform runs several times for its speed: steps/s in every 50 steps (seed 000), and over the second half, steps 100 to
200 (seed 001). It runs once for its accuracy, because evaluation takes time, and once for its correctness. From the same parameters,
over the same minibatches, synchronous platforms must end with the same parameters, up to rounding. All runs share one launch in
random order. Among them are the runs that profiles are fitted on: other batches, of 1 worker and, by MPI, 2.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from experiments import platforms_rows
from experiments.kit.agreement import Agreement, tolerance, unequal_updates
from experiments.kit.cells import ends, fitted, measure, simulated_runs
from experiments.platforms_rows import Row, every
from real.cells import Cell, interleaved, refusal
from real.recording import parameters
from sim.answers.outcome import of_trace
from sim.base.errors import RunFailed, WrongSetting
from sim.base.progress import each
from sim.model import workload as workloads
from sim.platform.cluster import Cluster
from sim.recording.traces import Trace

WARMUP, STEPS, REPEATS = 10, 200, 2
BATCH, TEST_SIZE, CHECKED_STEPS, FIT_STEPS = 32, 500, 20, 60
OPTIMISER = "sgd"  # its step is the same in all runtimes, up to rounding
REPLICATIONS = 20  # of the simulator
CONTROL = "control"


@dataclass(frozen=True)
class Platform:
    """One way to train.

    Args:
        runtime, settings: as options of real.run.
        synchronous: an update is made of one gradient from each worker, on the newest parameters.
        fitted: on what its prediction is, in WAYS; None if no calibration knows its costs.
    """

    name: str
    protocol: str
    runtime: str = "mpi"
    settings: tuple[str, ...] = ()
    synchronous: bool = True
    fitted: str | None = None

    @property
    def slug(self) -> str:
        """In the name of a file."""
        return "-".join(self.name.lower().translate(str.maketrans(",()", "   ")).split())


@dataclass(frozen=True)
class Fit:
    """Runs that a profile is fitted on, at half and twice the batch.

    Args:
        another: a model of another size too, for the cost of size.
        settings: of the protocol; all runs once with each.
    """

    protocol: str
    runtime: str = "mpi"
    workers: tuple[int, ...] = (1,)
    another: bool = False
    settings: tuple[tuple[str, ...], ...] = ((),)


RING, APART = ("algorithm=ring",), (("fused=true",), ("fused=false",))
PLATFORMS = (
    Platform("TensorFlow servers, asynchronous", "ps-async", "tensorflow", synchronous=False, fitted="ps-async"),
    Platform("TensorFlow servers, tokens", "ps-sync", "tensorflow", synchronous=False, fitted="ps-sync"),
    Platform("TensorFlow servers, barrier", "ps-sync", "tensorflow", ("barrier=true",), fitted="ps-sync"),
    Platform("TensorFlow collectives", "allreduce", "tensorflow", RING, fitted="collectives"),
    Platform("Horovod, after computing", "allreduce", "horovod", RING, fitted="horovod"),
    Platform("Horovod, while computing", "horovod", "horovod", RING, fitted="overlapping"),
    Platform("MPI, allreduce", "allreduce", fitted="mpi-allreduce"),
    Platform("MPI, master", "fmb", fitted="mpi"),
    Platform("MPI, servers", "ps-sync", settings=("barrier=true",), fitted="mpi"),
    Platform("MPI, hybrid (Parallax)", "hybrid", fitted="hybrid"),
)
MASTER = Fit("fmb", workers=(1, 2))  # also tells how busy cores slow each other
WAYS = {
    "mpi": (MASTER,),
    "ps-async": (MASTER, Fit("ps-async", "tensorflow", another=True)),
    "ps-sync": (MASTER, Fit("ps-sync", "tensorflow", another=True)),
    "mpi-allreduce": (MASTER, Fit("allreduce", workers=(1, 2), settings=APART)),
    "collectives": (MASTER, Fit("allreduce", "tensorflow", workers=(1, 2), settings=APART)),
    "horovod": (MASTER, Fit("allreduce", "horovod", workers=(1, 2), settings=APART)),
    "overlapping": (MASTER, Fit("horovod", "horovod", workers=(1, 2))),
    "hybrid": (MASTER, Fit("hybrid", workers=(1, 2))),
}


def cells_of(platform: Platform, steps: int, **job) -> dict[str, Cell]:
    """A platform's runs: for its speed, its accuracy and its correctness."""
    job |= {"protocol": platform.protocol, "runtime": platform.runtime, "settings": platform.settings}
    job |= {"batch": BATCH, "optimiser": OPTIMISER}
    return {
        "speed": Cell(**job, steps=steps, warmup=WARMUP),
        "accuracy": Cell(**job, steps=steps, warmup=0, test_size=TEST_SIZE, evaluate_every=every(steps)),
        "check": Cell(**job, steps=CHECKED_STEPS, warmup=0, keeps_parameters=True),
    }


def fitted_cells(fit: Fit, workload: str, data: str | None, seed: int) -> dict[str, Cell]:
    """The cells of a fit, by name."""
    known: dict = {"optimiser": OPTIMISER, "steps": FIT_STEPS, "seed": seed, "runtime": fit.runtime}
    jobs = [(batch, workload, data) for batch in (BATCH // 2, 2 * BATCH)]
    if fit.another:
        jobs.append((100, "toy_fc" if workload == "mlp" else "mlp", None))
    return {
        f"{'-'.join(['fit', fit.protocol, fit.runtime, *settings, model])}-{workers}w-{batch}": Cell(
            fit.protocol, workers, batch, workload=model, data=files, settings=settings, **known
        )
        for workers in fit.workers
        for batch, model, files in jobs
        for settings in fit.settings
    }


def available(steps: int, **job) -> dict[Platform, dict[str, Cell]]:
    """The platforms that this machine and this model can have, and their cells; of each other one a line on stderr.

    Raises:
        WrongSetting: there is none.
    """
    found, refused = {}, []
    for platform in PLATFORMS:
        cells = cells_of(platform, steps, **job)
        if why := refusal(cells["speed"]) or refusal(cells["check"]):
            refused.append(why)
            print(f"{platform.name}: left out ({why})", file=sys.stderr)
            continue
        if why := refusal(cells["accuracy"]):
            del cells["accuracy"]
            print(f"{platform.name}: accuracy left out ({why})", file=sys.stderr)
        found[platform] = cells
    if not found:
        raise refused[0]
    return found


def run(
    out: Path,
    seed: int = 0,
    *,
    workers: int = 2,
    workload: str = "lstm_classifier",
    data: str | None = None,
    steps: int = STEPS,
    resume: bool = False,
) -> None:
    """Run everything; print the tables.

    Args:
        data: what fits the workload if None.
        steps: measured, after warm-up.

    Raises:
        RunFailed: synchronous platforms disagree, or the check does not see a planted fault.
        WrongSetting: naming the option.
    """
    if workers < 1:
        raise WrongSetting("--workers", workers, "an integer from 1")
    if steps < 4:
        raise WrongSetting("--steps", steps, "an integer from 4")
    workloads.read(workload)
    chosen = available(steps, workers=workers, workload=workload, data=data, seed=seed)
    fits = {
        way: {name: cell for fit in WAYS[way] for name, cell in fitted_cells(fit, workload, data, seed).items()}
        for way in WAYS
        if any(platform.fitted == way for platform in chosen)
    }
    traces = measure(order(chosen, fits, seed), out / "traces", resume=resume)
    profiles = {
        way: fitted([f"{name}-0" for name in cells], out / "traces", out / f"{way}.toml", f"this machine, {way}")
        for way, cells in fits.items()
    }
    simulated = each(chosen.items(), "simulating", label=lambda item: item[0].name)
    rows = [row(platform, cells, traces, profiles.get(platform.fitted)) for platform, cells in simulated]
    agreement, excused = agreed(chosen, traces, out / "traces", workers)
    title = f"{workload}, {workers} workers, {BATCH} samples each; {steps} steps after {WARMUP}, {REPEATS} runs"
    platforms_rows.show(rows, agreement, excused, title, out)
    if failures := agreement.failures():
        raise RunFailed(f"FAIL: {'; '.join(failures)}")


def order(chosen: dict[Platform, dict[str, Cell]], fits: dict[str, dict[str, Cell]], seed: int):
    """All runs by name, (name, cell), those that are fitted among those that are compared."""
    runs = {name: (cell, 1) for cells in fits.values() for name, cell in cells.items()}
    for platform, cells in chosen.items():
        repeats = {"speed": REPEATS, "accuracy": 1, "check": 1}
        runs |= {f"{what}-{platform.slug}": (cell, repeats[what]) for what, cell in cells.items()}
    faulty = next(cells["check"] for platform, cells in chosen.items() if platform.synchronous)
    runs[CONTROL] = (replace(faulty, steps=CHECKED_STEPS + 1), 1)
    return interleaved([(name, cell, often) for name, (cell, often) in runs.items()], seed)


def row(platform: Platform, cells: dict[str, Cell], traces: dict[str, Trace], profile: Cluster | None) -> Row:
    """A platform's runs, and what the simulator says of them with a profile."""
    measured = [traces[f"speed-{platform.slug}-{repeat}"] for repeat in range(REPEATS)]
    learnt = []
    if "accuracy" in cells:
        learnt = traces[f"accuracy-{platform.slug}-0"].header.evaluations
    found = Row(platform.name, step_s(measured), [(step + 1, *said) for step, *said in learnt])
    if profile is None:
        return found
    predicted_s = step_s(simulated_runs(cells["speed"], profile, REPLICATIONS))
    return replace(found, predicted_s=predicted_s, ends=tuple(ends(cells["speed"], profile).values()))


def step_s(traces: list[Trace]) -> np.ndarray:
    """Seconds of each step after warm-up, shape (runs, steps)."""
    return np.concatenate([of_trace(trace).step_s for trace in traces])


def agreed(
    chosen: dict[Platform, dict[str, Cell]], traces: dict[str, Trace], folder: Path, workers: int
) -> tuple[Agreement, dict[str, str]]:
    """The final parameters of the checked runs; and the reason of each platform that need not agree."""
    kept = {platform.name: parameters.read(folder / f"check-{platform.slug}-0.npz") for platform in chosen}
    excused = {p.name: why for p in chosen if (why := excuse(p, traces[f"check-{p.slug}-0"]))}
    synchronous = {name: values for name, values in kept.items() if name not in excused}
    others = {name: values for name, values in kept.items() if name in excused}
    control = parameters.read(folder / f"{CONTROL}-0.npz")
    return Agreement(synchronous, others, control, tolerance(workers, CHECKED_STEPS)), excused


def excuse(platform: Platform, trace: Trace) -> str | None:
    """Why a platform need not end as others do."""
    if trace.header.updates_per_step > 1:
        return "asynchronous"
    # Our texts ask whose gradients they add.
    unequal = unequal_updates(trace) if platform.runtime == "tensorflow" else 0
    if platform.synchronous and not unequal:
        return None
    return f"{unequal} of {CHECKED_STEPS} updates were not made of one gradient from each worker"
