"""Engines are libraries that compute gradients and updates; ranks hand them NumPy arrays and get NumPy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from real.training.gradients import Gradients
    from real.training.optimiser import Optimiser
    from sim.model.workload import Workload


class Engine(Protocol):
    """An entry of the registry; it imports its library when it makes something.

    Attributes:
        package: the imported package.
        memory_bytes: of a rank that has loaded it.
    """

    package: str
    memory_bytes: float

    def check(self, kind: str, workload: Workload, device: str) -> None:
        """Refuse what it cannot compute, before ranks are started; whether the host has a GPU they find out.

        Raises:
            WrongSetting: the workload has no model, or this engine not these gradients of it, or not on such a device.
        """

    def gradients(self, kind: str, *settings: Any) -> Gradients:
        """The object that computes gradients.

        Args:
            kind: whole, layered (variable by variable) or rows (of sparse variables).
            settings: workload, threads, device, and which GPU.
        """

    def optimiser(self, threads: int, *rates: Any) -> Optimiser:
        """The object that updates parameters, with rates as of real.training.optimiser.Rates."""

    def gpus(self) -> list[str]:
        """The names of this host's GPUs that this process sees."""

    def version(self) -> str:
        """The version of its package."""
