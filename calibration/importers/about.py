"""What a log of others does not say of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.platform.cluster import Link

LINK = "--link"


@dataclass(frozen=True)
class About:
    """What the user says of a log.

    Args:
        workload: what was trained: a name, or a file.
        stragglers: the law of sleeps that were induced.
        protocol: by which it was trained, with its settings; None where the log's format says it.
        batch: samples of a worker and step; the workload's if None.
        link: between the hosts; None if nobody knows.
    """

    workload: str = "cifar10"
    stragglers: str = "none"
    protocol: str | None = None
    settings: tuple[str, ...] = ()
    batch: int | None = None
    link: Link | None = None
