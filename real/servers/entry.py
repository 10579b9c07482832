"""TensorFlow's own parameter servers, as a runtime. Its processes can be started by hand, without MPI."""

from __future__ import annotations

from real.runtime import Joined, Runtime
from sim.base.errors import WrongSetting
from sim.texts import AsynchronousServers, BackupWorkers, SynchronousServers


class ByServers(Runtime):
    """tf.compat.v1.train.Server and SyncReplicasOptimizer."""

    world, about, by_hand = "tensorflow", "TensorFlow's own servers or collectives", True

    def has(self, protocol):
        return protocol.text_class in (AsynchronousServers, SynchronousServers, BackupWorkers)

    def is_home_of(self, protocol):
        return self.has(protocol) and not getattr(protocol, "barrier", False)  # the textbook's barrier is our text

    def check(self, scenario):
        if scenario.protocol.text_class is BackupWorkers and scenario.protocol.barrier:
            allowed = f"false with --runtime {self.world}: backup workers need tokens that nobody waits for"
            raise WrongSetting("--set barrier", True, allowed)

    def ranks(self, scenarios):
        return sum(tasks_of(scenarios))

    def start(self, given, argv, scenario, hosts):
        """Start the processes without MPI, where all are on this machine."""
        from real.launching import mpirun as launch
        from real.options import training
        from real.recording import growing_trace as parts
        from real.servers import on_loopback as local

        if given.trace:
            how = training(given).recorded(scenario.workload)
            parts.begin(parts.folder(given.trace), scenario.header(self.world, training=how, complete=False))
        if hosts or launch.remote(scenario.cluster if given.cluster else None):
            super().start(given, argv, scenario, hosts)
        else:
            local.run(scenario, argv)

    def mended(self, trace):
        from real.servers.transcript import renumbered

        return renumbered(trace)

    def take_part(self, given, work):
        from real.servers import start

        return start.take_part(given, work)

    def joined(self, comm, jobs, timeline=None):
        return JoinedServers(comm, jobs)


class JoinedServers(Joined):
    """One process, a server or a worker, which keeps its task in all runs of the launch."""

    ends = False

    def __init__(self, comm, jobs):
        self._comm, self._jobs = comm, jobs

    def runner(self, training, progress=True):
        from real.servers.start import tasks_of as of_launch
        from real.servers.task_runner import TaskRunner
        from real.training.trainee import Workshop

        servers, _ = tasks_of([job.scenario for job in self._jobs])  # the other ranks may work, needed or not
        tasks = of_launch(self._comm, servers, self._comm.size - servers)
        return TaskRunner(tasks, Workshop(training, 0), progress)

    def probe(self):
        """Probe the cost of a further server, if the launch has several."""
        from dataclasses import replace

        from real.servers import probe as further_server

        if tasks_of([job.scenario for job in self._jobs])[0] < 2:
            return {}
        runner = self.runner(replace(self._jobs[0].training, data="synthetic"), progress=False)
        ways = sorted({job.scenario.protocol.way for job in self._jobs})
        return {"further_server": {way: further_server.measure(runner, self._comm, way) for way in ways}}


def tasks_of(scenarios) -> tuple[int, int]:
    """The numbers of servers and workers that these runs need at most."""
    return max((s.servers for s in scenarios), default=0), max((s.workers for s in scenarios), default=0)
