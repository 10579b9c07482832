"""Protocols in the language, a file each. TEXTS has them by name; those of CHOSEN follow from jobs, or from settings of others."""

from __future__ import annotations

from sim.texts.allreduce import Allreduce
from sim.texts.alone import Alone
from sim.texts.amb import AnytimeMinibatch
from sim.texts.amb_dg import AnytimeDelayedGradients
from sim.texts.d_psgd import DecentralisedSgd
from sim.texts.ddp import Ddp
from sim.texts.fmb import FixedMinibatch
from sim.texts.fsdp import Fsdp
from sim.texts.gradient_coding import GradientCoding
from sim.texts.hierarchical import Hierarchical
from sim.texts.horovod import Horovod
from sim.texts.hybrid import Hybrid
from sim.texts.kbatch_async import KBatchAsynchronous
from sim.texts.local_sgd import LocalSgd
from sim.texts.pipeline import Pipeline
from sim.texts.ps_async import AsynchronousServers
from sim.texts.ps_backup import BackupWorkers
from sim.texts.ps_barrier import BarrierServers
from sim.texts.ps_layers import LayerwiseServers
from sim.texts.ps_rows import RowServers
from sim.texts.ps_ssp import StaleSynchronousServers
from sim.texts.ps_sync import SynchronousServers

TEXTS = {
    one.name: one
    for one in (
        AnytimeMinibatch, FixedMinibatch, KBatchAsynchronous, AnytimeDelayedGradients, AsynchronousServers, SynchronousServers,
        BackupWorkers, StaleSynchronousServers, LayerwiseServers, Allreduce, Ddp, Horovod, Hybrid, Fsdp, Hierarchical, LocalSgd,
        DecentralisedSgd, GradientCoding, Pipeline, Alone, BarrierServers, RowServers,
    )
}  # fmt: skip
CHOSEN = ("alone", "ps-barrier", "ps-rows")
