"""The memory that a worker takes on its GPU: parameters, gradients, the optimiser's state, and activations.

All numbers are float32, as the gradients that are simulated. In mixed precision a copy of the parameters in 16 bits comes on top
(Micikevicius et al., "Mixed precision training", ICLR 2018). Activations follow from the memory that a process was seen to take, in
proportion to the batch. A library's own needs (contexts, workspace, fragments) are in what was measured, and in nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sim.base.ranges import Optimiser
from sim.model.sizes import ITEM_BYTES

if TYPE_CHECKING:
    from sim.job.scenario import Scenario
    from sim.model.workload import Variable, Workload
    from sim.platform.gpu import Gpu

HALF_BYTES = 2  # of a number in fp16 or bf16
COPIES: dict[Optimiser, int] = {
    "sgd": 0,
    "momentum": 1,
    "rmsprop": 1,
    "adagrad": 1,
    "lion": 1,
    "adam": 2,
    "adamw": 2,
    "lamb": 2,
}

DOES_NOT_FIT = "does not fit"


class Held(NamedTuple):
    """Bytes on a GPU, by what they are.

    Args:
        activations: None if nothing says how many.
        measured: all together, where a process was seen to take less than these; None if not.
    """

    parameters: float
    gradients: float
    state: float
    activations: float | None
    measured: float | None = None

    @property
    def total(self) -> float:
        """All of them, as far as they are known."""
        parts = self.parameters + self.gradients + self.state + (self.activations or 0.0)
        return parts if self.measured is None else self.measured


class Taken(NamedTuple):
    """A kind of GPU of a job, and its workers' memory there.

    Args:
        workers: that share one, where the most do.
        held: of one worker.
    """

    gpu: Gpu
    workers: int
    held: Held

    @property
    def bytes(self) -> float:
        """Of all workers on one."""
        return self.workers * self.held.total

    @property
    def share(self) -> float:
        """Of the GPU's memory; above 1 it does not fit."""
        return self.bytes / self.gpu.memory_bytes


def held(workload: Workload, batch: int, elsewhere: int = 0, absent: int = 0, still: int = 0) -> Held:
    """The bytes of one worker.

    Args:
        batch: its samples a step.
        elsewhere: numbers that others apply the optimiser to: servers, or a master.
        absent: numbers of sparse variables on servers that it does not read in a step.
        still: numbers of sparse variables, these too, that have no gradient in a step.
    """
    alone = _parts(workload)
    state = alone.state - ITEM_BYTES * COPIES[workload.optimiser] * elsewhere
    per_number = alone.parameters / workload.numbers
    found = Held(
        alone.parameters - per_number * absent,
        alone.gradients - (workload.gradient_bytes or ITEM_BYTES) * still,
        state,
        None,
    )
    if workload.memory_bytes is None:
        return found
    left, times = workload.memory_bytes - alone.total, batch / workload.batch
    if left < 0:  # in formats of fewer bits, perhaps: at most in proportion to the batch
        return found._replace(measured=workload.memory_bytes * max(1.0, times))
    return found._replace(activations=left * times)


def _parts(workload: Workload) -> Held:
    """The bytes of a process alone, without activations."""
    numbers, trained = workload.numbers, workload.parameters
    copy = HALF_BYTES if workload.precision in ("fp16", "bf16") else 0
    state = ITEM_BYTES * COPIES[workload.optimiser] * trained
    return Held((ITEM_BYTES + copy) * numbers, (workload.gradient_bytes or ITEM_BYTES) * trained, state, None)


def of_job(scenario: Scenario, batch: int | None = None) -> Taken | None:
    """The kind of GPU that is fullest; None if no worker has a GPU whose memory is known.

    Args:
        batch: in place of the scenario's.
    """
    if not scenario.workers_of_gpus:
        return None
    batch = scenario.batch if batch is None else batch
    if not scenario.workers:
        one = held(scenario.workload, batch)
    else:
        absent, still = (_still(several, batch) for several in (scenario.served, scenario.gathered_variables))
        one = held(scenario.workload, batch, scenario.served_items, absent, absent + still)
    return max((Taken(gpu, workers, one) for gpu, workers in scenario.workers_of_gpus), key=lambda taken: taken.share)


def _still(variables: tuple[Variable, ...], batch: int) -> int:
    """Numbers of sparse variables that a minibatch of so many samples does not touch."""
    return sum(one.size - one.load(batch).numbers for one in variables if one.rows)


def parts(workload: Workload, one: Held) -> str:
    """What a worker holds, as text."""
    if one.measured is not None:
        return f"a process was seen to take {gigabytes(one.measured)}"
    said = {"parameters": one.parameters, "gradients": one.gradients, workload.optimiser: one.state}
    if one.activations is not None:
        said["activations"] = one.activations
    return ", ".join(f"{name} {gigabytes(size)}" for name, size in said.items() if size)


def note(scenario: Scenario) -> list[str]:
    """A line on the fullest GPU's memory; none if it is not known."""
    taken = of_job(scenario)
    if taken is None:
        return []
    name, has = taken.gpu.name, gigabytes(taken.gpu.memory_bytes)
    takes = f"{taken.workers} workers on a GPU take" if taken.workers > 1 else "a worker takes"
    each = " each" if taken.workers > 1 else ""
    said = f"{takes} {gigabytes(taken.bytes)} ({parts(scenario.workload, taken.held)}{each})"
    line = f"{DOES_NOT_FIT}: {said}, and {name} has {has}" if taken.share > 1 else f"{said} of the {has} of {name}"
    return [line + uncounted(scenario.workload)]


def uncounted(workload: Workload) -> str:
    """What is not in it, as the end of a line."""
    return "" if workload.memory_bytes else "; activations are not counted: say memory_bytes"


def gigabytes(size: float) -> str:
    """Bytes as text, with three digits."""
    return f"{size / 1e9:.3g} GB"
