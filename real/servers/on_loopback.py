"""All processes of a run on this machine: started, watched, and ended together."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time

from real.launching.mpirun import MEETING, REASON, STAGE, TRAINING, Refused, end_with_parent, interrupt
from real.servers.tasks import LOOPBACK, free_port
from sim.base.errors import RunFailed
from sim.base.home import installed
from sim.command import called
from sim.job.scenario import Scenario

POLL_S = 0.05
GRACE_S = 5.0  # for the others to end once the chief has
NOISE = re.compile(
    r"^(WARNING: All log messages before absl|[IWEF]\d{4} [\d:.]+ |\d{4}-\d\d-\d\d [\d:.]+: [IWE] |Additional GRPC|:UNKNOWN:|From /job:)"
)


def run(scenario: Scenario, argv: list[str]) -> None:
    """Start servers and workers on loopback as `real.run --job ... --task ...`, and see them to their end.

    Raises:
        WrongSetting: what one of them refused.
        RunFailed: naming the one that ended the run.
        KeyboardInterrupt: after all have been ended.
    """
    hosts = [f"{LOOPBACK}:{free_port()}" for _ in range(scenario.ranks)]
    lists = ["--ps-hosts", ",".join(hosts[: scenario.servers]), "--worker-hosts", ",".join(hosts[scenario.servers :])]
    roles = [("ps", k) for k in range(scenario.servers)] + [("worker", k) for k in range(scenario.workers)]
    previous = signal.signal(signal.SIGTERM, interrupt)
    processes: list[Process] = []
    try:
        for job, task in roles:  # one by one, so that an interrupt finds those that have started
            processes.append(Process(job, task, [*argv, *lists]))
        _watch(scenario, processes)
    finally:
        for process in processes:
            process.kill()
        signal.signal(signal.SIGTERM, previous)


class Process:
    """The process of one server or worker."""

    def __init__(self, job: str, task: int, arguments: list[str]):
        self.job, self.task, self.words, self.told = job, task, "", False
        self.stage = MEETING  # if it is the chief, of the run
        line = [sys.executable, "-m", installed("real.run"), *arguments, "--job", job, "--task", str(task)]
        environment = {**os.environ, "TRAINSIM_LAUNCHED": "1", "PYTHONUNBUFFERED": "1"}
        self._process = subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            env=environment,
            start_new_session=True,  # the launcher handles Ctrl-C
            preexec_fn=end_with_parent,  # noqa: PLW1509 only readers of pipes run yet
        )
        self._reader = threading.Thread(target=self._pass_on, daemon=True)
        self._reader.start()

    @property
    def name(self) -> str:
        """Its name for users."""
        return f"{'server' if self.job == 'ps' else 'worker'} {self.task}"

    @property
    def is_chief(self) -> bool:
        """Whether it collects and answers."""
        return (self.job, self.task) == ("worker", 0)

    def ended(self) -> int | None:
        """Its exit code, negative if a signal ended it; None while it runs."""
        return self._process.poll()

    def failure(self) -> Exception:
        """Why it ended."""
        self._reader.join(1.0)
        kind, _, message = self.words.partition(" ")
        if kind == "refused":
            return Refused(message)
        return RunFailed(message or f"{self.name} {self.death()}; the run is ended")

    def death(self) -> str:
        """The manner of its death, with its process number."""
        code = self.ended()
        how = f"signal {-code}, {signal.strsignal(-code)}" if code < 0 else f"exit {code}"
        return f"died (process {self._process.pid}, {how})"

    def kill(self) -> None:
        """End it, if it has not ended."""
        if self.ended() is None:
            self._process.kill()
            self._process.wait()
        self._reader.join(1.0)

    def _pass_on(self) -> None:
        """Pass its lines on to our standard error, except its last message and TensorFlow's own log."""
        for line in self._process.stderr:
            if line.startswith(REASON):
                self.words = self.words or line.removeprefix(REASON).strip()
            elif line.startswith(STAGE):
                self.stage = line.removeprefix(STAGE).strip()
            elif not NOISE.match(line):
                print(line, end="", file=sys.stderr, flush=True)
        self._process.stderr.close()


def _watch(scenario: Scenario, processes: list[Process]) -> None:
    """Wait until the chief has answered. A dead worker is reported, and ends the run if the protocol needs it."""
    chief = next(process for process in processes if process.is_chief)
    while True:
        for process in processes:
            code = process.ended()
            if process.is_chief and code == 0:
                return _wait(processes)
            if code in (None, 0):
                continue
            alive = sum(p.job == "worker" and p.ended() in (None, 0) for p in processes)
            borne = chief.stage == TRAINING and process.job == "worker" and not (process.is_chief or process.words)
            if not (borne and _can_do_with(scenario, alive)):
                raise _cause(processes, process)
            if process.told:
                continue
            process.told = True
            print(
                f"{called('real.run')}: {process.name} {process.death()}; the others go on", file=sys.stderr, flush=True
            )
        time.sleep(POLL_S)


def _cause(processes: list[Process], seen: Process) -> Exception:
    """The failure that ended the run: a process that died without a message comes before those that complain of it."""
    time.sleep(POLL_S)
    silent = [p for p in processes if p.ended() not in (None, 0) and not p.words and not p.told]
    return (silent[0] if silent and seen.words.startswith("failed") else seen).failure()


def _can_do_with(scenario: Scenario, alive: int) -> bool:
    """Whether so many workers can finish the run."""
    protocol = scenario.protocol
    return alive >= (1 if protocol.way == "asynchronous" else protocol.gradients_per_update(scenario.workers))


def _wait(processes: list[Process]) -> None:
    give_up_s = time.monotonic() + GRACE_S
    while any(p.ended() is None for p in processes) and time.monotonic() < give_up_s:
        time.sleep(POLL_S)
