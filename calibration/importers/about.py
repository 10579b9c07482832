"""Facts that somebody else's log does not contain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.platform.cluster import Link

LINK = "--link"


@dataclass(frozen=True)
class About:
    """A log's facts as the user gives them.

    Args:
        workload: the trained model: a name, or a file.
        stragglers: the law of sleeps that were induced.
        protocol: that trained it, with its settings; None where the log's format names it.
        batch: samples of a worker and step; the workload's if None.
        link: between the hosts; None if nobody knows.
    """

    workload: str = "cifar10"
    stragglers: str = "none"
    protocol: str | None = None
    settings: tuple[str, ...] = ()
    batch: int | None = None
    link: Link | None = None
