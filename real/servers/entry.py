"""TensorFlow's own parameter servers, as a runtime."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from real.runtime import Joined, Runtime
from sim.base.errors import WrongSetting
from sim.texts import AsynchronousServers, BackupWorkers, SynchronousServers


class ByServers(Runtime):
    """tf.compat.v1.train.Server and SyncReplicasOptimizer."""

    world, about = "tensorflow", "TensorFlow's own servers or collectives"

    def has(self, protocol):
        return protocol.text_class in (AsynchronousServers, SynchronousServers, BackupWorkers)

    def is_home_of(self, protocol):
        return self.has(protocol) and not getattr(protocol, "barrier", False)  # the textbook's barrier is our text

    def check(self, scenario):
        if scenario.protocol.text_class is BackupWorkers and scenario.protocol.barrier:
            allowed = f"false with --runtime {self.world}: backup workers need tokens that nobody waits for"
            raise WrongSetting("--set barrier", True, allowed)

    def ranks(self, scenarios):
        return sum(most(scenarios))

    def mended(self, trace):
        from real.servers.transcript import renumbered

        return renumbered(trace)

    def joined(self, comm, jobs):
        runner = partial(_runner, comm, jobs)
        return Joined(runner, partial(_probe, comm, jobs, runner), ends=False)


def _runner(comm, jobs, training, progress):
    """That of a process, a server or a worker, which keeps its task in all runs of the launch."""
    from real.servers.task_runner import TaskRunner
    from real.training.trainee import Workshop

    servers, _ = most([job.scenario for job in jobs])  # the other ranks may work, needed or not
    return TaskRunner(comm, servers, Workshop(training, 0, max(0, comm.rank - servers)), progress)


def _probe(comm, jobs, runner) -> dict:
    """Probe the cost of a further server, if the launch has several."""
    from real.servers import probe as further_server

    if most([job.scenario for job in jobs])[0] < 2:
        return {}
    made = runner(replace(jobs[0].training, data="synthetic"), False)
    ways = sorted({job.scenario.protocol.way for job in jobs})
    return {"further_server": {way: further_server.measure(made, comm, way) for way in ways}}


def most(scenarios) -> tuple[int, int]:
    """The numbers of servers and workers that these runs need at most."""
    return max((s.servers for s in scenarios), default=0), max((s.workers for s in scenarios), default=0)
