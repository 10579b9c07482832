"""Parameter servers by TensorFlow's own runtime: tf.compat.v1.train.Server, MonitoredTrainingSession, SyncReplicasOptimizer.

MPI joins the processes, which wait for one another asleep. The traps of that runtime, with the remedies:

- A worker that polls before the chief has initialised waits half a minute: workers open their sessions when the chief has.
- A session that uses all devices waits for every worker: each uses itself and the servers only.
- The synchronous chief may hang in session.close(), and a server cannot be stopped: sessions are kept open and left to
  the process's end (`leave`).
- MonitoredSession answers a lost server by waiting for ever: mpirun ends the run.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from itertools import count
from pathlib import Path
from typing import NoReturn

from real.launching.clock import offset_s
from real.launching.polling import arrived, barrier, poll
from real.launching.ranks import machines
from real.recording.growing_trace import begin
from real.recording.parameters import write
from real.recording.recorder import Recorder
from real.servers import server as own
from real.servers.replica import Replica, ps
from real.servers.tasks import tasks_of
from real.servers.transcript import Clocks, Transcript, joined
from real.training.tensorflow_setup import failures_told, tensorflow
from real.training.trainee import Trainee, Workshop
from sim.base.errors import RunFailed
from sim.job.scenario import Scenario
from sim.recording.traces import Trace

PROGRESS_S = 2.0
WARM = 2  # the tag by which the chief says that the measured steps begin soon: processor time before does not count
LAST_UPDATE_S = 10.0
RARELY_S = 0.05  # from one poll of a server to the next, which takes a core from a worker


class TaskRunner:
    """This process's part in runs with TensorFlow's servers, one run after another.

    Args:
        comm: all ranks of the launch; a run may need fewer.
        servers: as many of them, the first ones, are servers.
        progress: whether it is printed on standard error.
    """

    def __init__(self, comm, servers: int, workshop: Workshop, progress: bool = True):
        self.tasks, self.workshop, self.progress = tasks_of(comm, servers), workshop, progress
        training = workshop.training
        tensorflow(training.threads, training.device, workshop.gpu_index)
        self._server = own.start(self.tasks, training.threads, training.device)
        self._comm, self._teams = comm, dict[tuple[int, int], object]()
        self._runs = count(1)
        self._kept: list = []  # sessions that must not be closed

    @property
    def answers(self) -> bool:
        """Whether this process has the traces: the chief."""
        return self.tasks.is_chief

    def run(
        self, scenario: Scenario, replication: int = 0, parts: Path | None = None, parameters: str | None = None
    ) -> Trace | None:
        """One run; its trace at the chief, None elsewhere. Every process of the launch calls this.

        Raises:
            RunFailed: TensorFlow gave up.
        """
        name, team = f"run{next(self._runs)}", self._team(scenario)
        if team is None:
            return None
        recorded = {"training": self.workshop.training.recorded(scenario.workload), "hosts": tuple(machines(team))}
        with failures_told("TensorFlow"):
            if self.tasks.job == "ps":
                return serve(team, scenario)
            worker = Worker(self, team, scenario, replication, name, recorded)
            self._kept.append(worker)
            return worker.train(parts, parameters)

    def _team(self, scenario: Scenario):
        """The communicator of the processes that a run needs, servers first; None to the others. Collective."""
        from mpi4py import MPI

        tasks, sizes = self.tasks, (scenario.servers, scenario.workers)
        if sizes not in self._teams:
            needed = tasks.task < (scenario.servers if tasks.job == "ps" else scenario.workers)
            self._teams[sizes] = self._comm.Split(0 if needed else MPI.UNDEFINED, self._comm.rank)
        team = self._teams[sizes]
        return None if team == MPI.COMM_NULL else team

    def session(self, replica: Replica, hooks: list):
        """A MonitoredTrainingSession on the replica's graph; kept for ever."""
        import tensorflow as tf

        tasks, training = self.tasks, self.workshop.training
        peers = (*(ps(k) for k in range(replica.servers)), f"/job:worker/task:{tasks.task}")
        return tf.compat.v1.train.MonitoredTrainingSession(
            master=self._server.target,
            is_chief=tasks.is_chief,
            hooks=hooks,
            save_checkpoint_secs=None,
            save_summaries_steps=None,
            save_summaries_secs=None,
            log_step_count_steps=None,
            config=own.config(training.threads, training.device, peers),
        )


def serve(team, scenario: Scenario) -> None:
    """A server's part of a run: it waits for its end, and gives an account of its processor time; it records nothing else."""
    barrier(team)
    _begin(team)
    used_s, over = time.process_time(), team.Ibarrier()
    while True:
        poll(lambda: arrived(team, scenario.servers, WARM) or over.Test(), "the run's end", math.inf, RARELY_S)
        if over.Test():
            break
        team.recv(None, scenario.servers, WARM)
        used_s = time.process_time()
    team.gather({"rank": team.rank, "rows": [], "cpu_s": time.process_time() - used_s}, scenario.servers)


def _begin(team) -> tuple[float, list[float]]:
    """All begin together: the second of rank 0's wall clock at which they do, and from each rank's clock to that. Collective."""
    offsets_s = team.allgather(offset_s(team, time.time))
    barrier(team)
    return team.bcast(time.time()), offsets_s


class Worker:
    """One worker in one run.

    Args:
        team: the processes that take part, servers first.
        name: of the run, which no other of the launch has.
        recorded: what the header of its trace says of training and hosts.
    """

    def __init__(self, runtime: TaskRunner, team, scenario: Scenario, replication: int, name: str, recorded: dict):
        self.runtime, self.team, self.scenario, self._recorded = runtime, team, scenario, recorded
        self.tasks, self.replication = runtime.tasks, replication
        self.trainee: Trainee = runtime.workshop.feeder(scenario, replication, self.tasks.task + 1)
        self.replica = Replica(scenario, runtime.workshop.training, replication, self.tasks.task, name)
        self._sleeps = scenario.draws.sleeps(replication, self.tasks.task + 1)
        self.updates: list[dict] = []
        self.evaluations: list[tuple[int, float, float]] = []  # step, loss, accuracy
        self._evaluated = 0  # how many times they had become due

    def train(self, parts: Path | None, parameters: str | None = None) -> Trace | None:
        """The run, from its start to the report; the trace, at the chief, which writes `parameters`."""
        is_chief, team, scenario = self.tasks.is_chief, self.team, self.scenario
        with self.replica.graph.as_default():
            hooks: list = [_hook(self)] if self.replica.tokens else []
            self._say("building graphs")
            if is_chief:
                self._session = self.runtime.session(self.replica, hooks)
                if parts:
                    begin(parts, scenario.header("tensorflow", self.replication, complete=False, **self._recorded))
            barrier(team)
            if not is_chief:
                self._session = self.runtime.session(self.replica, hooks)
            start_s, offsets_s = _begin(team)
            clocks = Clocks(start_s, [offsets_s[team.rank] - offsets_s[k] for k in range(scenario.servers)])
            transcript = Transcript(scenario, self.tasks.task, clocks, Recorder(team.rank, parts, scenario.warmup))
            self._steps(self._session, transcript)
        barrier(team)
        return self._gathered(transcript, parameters)

    def _steps(self, session, transcript: Transcript) -> None:
        scenario, x, y = self.scenario, self.replica.x, self.replica.y
        updates = scenario.rounds * scenario.updates_per_step  # of the first server
        step, after, said_s = 0, 0, time.monotonic()
        while after < updates:
            start_s, slept_s, seconds = time.time(), None, self._sleeps[step]
            if seconds > 0:
                time.sleep(seconds)
                slept_s = time.time()
            samples, labels = self.trainee.next_batch()
            done = session.run(self.replica.step, {x: samples, y: labels})
            after = int(done["after"])
            transcript.add(step, start_s, slept_s, done, time.time())
            self._evaluate(session, transcript, step, after)
            step += 1
            if step == scenario.warmup - 1 and self.tasks.is_chief:  # its time is in a step that is not measured
                for server in range(scenario.servers):
                    self.team.send(None, server, WARM)
            if time.monotonic() - said_s > PROGRESS_S:
                said_s = time.monotonic()
                self._say(f"update {after} of {updates}, loss {done['loss']:.4f}")

    def _gathered(self, transcript: Transcript, parameters: str | None) -> Trace | None:
        """The trace of all processes, at the chief, once no worker trains any more. Writes the parameters, if they are asked for."""
        if self.replica.tokens and self.tasks.is_chief:
            # A worker may have its last token before the chief's thread knows of the update.
            poll(lambda: len(self.updates) >= self.scenario.rounds, "the last update", LAST_UPDATE_S)
        for made in list(self.updates):
            transcript.updated(made)
        accounts = self.team.gather(transcript.account(), self.scenario.servers)
        if accounts is None:
            return None
        if parameters:
            write(parameters, self._session.run(self.replica.parameters))
        recorded = self._recorded | {"evaluations": tuple(self.evaluations)}
        return joined(self.scenario, self.replication, accounts, recorded)

    def _evaluate(self, session, transcript: Transcript, step: int, after: int) -> None:
        """At the chief, which meanwhile computes nothing else: loss and accuracy, if they have become due by `after` updates."""
        scenario, data, replica = self.scenario, self.trainee.data, self.replica
        steps, size = min(after // scenario.updates_per_step, scenario.rounds), scenario.test_size
        if not (size and self.tasks.is_chief) or steps // scenario.evaluate_every == self._evaluated:
            return
        self._evaluated, start_s = steps // scenario.evaluate_every, time.time()
        x, y = data.test_x[:size], data.test_y[:size]
        loss, right = session.run([replica.step["loss"], replica.right], {replica.x: x, replica.y: y})
        self.evaluations.append((steps - 1, float(loss), int(right) / len(x)))
        transcript.evaluated(step, start_s, time.time(), len(x), after)

    def _say(self, line: str) -> None:
        if self.tasks.is_chief and self.runtime.progress:
            print(line, file=sys.stderr, flush=True)


def _hook(worker: Worker):
    """SyncReplicasOptimizer's own hook with clocks: initialise tokens, and at the chief update in a thread."""
    import tensorflow as tf

    replica, is_chief = worker.replica, worker.tasks.is_chief
    tokens = replica.tokens
    local = tokens.chief_init_op if is_chief else tokens.local_step_init_op
    at_the_start = 0 if worker.scenario.protocol.barrier else -1  # -1: as many as gradients make an update
    ready, first = tokens.ready_for_local_init_op, tokens.get_init_tokens_op(at_the_start) if is_chief else None
    update = replica.update if is_chief else None

    def keep_updating(session):
        try:
            while True:
                worker.updates.append(session.run(update))
        except tf.errors.OpError:
            return  # the process is ending, or a server is gone: mpirun ends the run

    class Tokens(tf.compat.v1.train.SessionRunHook):
        def after_create_session(self, session, coord):
            missing = session.run(ready)
            if len(missing):
                raise RunFailed(f"the chief has not initialised {missing}")
            session.run(local)
            if is_chief:
                session.run(first)
                threading.Thread(target=keep_updating, args=(session,), daemon=True).start()

    return Tokens()


def leave(code: int = 0) -> NoReturn:
    """End the process at once: its sessions are open, and closing them may hang."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
