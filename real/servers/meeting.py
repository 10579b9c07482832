"""The processes of a run meet and part in queues on server 0, the one place that all of them know."""

from __future__ import annotations

import json
import os
import sys
import time

from real.launching.mpirun import MEETING, STAGE, TRAINING
from real.servers.server import config
from real.servers.tasks import Tasks, reachable, wait_for
from sim.base.errors import RunFailed, WrongSetting

PATIENCE_S = 90.0  # limit for the processes of a run to arrive; importing TensorFlow takes a while
REFUSED_S = 15.0  # seconds in which others may arrive and hear that lists differ
SOON_S = 0.005  # between polls, where all are to begin together
POLL_S = 0.2  # a poll takes a core from another process for a millisecond
ROUNDS = 20  # of asking another host's clock


class Meeting:
    """Messages between the processes of one run, as TensorFlow's own queues.

    Args:
        target: of this process's own server.
        run: names the queues, so that runs on the same servers keep apart.
        servers, workers: how many take part.

    Raises:
        RunFailed: a server did not come.
    """

    def __init__(self, tasks: Tasks, target: str, run: str, servers: int, workers: int):
        import tensorflow as tf

        looks_at = range(servers if tasks.job == "worker" else 1)
        for server in looks_at:
            if not wait_for(tasks.ps_hosts[server], PATIENCE_S):
                where = f"server {server} at {tasks.ps_hosts[server]}"
                raise RunFailed(f"waited {PATIENCE_S:g} s for {where}: is it started, and are the lists the same?")
        self._tf, self.tasks, self.run = tf, tasks, run
        self.servers, self.workers = servers, workers
        self._graph = tf.Graph()
        peers = (*(f"/job:ps/task:{k}" for k in looks_at), f"/job:{tasks.job}/task:{tasks.task}")
        with self._graph.as_default(), tf.device("/job:ps/task:0/cpu:0"):
            self._text = tf.compat.v1.placeholder(tf.string, ())
            names = ["hello", "report", *(f"{job}-{task}" for job, task in self._members())]
            self._queues = {
                name: tf.queue.FIFOQueue(10_000, [tf.string], [()], shared_name=f"{run}/{name}") for name in names
            }
            self._put = {name: queue.enqueue(self._text) for name, queue in self._queues.items()}
            self._get = {name: queue.dequeue() for name, queue in self._queues.items()}
            self._size = {name: queue.size() for name, queue in self._queues.items()}
            self._clocks = [self._clock(k) for k in looks_at]
        self._session = tf.compat.v1.Session(target, graph=self._graph, config=config(1, peers=peers))

    def gather(self) -> None:
        """Wait until all are here and were given the same lists; the chief calls the roll and lets the others go.

        Raises:
            RunFailed: somebody did not come.
            WrongSetting: somebody was given other lists.
        """
        self._tell(MEETING)
        me = f"{self.tasks.job}-{self.tasks.task}"
        self._send("hello", {"name": me, "digest": self.tasks.digest})
        verdict = self._call_the_roll() if self.tasks.is_chief else self._receive(me, 2 * PATIENCE_S)
        if verdict is None:
            raise RunFailed(f"waited {2 * PATIENCE_S:g} s for worker 0 at {self.tasks.worker_hosts[0]}")
        if verdict.get("refused"):
            raise WrongSetting("--ps-hosts and --worker-hosts", verdict["refused"], "the same lists on every process")
        if verdict.get("missing"):
            raise RunFailed(f"waited {PATIENCE_S:g} s for {verdict['missing']}")

    def _call_the_roll(self) -> dict:
        give_up_s, here = time.monotonic() + PATIENCE_S, {}
        names = [f"{job}-{task}" for job, task in self._members()]
        while len(here) < len(names) and time.monotonic() < give_up_s:
            hello = self._receive("hello", POLL_S)
            if hello:
                here[hello["name"]] = hello["digest"]
                if hello["digest"] != self.tasks.digest:  # the missing process may be on one list only
                    give_up_s = min(give_up_s, time.monotonic() + REFUSED_S)
        missing = ", ".join(f"{name} at {self._address(name)}" for name in names if name not in here)
        others = [name for name, digest in here.items() if digest != self.tasks.digest]
        verdict = {"missing": missing, "refused": ", ".join(f"{name}'s differ from worker 0's" for name in others)}
        for name in here:
            if name in self._put:
                self._send(name, verdict)
        return verdict

    def initialised(self) -> None:
        """The chief informs the other workers that variables are initialised."""
        for task in range(1, self.workers):
            self._send(f"worker-{task}", {"initialised": True})

    def wait_for_variables(self) -> None:
        """A worker waits until the chief has initialised them."""
        self._hear("to initialise")

    def begin(self) -> float:
        """All workers begin together, when all are ready; the second of server 0's wall clock at which they do.

        Raises:
            RunFailed: one of them is not.
        """
        if not self.tasks.is_chief:
            self._send("hello", {"name": f"worker-{self.tasks.task}"})
            return self._hear("to begin", SOON_S)["start_s"]
        for _ in range(1, self.workers):
            if self._receive("hello", PATIENCE_S) is None:
                raise RunFailed(f"waited {PATIENCE_S:g} s for workers to be ready")
        start_s = self._now(0)
        for job, task in self._members():
            if (job, task) != ("worker", 0):
                self._send(f"{job}-{task}", {"start_s": start_s})
        self._tell(TRAINING)
        return start_s

    def warm(self) -> None:
        """The chief informs the servers that the measured steps begin soon: processor time before does not count."""
        for server in range(self.servers):
            self._send(f"ps-{server}", {"warm": True})

    def _hear(self, what: str, poll_s: float = POLL_S) -> dict:
        message = self._receive(f"{self.tasks.job}-{self.tasks.task}", PATIENCE_S, poll_s)
        if message is None:
            raise RunFailed(f"waited {PATIENCE_S:g} s for worker 0 at {self.tasks.worker_hosts[0]} {what}")
        return message

    def report(self, rows: dict) -> None:
        """Send a worker's account to the chief."""
        self._send("report", rows)

    def collect(self, patience_s: float) -> tuple[list[dict], list[int]]:
        """The accounts of all workers but the chief, and the workers that died before they could give one.

        Raises:
            RunFailed: a worker is alive and says nothing.
        """
        found, dead, start_s = {}, set(), time.monotonic()
        expected = set(range(1, self.workers))
        while expected - set(found) - dead:
            message = self._receive("report", POLL_S)
            if message:
                found[message["task"]] = message
                continue
            silent = sorted(expected - set(found) - dead)
            dead |= {task for task in silent if not reachable(self.tasks.worker_hosts[task])}
            if time.monotonic() - start_s > patience_s:
                raise RunFailed(f"worker {silent[0]} at {self.tasks.worker_hosts[silent[0]]} does not report")
        return [found[task] for task in sorted(found)], sorted(dead)

    def end(self) -> list[dict]:
        """The chief informs the servers that the run is over; returns their accounts."""
        for server in range(self.servers):
            self._send(f"ps-{server}", {"over": True})
        found = [self._receive("report", PATIENCE_S) for _ in range(self.servers)]
        return [account for account in found if account]

    def wait_for_end(self) -> None:
        """A server waits until the chief says that the run is over, and gives its account: it records nothing else.

        Raises:
            RunFailed: the chief is gone.
        """
        chief, gone, name = self.tasks.worker_hosts[0], 0, f"ps-{self.tasks.task}"
        used_s = time.process_time()
        while not (message := self._receive(name, 1.0) or {}).get("over"):
            if message:  # the run begins, or is to be measured
                used_s = time.process_time()
                continue
            gone = 0 if reachable(chief) else gone + 1
            if gone > 1:
                raise RunFailed(f"worker 0 at {chief} is gone")
        self.report({"server": self.tasks.task, "cpu_s": time.process_time() - used_s})

    def offset_s(self, server: int = 0) -> float:
        """Seconds to add to this host's wall clock to have a server's (Cristian, 1989); 0 on the same host."""
        if self.tasks.address.rpartition(":")[0] == self.tasks.ps_hosts[server].rpartition(":")[0]:
            return 0.0
        rounds = []
        for _ in range(ROUNDS):
            asked_s = time.time()
            there_s = self._now(server)
            answered_s = time.time()
            rounds.append((answered_s - asked_s, there_s - (asked_s + answered_s) / 2))
        return min(rounds)[1]

    def _tell(self, stage: str) -> None:
        """The chief informs the launcher, if there is one. Until all train, the run needs every process."""
        if self.tasks.is_chief and "TRAINSIM_LAUNCHED" in os.environ:
            print(f"{STAGE}{stage}", file=sys.stderr, flush=True)

    def _members(self) -> list[tuple[str, int]]:
        return [
            (job, task) for job, task in self.tasks.everyone() if task < (self.servers if job == "ps" else self.workers)
        ]

    def _address(self, name: str) -> str:
        job, _, task = name.partition("-")
        return self.tasks.hosts(job)[int(task)]

    def _clock(self, server: int):
        with self._tf.device(f"/job:ps/task:{server}/cpu:0"):
            return self._tf.timestamp()

    def _now(self, server: int) -> float:
        return float(self._session.run(self._clocks[server]))

    def _send(self, queue: str, message: dict) -> None:
        self._session.run(self._put[queue], {self._text: json.dumps(message)})

    def _receive(self, queue: str, patience_s: float, poll_s: float = POLL_S) -> dict | None:
        """The next message of a queue, or None."""
        start_s = time.monotonic()
        while not self._session.run(self._size[queue]):
            if time.monotonic() - start_s > patience_s:
                return None
            time.sleep(poll_s)
        return json.loads(self._session.run(self._get[queue]))
