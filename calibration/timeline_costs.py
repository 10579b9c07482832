"""The costs of Horovod's reductions, as its timeline has them: links, copies, and what rank 0 computes between."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration import algorithms
from calibration.estimators import lines
from calibration.importers.horovod_timeline import Reduction
from sim.base.errors import WrongSetting
from sim.platform.cluster import Link


@dataclass(frozen=True)
class Learned:
    """The costs of reductions.

    Args:
        links: by algorithm. A ring takes 2 (n - 1) (L + bytes / (n G)) seconds (Patarasuk and Yuan, 2009). Rank 0 sees log2(n) L more,
            because it first knows which tensors are summed, and informs the others along a tree. The links contain the cost of adding
            up. One number of ranks does not determine the algorithm: each explains the same line by another link.
        copy_s: seconds for each byte of one copy into the fusion buffer or out of it.
    """

    links: dict[str, Link]
    copy_s: float


def learned(reductions: list[Reduction], ranks: int, each: int = 1) -> Learned:
    """The costs of reductions among `ranks` ranks, `each` on a host, as fitted.

    Raises:
        WrongSetting: fewer than two ranks, or nothing that moved.
    """
    if ranks < 2:
        raise WrongSetting("--ranks", ranks or None, "2 or more: one rank has nothing to sum")
    sizes = np.array([r.bytes for r in reductions], float)
    moved_s = np.array([r.moved_s for r in reductions])
    kept = moved_s > 0
    if not kept.any():
        raise WrongSetting("timeline", "reductions without bytes that move", "one of several ranks")
    base_s, slope_s = lines.line(sizes[kept], moved_s[kept])
    told, copied = int(np.log2(ranks)), [(r.copied_s / 2, r.bytes) for r in reductions if r.copied_s > 0]
    links = {}
    for name in algorithms.names(ranks // each, each):
        of = algorithms.travel(name, ranks // each, each)
        rounds, share = (of.rounds, of.between) if ranks > each else (of.inner, of.within)
        bandwidth = share / slope_s if slope_s else float("inf")
        links[name] = Link(latency_s=base_s / (rounds + told), overhead_s=0, bandwidth_bytes_per_s=bandwidth)
    return Learned(links, float(np.median([seconds / size for seconds, size in copied])) if copied else 0.0)


def item_bytes(reductions: list[Reduction]) -> float:
    """Bytes of a number, as it is summed: 2 where gradients are compressed (hvd.Compression.fp16)."""
    return sum(one.bytes for one in reductions) / sum(one.items for one in reductions)


def computed_s(reductions: list[Reduction]) -> np.ndarray:
    """Seconds of each step from the last reduction of the one before until rank 0 had all gradients, shape (steps,)."""
    had: dict[int, float] = {}
    for one in reductions:
        had[one.step] = max(one.had_s, had.get(one.step, 0.0))
    return np.array([had[step] - before_s for step, before_s, _ in _ends_s(reductions)])


def step_s(reductions: list[Reduction]) -> np.ndarray:
    """Seconds of each step, from end to end, shape (steps,)."""
    return np.array([ended_s - before_s for _, before_s, ended_s in _ends_s(reductions)])


def _ends_s(reductions: list[Reduction]) -> list[tuple[int, float, float]]:
    """Steps of which the one before has reductions too, and when that one and they ended."""
    ended: dict[int, float] = {}
    for one in reductions:
        ended[one.step] = max(one.ended_s, ended.get(one.step, 0.0))
    return [(step, ended[step - 1], ended[step]) for step in sorted(ended) if step - 1 in ended]
