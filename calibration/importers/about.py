"""Facts that somebody else's log does not contain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from calibration.importers.table_names import AS_NAMED, Names
from sim.base.errors import WrongSetting
from sim.model.sizes import ITEM_BYTES

if TYPE_CHECKING:
    from sim.model.workload import Workload
    from sim.platform.cluster import Link

LINK, DEFAULT_PROTOCOL = "--link", "allreduce"


@dataclass(frozen=True)
class About:
    """A log's facts as the user gives them.

    Args:
        workload: the trained model, its name, or a file.
        stragglers: the law of sleeps that were induced.
        protocol: that trained it, with its settings; None where the log's format names it.
        batch: samples of a worker and step; the workload's if None.
        link: between the hosts; None if nobody knows.
        tested: what measured the link; empty if the user gave it, or the log itself tells it.
        ranks: of the run, where the log does not say; None if it does.
        items: samples or tokens that a log's rate counts in a step; None if the batch tells them.
        item_bytes: of a number of the gradients, as ranks sum them.
        names: of a table's columns, and the unit of its times.
    """

    workload: str | Workload = "cifar10"
    stragglers: str = "none"
    protocol: str | None = None
    settings: tuple[str, ...] = ()
    batch: int | None = None
    link: Link | None = None
    tested: str = ""
    ranks: int | None = None
    items: int | None = None
    item_bytes: float = ITEM_BYTES
    names: Names = AS_NAMED

    def batch_of(self, trained: Workload) -> int:
        """Samples of a rank and step: as given, or the workload's, if it says its batch.

        Raises:
            WrongSetting: neither says it.
        """
        if self.batch is None and "batch" not in trained.model_fields_set and not trained.step:
            raise WrongSetting(
                "--batch", None, f"samples per rank and step: neither the log nor {trained.name} says them"
            )
        return trained.batch if self.batch is None else self.batch

    def batch_note(self, trained: Workload) -> list[str]:
        """A line where the batch is the workload's, which need not be that of the run."""
        said = f"batch {trained.batch} is that of {trained.name}: the log does not say it, --batch does"
        return [said] if self.batch is None else []
