"""Runs under MPI: what the ranks of one launch do together, run after run."""

from __future__ import annotations

import os
import platform
import sys
import time
from dataclasses import replace
from pathlib import Path
from zlib import crc32

from real.language.rank import TextRank, every
from real.launching.clock import Clock, common_clock
from real.launching.polling import barrier
from real.launching.ranks import machines
from real.recording.growing_trace import begin
from real.recording.parameters import joined, write
from real.recording.recorder import Recorder
from real.training.trainee import Trainee, Training, Workshop
from sim.base.progress import duration
from sim.job.scenario import Scenario
from sim.recording.traces import Activity, Header, Trace

PROGRESS_S = 2.0


def local_rank() -> int:
    """This rank's number on its host, from the launcher; it chooses the GPU."""
    for name in ("OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "MPI_LOCALRANKID"):
        if name in os.environ:
            return int(os.environ[name])
    return 0


class Session:
    """The ranks of one launch, which follow the text of a protocol over MPI.

    Args:
        comm: all ranks, rank 0 the master if there is one; None for a process alone.
        progress: the master says how far it is.
    """

    world = "mpi"
    rank_class: type = TextRank

    def __init__(self, comm, training: Training, progress: bool = True):
        comm = None if comm is None or comm.size == 1 else comm
        self.comm, self.training, self.progress = comm, training, progress
        self.rank = comm.rank if comm else 0
        self.workshop = Workshop(training, self.rank, local_rank())
        self._communicators: dict[int, object] = {}

    @property
    def answers(self) -> bool:
        """Whether this rank has the traces: the first."""
        return self.rank == 0

    def run(
        self, scenario: Scenario, replication: int = 0, parts: Path | None = None, parameters: str | None = None
    ) -> Trace | None:
        """One run on the first ranks of the launch; its trace at rank 0, None elsewhere. Collective.

        Args:
            parts: folder for the growing trace; none if a crash may lose it.
            parameters: file for those that the run ends with.
        """
        comm = self._members(scenario.ranks)
        if self.comm is not None and comm is None:
            return None
        self._say("building graphs")
        trainee = self._trainee(comm, scenario, replication)
        if comm is not None:
            barrier(comm)
        hosts = machines(comm)
        header = self._header(scenario, replication, hosts, trainee, self._gpus(comm, scenario))
        if parts and self.rank == 0:
            begin(parts, header)
        if comm is not None:
            barrier(comm)
        recorder = Recorder(self.rank, parts, scenario.warmup)
        clock = common_clock(comm) if comm is not None else Clock(0.0, time.perf_counter())
        names = [name for name, _ in hosts]
        me = self.rank_class(comm, scenario, replication, trainee, clock, recorder, names)
        self._follow(me)
        recorder.close()
        if parameters:
            self._keep(comm, me, parameters)
        return self._gathered(comm, header, me)

    @property
    def machines(self) -> int:
        """The number of hosts of the launch; collective."""
        return len(set(machines(self.comm)))

    def _trainee(self, comm, scenario: Scenario, replication: int) -> Trainee:
        """The trainee of this rank of `comm`."""
        return self.workshop.trainee(scenario, replication)

    def _members(self, ranks: int):
        """The communicator of the first `ranks` ranks; None to the others."""
        if self.comm is None:
            return None
        from mpi4py import MPI

        if ranks not in self._communicators:
            self._communicators[ranks] = self.comm.Split(0 if self.rank < ranks else MPI.UNDEFINED, self.rank)
        comm = self._communicators[ranks]
        return None if comm == MPI.COMM_NULL else comm

    def _follow(self, me: TextRank) -> None:
        """Run this rank's text to its end."""
        says = self.rank == 0 and self.progress
        me.follow(every(PROGRESS_S, lambda me, step: self._say(progress_line(me, step))) if says else None)

    @staticmethod
    def _keep(comm, me: TextRank, file: str) -> None:
        """Write all parameters to `file`, at rank 0. Collective."""
        held = comm.gather(me.pieces()) if comm is not None else [me.pieces()]
        if me.rank == 0:
            write(file, joined(me.scenario.workload, [piece for pieces in held for piece in pieces]))

    def _gathered(self, comm, header, me: TextRank) -> Trace | None:
        parts = [(me.recorder.activities, me.ran_out, crc32(me.parameters.tobytes()), me.recorder.cpu_s)]
        if comm is not None:
            barrier(comm)
            parts = comm.gather(parts[0])
        if self.rank != 0:
            return None
        header = replace(
            header,
            ran_out=sum(ran_out for _, ran_out, *_ in parts),
            evaluations=tuple(map(tuple, me.evaluations)),
            cpu_s={str(rank): seconds for rank, (*_, seconds) in enumerate(parts)},
            complete=True,
            details=header.details | {"parameters_crc32": [checksum for *_, checksum, _ in parts]},
        )
        return Trace.of(header, self._rows([Activity(*row) for activities, *_ in parts for row in activities]))

    def _rows(self, activities: list[Activity]) -> list[Activity]:
        """The activities that a trace has, of those of all ranks."""
        return activities

    def _gpus(self, comm, scenario: Scenario) -> list[str]:
        """The names of the GPUs of a host, as ranks that compute on them say."""
        mine = self.workshop.gpus(scenario)
        return max(comm.allgather(mine), key=len) if comm is not None else mine

    def _header(
        self, scenario: Scenario, replication: int, hosts: list[tuple[str, int]], trainee: Trainee, gpus: list[str]
    ) -> Header:
        """The header of a run that begins."""
        training = self.training.recorded(scenario.workload)
        recorded = {"training": training, "hosts": tuple(hosts), "gpus": len(gpus), "complete": False}
        details = self._details(trainee) | ({"gpus": gpus} if gpus else {})
        return scenario.header(self.world, replication, details=details, **recorded)

    def _details(self, trainee: Trainee) -> dict:
        from importlib.metadata import version

        return {
            "data": trainee.data.name,
            "synthetic_data": trainee.data.synthetic,
            "versions": {
                "python": platform.python_version(),
                "numpy": version("numpy"),
                self.training.engine: self.workshop.engine.version(),
            },
        }

    def _say(self, line: str) -> None:
        if self.rank == 0 and self.progress:
            print(line, file=sys.stderr, flush=True)


def progress_line(me: TextRank, step: int) -> str:
    """Print the progress of a run."""
    step_s = me.now_s / max(1, step)
    left = duration(step_s * (me.scenario.rounds - step))
    line = f"step {step} of {me.scenario.rounds}, {step_s * 1e3:.1f} ms a step, about {left} left"
    if me.evaluations:
        _, loss, accuracy = me.evaluations[-1]
        line += f", loss {loss:.4f}, accuracy {accuracy:.3f}"
    return line
