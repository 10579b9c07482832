"""TensorFlow's own collectives for real: MultiWorkerMirroredStrategy with RING, in a training loop of ours."""

from __future__ import annotations

import json
import os
import socket

from real.servers.server import tie_to_loopback
from real.servers.tasks import LOOPBACK, free_port
from real.training.tensorflow_setup import tensorflow
from real.training.trainee import Training
from sim.job.scenario import Scenario


class Collectives:
    """TensorFlow's collectives on this rank.

    A process has one server for its lifetime, which must be there before TensorFlow does anything; a strategy is made
    for each run, of its ranks.

    Args:
        comm: all ranks of the launch; None for a process alone.
    """

    name = "tensorflow"

    def __init__(self, comm):
        self.versions: dict[str, str] = {}  # TensorFlow's own is in every trace
        mine = (socket.gethostname(), free_port())
        tasks = comm.allgather(mine) if comm is not None else [mine]
        self._alone = len({host for host, _ in tasks}) == 1
        self._addresses = [f"{LOOPBACK if self._alone else host}:{port}" for host, port in tasks]
        self._rank = comm.rank if comm is not None else 0
        self._strategy = None

    def begin(self, comm, scenario: Scenario, training: Training) -> None:
        """A strategy over the ranks of `comm`, which leave together.

        A new strategy throws away earlier requests to its process. If a rank sums before another has made its strategy, it gets
        "Delete called on non-empty BufRendezvous", or waits for ever.
        """
        ranks = comm.size if comm is not None else 1
        cluster = {"worker": self._addresses[:ranks]}
        os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": self._rank}})
        tensorflow(training.threads, training.device, first=self._make)
        if self._alone:
            tie_to_loopback(int(self._addresses[self._rank].rpartition(":")[2]))
        if comm is not None:
            comm.Barrier()

    def _make(self, tf) -> None:
        ring = tf.distribute.experimental.CollectiveCommunication.RING
        self._options = tf.distribute.experimental.CommunicationOptions(implementation=ring)
        self._strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=self._options)
        self._tf = tf

    def sums(self, tensors: list, fused: bool) -> list:
        """One call for all tensors, or one for each."""
        return self._strategy.run(self._sums_in_replica, args=(tensors, fused))

    def _sums_in_replica(self, tensors: list, fused: bool) -> list:
        tf, replica = self._tf, self._tf.distribute.get_replica_context()
        here = [tf.identity(tensor) for tensor in tensors]  # on the replica's device, of which all_reduce asks
        add = tf.distribute.ReduceOp.SUM
        if fused:
            return replica.all_reduce(add, here, options=self._options)
        return [replica.all_reduce(add, tensor, options=self._options) for tensor in here]

    def end(self) -> None:
        """Nothing: the server stays, and takes no time."""
