"""Today's protocols without a master as texts of the language, with settings that mean the same."""

from __future__ import annotations

from sim.language.text import Text
from sim.protocols.allreduce import Allreduce
from sim.protocols.horovod import Horovod
from sim.texts import TEXTS


def text_of(scenario) -> Text | None:
    """The text of a job's protocol by which all workers sum; None if it is of another kind.

    Without a cycle time a background thread sums gradients as soon as all ranks have them: PyTorch's DDP.
    """
    of = scenario.protocol
    if not isinstance(of, Allreduce | Horovod):
        return None
    algorithm = scenario.algorithm(of.algorithm)
    if isinstance(of, Allreduce):
        return TEXTS["allreduce"](algorithm, of.fused, of.sparse_as_dense)
    if not of.cycle_s:
        return TEXTS["ddp"](of.fusion_bytes / 2**20, algorithm=algorithm)
    return TEXTS["horovod"](algorithm, of.fusion_bytes, of.cycle_s, of.order, of.by_name)
