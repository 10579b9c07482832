"""Work that has taken long enough ends in a line, wherever it is; what reads no clock, too."""

import contextlib
import math
import resource
import subprocess
import sys
import threading
import time

import pytest
from documents import ROOT

from sim import needs, protocols, simulation
from sim.base import deadline as module
from sim.base.deadline import ended_after
from sim.base.errors import RunFailed
from sim.job.scenario import Scenario
from sim.model import workload


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """The clock is looked at often."""
    monkeypatch.setattr(module, "EVERY_S", 0.005)


def spin() -> None:
    while True:
        pass


def test_a_loop_that_never_ends_is_ended():
    with pytest.raises(RunFailed, match="too long"), ended_after(0.02, "too long"):
        spin()


def test_the_inner_one_of_two_ends_what_is_within_it():
    with ended_after(60, "outer"):
        with pytest.raises(RunFailed, match="inner"), ended_after(0.02, "inner"):
            spin()
        for _ in range(1000):  # nothing comes later
            pass


@pytest.mark.parametrize("lost", [1, 3])
def test_a_deadline_that_is_lost_comes_again(lost, monkeypatch):
    """As where Python collects garbage when it comes."""
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)

    class Collected:
        def __del__(self):
            until_s = time.process_time() + 1
            while time.process_time() < until_s:
                pass

    def work():
        for _ in range(lost):
            Collected()
        for _ in range(lost):
            with contextlib.suppress(BaseException):
                spin()
        spin()

    with pytest.raises(RunFailed, match="too long"), ended_after(0.02, "too long"):
        work()


@pytest.mark.slow
def test_nothing_comes_after_the_end(monkeypatch):
    """Of deadlines that pass just when the work ends."""
    monkeypatch.setattr(module, "AGAIN_S", 1e-5)
    ended = 0
    for number in range(300):
        with contextlib.suppress(RunFailed), ended_after(1e-3, "too long"):
            until_s = time.thread_time() + 1e-3 + 1e-6 * (number % 50 - 25)
            while time.thread_time() < until_s:
                pass
            ended += 1
        for _ in range(100):
            pass
    assert ended


@pytest.mark.parametrize("seconds", [60, math.inf])
def test_what_ends_in_time_is_left_alone(seconds):
    with ended_after(seconds, "too long"):
        done = sum(range(10))
    assert done == 45


def test_each_thread_has_its_own():
    """Of a program that simulates in several."""
    said: list[str] = []

    def work():
        try:
            with ended_after(0.02, "in a thread"):
                spin()
        except RunFailed as error:
            said.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    with ended_after(60, "here"):
        thread.join()
    assert said == ["in a thread"]


def test_a_simulation_without_an_answer_is_a_line(monkeypatch):
    monkeypatch.setattr(needs, "patience_s", lambda _: 0.02)
    monkeypatch.setattr(simulation, "_ran", lambda *_, **__: spin())
    scenario = Scenario(protocols.make("fmb"), workload.read("mlp"))
    with pytest.raises(RunFailed, match=r"no answer after 0 seconds of the processor: .*--within"):
        simulation.simulate(scenario, within_s=1e-3)


LOOP = """
from dataclasses import dataclass
from sim.texts import FixedMinibatch

@dataclass(frozen=True)
class Endless(FixedMinibatch):
    def __call__(self, me):
        while me:
            pass
        yield from me.update()
"""


@pytest.mark.slow
def test_a_text_that_does_not_end_is_named_with_its_line(module, monkeypatch):
    name = module(LOOP)
    monkeypatch.setattr(needs, "patience_s", lambda _: 0.5)
    simulation.simulate(Scenario(protocols.make("fmb"), workload.read("mlp"), steps=1), "event", 1)  # loads all
    scenario = Scenario(protocols.make(f"{name}:Endless"), workload.read("mlp"))
    with pytest.raises(RunFailed, match=rf"^{name}.py:\d+: no answer after"):
        simulation.simulate(scenario, "event", within_s=1e-3)


@pytest.mark.processes
@pytest.mark.slow
@pytest.mark.parametrize("limit_kib", [250_000, 350_000, 400_000])
def test_with_few_addresses_there_is_an_answer_or_a_line(limit_kib):
    """SciPy's BLAS would try for ever to get memory while it is loaded, and no signal would end that."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1024 * limit_kib, 1024 * limit_kib))

    line = [sys.executable, "-m", "sim.run", "--protocol=amb", "--json", "--workers=300", "--steps=2000", "--within=1"]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=120, preexec_fn=limit, check=False)
    assert done.returncode in (0, 1, 2), done.stderr
    assert len(done.stderr.splitlines()) == (done.returncode > 0), done.stderr
    assert ("memory" in done.stderr or "ulimit -v: given" in done.stderr) == (done.returncode > 0)
