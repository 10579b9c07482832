"""The messages of a run that torch.profiler recorded: what its allreduces sum, their link, and what else the library moves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from calibration.importers.torch_events import SOURCE
from calibration.importers.torch_profiler import ALLREDUCE, Call, Ranked
from calibration.nccl_fits import ring_link
from sim.base.errors import WrongSetting
from sim.model.sizes import ITEM_BYTES
from sim.model.workload import Workload
from sim.platform.cluster import Link

OTHERS = 0.05  # share of a step's numbers that may be no gradients: metrics, buffers


class Run(NamedTuple):
    """The ranks of one run, in order, and how many there were in all.

    Args:
        further: messages that a call waits for beside those of the allreduce.
    """

    ranks: list[Ranked]
    world: int
    further: int = 0

    def sums(self, call: Call) -> bool:
        """Whether a call is an allreduce among all ranks, as data-parallel training makes."""
        return call.collective == ALLREDUCE and call.group in (0, self.world)

    def others_s(self) -> dict[str, float]:
        """Seconds a step, of the mean rank, of the library's calls that are none of these."""
        found = defaultdict[str, float](float)
        for call in self.calls():
            if not self.sums(call):
                of = f" among {call.group} ranks" if call.collective == ALLREDUCE else ""
                found[call.collective + of] += call.seconds / sum(len(one.steps) for one in self.ranks)
        return dict(found)

    def calls(self) -> list[Call]:
        """All calls of all ranks."""
        return [call for one in self.ranks for of_step in one.calls for call in of_step]


class Summed(NamedTuple):
    """The gradients of a step as they are summed.

    Args:
        bytes: of a step; None if the traces do not say.
        item_bytes: of a number.
    """

    bytes: float | None
    item_bytes: float


def summed(run: Run, trained: Workload) -> Summed:
    """What a step's allreduces sum.

    Raises:
        WrongSetting: collectives of another kind alone, or numbers of another workload.
    """
    calls = [call for call in run.calls() if run.sums(call)]
    if run.world > 1 and not calls and (others := run.others_s()):
        given = ", ".join(f"{name} {seconds * 1e3:.4g} ms a step" for name, seconds in others.items())
        allowed = "data-parallel training, which allreduces gradients among all ranks"
        raise WrongSetting(f"{SOURCE}: collectives", given, allowed)
    sizes = [(call.bytes, call.item_bytes) for call in calls if call.bytes and call.item_bytes]
    if not calls or len(sizes) < len(calls):
        return Summed(None, trained.gradient_bytes or ITEM_BYTES)
    steps = sum(len(one.steps) for one in run.ranks)
    moved, items = sum(size for size, _ in sizes) / steps, sum(size / each for size, each in sizes) / steps
    for found in (items, moved / ITEM_BYTES):  # a model in half precision may be given as one of half the parameters
        if abs(found - trained.parameters) <= OTHERS * trained.parameters:
            _check_format(trained, moved / found)
            return Summed(moved, moved / found)
    allowed = f"a workload of {items:,.0f} parameters, which a step of the trace reduces"
    raise WrongSetting("--workload", f"{trained.name}, of {trained.parameters:,}", allowed)


def _check_format(trained: Workload, item_bytes: float) -> None:
    """Refuse gradients in another format than the workload says.

    Raises:
        WrongSetting: the traces sum another one.
    """
    if trained.gradient_bytes and abs(item_bytes / trained.gradient_bytes - 1) > OTHERS:
        allowed = f"the format that the traces sum, of {item_bytes:.3g} bytes a number; or no `gradients`"
        raise WrongSetting(f"--workload: gradients of {trained.name}", trained.gradients, allowed)


def link_of(runs: Sequence[Run], trained: Workload, gradients: Sequence[Summed]) -> Link | None:
    """The link with which a ring takes as long as the library's allreduces of all runs; None where there are none.

    A call lasts at each rank until all have come; the shortest at any rank is what it takes.

    Raises:
        WrongSetting: runs of several numbers of ranks.
    """
    worlds = sorted({run.world for run in runs if run.world > 1})
    if len(worlds) > 1:
        allowed = "those of one number of ranks; or a link, as --link or nccl-tests say it"
        raise WrongSetting(f"{SOURCE}: ranks", " and ".join(map(str, worlds)), allowed)
    of = zip(runs, gradients, strict=True)
    sums = [one for run, summed_in in of if run.world > 1 for one in _sums_of(run, trained, summed_in)]
    return ring_link(worlds[0], np.array(sums).T, max(run.further for run in runs)) if sums else None


def _sums_of(run: Run, trained: Workload, gradients: Summed) -> Iterator[tuple[int, float, float]]:
    """Of each allreduce of a run 1 call, its bytes and seconds; NCCL makes one after another."""
    for at in range(len(run.ranks[0].steps)):
        of_ranks = [[call for call in one.calls[at] if run.sums(call)] for one in run.ranks]
        if len({len(calls) for calls in of_ranks}) > 1:
            of_ranks = of_ranks[:1]
        for together in zip(*of_ranks, strict=True):
            yield 1, _bytes(together[0], trained, gradients, len(of_ranks[0])), min(call.seconds for call in together)


def _bytes(call: Call, trained: Workload, gradients: Summed, calls: int) -> float:
    """The bytes of a call; those of all calls of a step are the workload's gradients."""
    whole = trained.parameters * gradients.item_bytes
    return whole / calls if call.bytes is None or not gradients.bytes else call.bytes * whole / gradients.bytes
