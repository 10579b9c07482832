"""What an engine is: a library that computes gradients and updates; ranks hand it NumPy arrays and get NumPy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from real.training.gradients import Gradients
    from real.training.optimiser import Optimiser


class Engine(Protocol):
    """An entry of the registry; what it imports, it imports when it makes something.

    Attributes:
        package: what is imported.
        memory_bytes: of a rank that has loaded it.
    """

    package: str
    memory_bytes: float

    def gradients(self, kind: str, *settings: Any) -> Gradients:
        """What computes gradients.

        Args:
            kind: whole, layered (variable by variable) or rows (of sparse variables).
            settings: workload, threads, device, and which GPU.
        """

    def optimiser(self, threads: int, *rates: Any) -> Optimiser:
        """What updates parameters, as real.training.optimiser.Rates takes its rates."""

    def gpus(self) -> list[str]:
        """What the GPUs of this host are called, that this process sees."""

    def version(self) -> str:
        """The version of its package."""
