"""What a port of a cluster in a box carries: its rate, in each direction, whatever goes the other way."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack, contextmanager

import pytest

from real.launching import shaping, testbed

RATE, PAYLOAD = 12.5e6, 0.957  # 100 Mbit/s; what Ethernet's, IP's and TCP's headers leave of it
TRIES = 30
FIRST = """
import os
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
except PermissionError:
    pass
"""  # before all processes that compute: what a port carries is not for them to say
SERVE = f"""{FIRST}
import socket, threading
def take(peer):
    while peer.recv(1 << 20):
        pass
    peer.send(b"x")
listener = socket.create_server(("", 5000))
print("ready", flush=True)
while True:
    threading.Thread(target=take, args=listener.accept()[:1], daemon=True).start()
"""
SEND = (
    FIRST
    + """
import socket, time
peer = socket.create_connection(("host1", 5000))
start_s = time.perf_counter()
peer.sendall(bytes({size}))
peer.shutdown(socket.SHUT_WR)
peer.recv(1)
print(time.perf_counter() - start_s)
"""
)
KEEP_ON = f"""{FIRST}
import socket
peer = socket.create_connection(("host0", 5000))
print("ready", flush=True)
while True:
    peer.sendall(bytes(1 << 18))
"""


@pytest.mark.parametrize(("rate", "size"), [(RATE, 2_500_000), (4 * RATE, 10_000_000)])
def test_a_port_carries_its_rate(rate, size):
    with testbed.testbed(2, rate) as hosts, _at_work(hosts, "host1", SERVE):
        assert _best(hosts, rate, size, enough=0.96) == pytest.approx(1, abs=0.04)


def test_what_comes_to_a_host_holds_up_nothing_that_leaves_it():
    """Acknowledgements that waited behind the bytes of two connections left 0.92 of the rate to the one that goes against them."""
    with testbed.testbed(4, RATE) as hosts, ExitStack() as started:
        for host, script in {"host0": SERVE, "host1": SERVE, "host2": KEEP_ON, "host3": KEEP_ON}.items():
            started.enter_context(_at_work(hosts, host, script))
        assert _best(hosts, RATE, 10_000_000, enough=0.96) > 0.96


@contextmanager
def _at_work(hosts, host: str, script: str):
    """A script on a host, from when it says that it is ready."""
    line = [hosts.agent, host, f"exec {sys.executable} -c '{script}'"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            yield
        finally:
            process.kill()


def _best(hosts, rate: float, size: int, enough: float) -> float:
    """Payload a second from host0 to host1, what passes at once aside, over what the rate leaves for it.

    Of the tries up to the first that has `enough`: a busy machine makes some of them slower, and none faster.
    """
    line = [hosts.agent, "host0", f"{sys.executable} -c '{SEND.format(size=size)}'"]
    best = 0.0
    for _ in range(TRIES):
        seconds = subprocess.run(line, capture_output=True, text=True, check=True).stdout
        best = max(best, (size - shaping.BURST_BYTES) / float(seconds) / (PAYLOAD * rate))
        if best > enough:
            break
    return best
