"""Synchronous parameter servers with backup workers."""

from dataclasses import dataclass

from sim.texts.ps_sync import SynchronousServers


@dataclass(frozen=True)
class BackupWorkers(SynchronousServers):
    """An update needs fewer gradients than there are workers; late ones are dropped.

    Chen, Pan, Monga, Bengio, Jozefowicz, "Revisiting Distributed Synchronous SGD", 2016 (arXiv 1604.00981), algorithm 4; in TensorFlow,
    replicas_to_aggregate below total_num_replicas.
    """

    backup: int = 1  # workers beyond those whose gradients an update needs

    name = "ps-backup"
