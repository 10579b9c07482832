"""Parameter servers by TensorFlow's own runtime: tf.compat.v1.train.Server, MonitoredTrainingSession, SyncReplicasOptimizer.

The traps of that runtime, with the remedies:

- A worker that polls before the chief has initialised waits half a minute: workers open their sessions when the chief has.
- A session that uses all devices waits for every worker: each uses itself and the servers only.
- The synchronous chief may hang in session.close(), and a server cannot be stopped: sessions are kept open and left to
  the process's end (`leave`).
- MonitoredSession answers a lost server by waiting for ever: `watch` ends the process instead.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from itertools import count
from pathlib import Path
from typing import NoReturn

from real.recording.growing_trace import begin
from real.recording.parameters import write
from real.recording.recorder import Recorder
from real.servers import server as own
from real.servers.meeting import Meeting
from real.servers.replica import Replica, ps
from real.servers.tasks import Tasks, reachable
from real.servers.transcript import Clocks, Transcript, joined
from real.training.tensorflow_setup import tensorflow
from real.training.trainee import Trainee, Workshop
from sim.base.errors import RunFailed
from sim.job.scenario import Scenario
from sim.recording.traces import Trace

PROGRESS_S = 2.0
REPORT_S = 60.0
WATCH_S = 1.0


class TaskRunner:
    """This process's part in runs with TensorFlow's servers, one run after another.

    Args:
        tasks: the processes of this launch; a run may need fewer.
        progress: whether it is printed on standard error.
    """

    def __init__(self, tasks: Tasks, workshop: Workshop, progress: bool = True):
        self.tasks, self.workshop, self.progress = tasks, workshop, progress
        training = workshop.training
        tensorflow(training.threads, training.device, workshop.gpu_index)
        self._server = own.start(tasks, training.threads, training.device)
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
            RunFailed: naming a process that did not come, or died.
            WrongSetting: lists that differ.
        """
        import tensorflow as tf

        tasks, name = self.tasks, f"run{next(self._runs)}"
        if tasks.task >= (scenario.servers if tasks.job == "ps" else scenario.workers):
            return None
        try:
            return self._run(scenario, name, replication, parts, parameters)
        except tf.errors.OpError as error:
            gone = [k for k in range(scenario.servers) if not reachable(tasks.ps_hosts[k])]
            why = (
                f"server {gone[0]} at {tasks.ps_hosts[gone[0]]} is gone" if gone else " ".join(str(error).split())[:300]
            )
            raise RunFailed(why) from error

    def _run(self, scenario: Scenario, name: str, replication: int, parts: Path | None, parameters: str | None):
        meeting = Meeting(self.tasks, self._server.target, name, scenario.servers, scenario.workers)
        self._kept.append(meeting)
        meeting.gather()
        if self.tasks.job == "ps":
            meeting.wait_for_end()
            return None
        worker = Worker(self, meeting, scenario, replication)
        self._kept.append(worker)
        return worker.train(parts, parameters)

    def recorded(self, scenario: Scenario) -> dict:
        """The facts of a run for the header of its trace."""
        return {
            "training": self.workshop.training.recorded(scenario.workload),
            "hosts": self.tasks.machines(scenario.servers, scenario.workers),
        }

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


class Worker:
    """One worker in one run."""

    def __init__(self, runtime: TaskRunner, meeting: Meeting, scenario: Scenario, replication: int):
        self.runtime, self.meeting, self.scenario = runtime, meeting, scenario
        self.tasks, self.replication = runtime.tasks, replication
        self.trainee: Trainee = runtime.workshop.feeder(scenario, replication, self.tasks.task + 1)
        self.replica = Replica(scenario, runtime.workshop.training, replication, self.tasks.task, meeting.run)
        self._sleeps = scenario.draws.sleeps(replication, self.tasks.task + 1)
        self.updates: list[dict] = []
        self.evaluations: list[tuple[int, float, float]] = []  # step, loss, accuracy
        self._evaluated = 0  # how many times they had become due
        self._over = threading.Event()

    def train(self, parts: Path | None, parameters: str | None = None) -> Trace | None:
        """The run, from its start to the report; the trace, at the chief, which writes `parameters`."""
        with self.replica.graph.as_default():
            hooks: list = [_hook(self)] if self.replica.tokens else []
            self._say("building graphs")
            if not self.tasks.is_chief:
                self.meeting.wait_for_variables()
            session = self.runtime.session(self.replica, hooks)
            if self.tasks.is_chief:
                self.meeting.initialised()
            self._session = session
            watch(self.tasks, self.scenario.servers, self._over)
            offsets_s = [self.meeting.offset_s(k) for k in range(self.scenario.servers)]
            clocks = Clocks(self.meeting.begin(), offsets_s)
            if parts and self.tasks.is_chief and not parts.exists():
                recorded = self.runtime.recorded(self.scenario)
                begin(parts, self.scenario.header("tensorflow", self.replication, complete=False, **recorded))
            folder = parts if parts and parts.exists() else None
            recorder = Recorder(self.scenario.servers + self.tasks.task, folder, self.scenario.warmup)
            transcript = Transcript(self.scenario, self.tasks.task, clocks, recorder)
            self._steps(session, transcript)
        self._over.set()
        if not self.tasks.is_chief:
            self.meeting.report(transcript.report())
            return None
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
                self.meeting.warm()
            if time.monotonic() - said_s > PROGRESS_S:
                said_s = time.monotonic()
                self._say(f"update {after} of {updates}, loss {done['loss']:.4f}")

    def _gathered(self, transcript: Transcript, parameters: str | None) -> Trace:
        """The trace of all processes, once no worker trains any more. Writes the parameters, if they are asked for."""
        reports, dead = self.meeting.collect(REPORT_S)
        if parameters:
            write(parameters, self._session.run(self.replica.parameters))
        for task in dead:
            self._say(f"worker {task} at {self.tasks.worker_hosts[task]} died; the run went on without it")
        for made in list(self.updates):
            transcript.updated(made)
        recorded = {"evaluations": tuple(self.evaluations), "details": {"died": dead}}
        accounts = [transcript.report(), *reports, *self.meeting.end()]
        return joined(self.scenario, self.replication, accounts, self.runtime.recorded(self.scenario) | recorded)

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
            return  # the process is ending, or a server is gone, which `watch` says

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


def watch(tasks: Tasks, servers: int, over: threading.Event) -> None:
    """End this process with a line when a server is gone before `over`, because MonitoredSession would wait for it."""

    def look():
        missed = dict.fromkeys(range(servers), 0)
        while not over.wait(WATCH_S):
            for server in missed:
                missed[server] = 0 if reachable(tasks.ps_hosts[server]) else missed[server] + 1
                if missed[server] > 1:
                    from real.launching.ranks import say

                    say("failed", f"{tasks.name}: server {server} at {tasks.ps_hosts[server]} is gone")
                    leave(1)

    threading.Thread(target=look, daemon=True).start()


def leave(code: int = 0) -> NoReturn:
    """End the process at once: its sessions are open, and closing them may hang."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
