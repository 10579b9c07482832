"""What a log of others does not say of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sim.base.errors import WrongSetting

if TYPE_CHECKING:
    from sim.platform.cluster import Link

LINK = "--link"
BYTES_OF_GBIT = 125e6


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


def link(text: str) -> Link:
    """The link that "25 Gbit/s, 20 us" describes: bandwidth, and latency if it is given.

    Raises:
        WrongSetting: it describes none.
    """
    from sim.base.files import validated
    from sim.platform.cluster import Link

    bandwidth, comma, latency = (part.strip() for part in text.partition(","))
    if not bandwidth or (comma and not latency):
        raise WrongSetting(LINK, text, 'bandwidth and latency, as "25 Gbit/s, 20 us"')
    table = {"bandwidth_bytes_per_s": bandwidth} | ({"latency_s": latency} if latency else {})
    return validated(Link, table, LINK)


def told(link: Link) -> str:
    """The link in words."""
    return f"{link.bandwidth_bytes_per_s / BYTES_OF_GBIT:.4g} Gbit/s, {link.latency_s * 1e6:.4g} us"
