"""A cluster in a box: what it carries, that ranks train in it, and that nothing of it stays behind."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import uuid
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from processes import ROOT, until

from calibration import probes
from real.launching import shaping, testbed
from real.launching.testbed import network_of
from sim.answers.outcome import of_trace
from sim.model import workload
from sim.recording import traces

RATE, PAYLOAD = 12.5e6, 0.957  # 100 Mbit/s; what Ethernet's, IP's and TCP's headers leave of it
JOB = ["--workload", "toy_fc", "--batch", "16", "--stragglers", "none", "--optimiser", "sgd", "--quiet"]


@pytest.fixture
def left(monkeypatch):
    """What a test has left: processes in other networks than ours, by a mark in their environment; and our own interfaces."""
    mark, mine = f"TESTBED_TEST={uuid.uuid4()}", network_of(os.getpid())
    monkeypatch.setenv(*mark.split("="))

    def is_ours(pid: int) -> bool:
        with suppress(OSError):
            return mark.encode() in Path(f"/proc/{pid}/environ").read_bytes() and network_of(pid) not in (None, mine)
        return False

    def look() -> tuple[set[int], set[str]]:
        return {pid for pid in psutil.pids() if is_ours(pid)}, set(os.listdir("/sys/class/net"))

    return look


def test_hosts_have_names_addresses_and_nothing_stays(left):
    before = left()
    with testbed.testbed(2, RATE) as hosts:
        said = subprocess.run(
            [hosts.agent, "host1", "hostname; getent hosts host0; pwd"], capture_output=True, text=True, check=True
        )
        assert said.stdout.split() == ["host1", "10.213.7.1", "host0", os.getcwd()]
        folder = Path(hosts.agent).parent
        assert left() != before
    assert left() == before
    assert not folder.exists()


def test_after_an_exception_nothing_stays_and_it_can_be_made_again(left):
    before = left()
    for _ in range(2):
        started = []
        with pytest.raises(ZeroDivisionError):
            _fail_inside(started)
        assert left() == before
        assert started[0].wait(2) == -signal.SIGKILL
        started[0].stdout.close()


def _fail_inside(started: list):
    with testbed.testbed(2, RATE) as hosts:
        started.append(subprocess.Popen([hosts.agent, "host0", "echo; exec sleep 1000"], stdout=subprocess.PIPE))
        started[0].stdout.readline()
        raise ZeroDivisionError


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_however_the_command_ends_nothing_stays(number, left, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = left()
    line = [sys.executable, "-m", "real.run", "--protocol", "allreduce", "--workers", "2", "--steps", "10000", *JOB]
    with subprocess.Popen([*line, "--testbed", "100 Mbit/s"], stderr=subprocess.PIPE, text=True, cwd=ROOT) as started:
        until(lambda: len(left()[0]) >= 2 + 1 + 2 * 2)  # who holds hosts and switch; on each host a daemon and a rank
        started.send_signal(number)
        _, err = started.communicate(timeout=1200)
    assert started.returncode == (-number if number == signal.SIGKILL else 130)
    assert "Traceback" not in err
    until(lambda: left() == before)
    until(lambda: not list(tmp_path.glob("trainsim-testbed-*")))


def test_a_ring_of_three_hosts_takes_what_its_bytes_take(tmp_path):
    """2 (n - 1) / n of the bytes through each port, but for what passes at once; a busy machine may take longer."""
    file = tmp_path / "ring.parquet"
    job = shlex.split("--protocol allreduce --set algorithm=ring --workers 3 --steps 6 --warmup 2")
    done = _run(*job, *JOB, "--trace", str(file))
    assert done.returncode == 0, done.stderr
    trace = traces.read(file)
    assert [name for name, _ in trace.header.hosts] == ["host0", "host1", "host2"]
    sent_bytes = 2 * (2 / 3) * workload.read("toy_fc").message_bytes
    sends = trace.rows[trace.rows["activity"] == "send"].groupby(["rank", "step"])["bytes"].sum()
    assert (abs(sends / sent_bytes - 1) < 0.01).all()
    assert of_trace(trace).step_s.min() > (sent_bytes - shaping.BURST_BYTES) / (PAYLOAD * RATE)


def test_tensorflow_s_servers_find_one_another_by_name(tmp_path):
    file = tmp_path / "async.parquet"
    done = _run("--protocol", "ps-async", "--workers", "2", "--steps", "5", "--warmup", "2", *JOB, "--trace", str(file))
    assert done.returncode == 0, done.stderr
    trace = traces.read(file)
    assert trace.header.world == "tensorflow"
    assert [name for name, _ in trace.header.hosts] == ["host0", "host1", "host2"]
    assert trace.header.complete
    assert os.listdir(tmp_path) == [file.name]


def _run(*words: str) -> subprocess.CompletedProcess:
    line = [sys.executable, "-m", "real.run", *words, "--testbed", "100 Mbit/s"]
    return subprocess.run(line, capture_output=True, text=True, cwd=ROOT, timeout=1200, check=False)


def test_a_probe_finds_the_links_with_and_without_sleeping(tmp_path):
    """The rate is the shaper's to both; a busy machine finds less, and no queue. How they compare is for experiments to say.

    Before a busy port stand at most the shaper's queue and bucket; senders keep some of a message of 4 MB.
    """
    line = [sys.executable, "-m", "real.probe", "-o", str(tmp_path / "probe.json"), "--testbed", "1 Gbit/s"]
    subprocess.run(line, check=True, capture_output=True, timeout=1200, cwd=ROOT)
    probe = probes.read(str(tmp_path / "probe.json"))
    links, late = probe.links(polls=True), probe.links(polls=False)
    assert links["library"] == late["library"]
    assert set(links) == {"network", "library"}
    for link in links.values():
        assert link.bandwidth_bytes_per_s < 1.1 * 10 * RATE * PAYLOAD  # a busy machine finds less
        assert 0 <= link.queue_bytes < 1.2 * (10 * RATE * shaping.QUEUE_S + shaping.BURST_BYTES)
        assert 0 <= link.buffer_bytes < 4e6
        assert 0 <= link.ramp_bytes < 4e6
