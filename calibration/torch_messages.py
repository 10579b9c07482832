"""The messages of a run that torch.profiler recorded: what its allreduces sum, their link, and what else the library moves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calibration.importers.torch_events import SOURCE
from calibration.importers.torch_profiler import ALLREDUCE, Call, Ranked
from calibration.nccl_fits import ring_link
from sim.base.errors import WrongSetting
from sim.model.sizes import ITEM_BYTES
from sim.model.workload import Workload
from sim.platform.cluster import Link

if TYPE_CHECKING:
    from calibration.torch_traces import Recorded

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


def link_of(recorded: Sequence[Recorded]) -> Link | None:
    """The link with which a ring takes as long as the library's allreduces of all runs; None where there are none.

    A call lasts at each rank until all have come; the shortest at any rank is what it takes.

    Raises:
        WrongSetting: runs of several numbers of ranks.
    """
    several = [one for one in recorded if one.run.world > 1]
    worlds = sorted({one.run.world for one in several})
    if len(worlds) > 1:
        allowed = "those of one number of ranks; or a link, as --link or nccl-tests say it"
        raise WrongSetting(f"{SOURCE}: ranks", " and ".join(map(str, worlds)), allowed)
    sums = [each for one in several for each in _sums_of(one)]
    return ring_link(worlds[0], np.array(sums).T, max(one.run.further for one in several)) if sums else None


def _sums_of(one: Recorded) -> Iterator[tuple[int, float, float]]:
    """Of each allreduce of a run 1 call, its bytes and seconds: NCCL makes one after another. Those of a step sum the gradients."""
    run, (moved, item_bytes) = one.run, one.gradients
    whole = one.trained.parameters * item_bytes
    for at in range(len(run.ranks[0].steps)):
        of_ranks = [[call for call in of_rank.calls[at] if run.sums(call)] for of_rank in run.ranks]
        if len({len(calls) for calls in of_ranks}) > 1:
            of_ranks = of_ranks[:1]
        for together in zip(*of_ranks, strict=True):
            said = together[0].bytes
            share = said / moved if said is not None and moved else 1 / len(of_ranks[0])
            yield 1, whole * share, min(call.seconds for call in together)
