"""A cluster in a box: hosts that are network namespaces of this machine, with shaped links between them. Linux, root only.

`real.run --testbed "100 Mbit/s" ...` runs each rank on a host of its own, over TCP; so do real.campaign and real.probe. A host is a
process that holds a network, a host name and an /etc/hosts of its own. A veth pair leads from it to a switch, which is in a namespace
too, so that the machine's own network is left alone. The switch shapes both directions of a host's traffic outside of the host
(real.launching.shaping), as clouds do. When a host's own queue drops a packet, TCP waits for 0.2 s. About 0.957 of the rate is
payload, because TCP's and Ethernet's headers count. The machine's own settings of TCP do not matter: hosts have Reno, queues as short
as a switch's, and a retransmission timeout as data centres set it.

The kernel removes a namespace with the last process in it. The processes that hold namespaces end with this one, however it ends.

Not there: delay (this needs the kernel's netem), and cores of their own: hosts share the machine's.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from real.launching import shaping
from real.launching.mpirun import Hosts, end_with_parent, interrupt
from sim.base.errors import RunFailed, WrongSetting
from sim.base.units import quantity

TOOLS = ("ip", "tc", "unshare", "nsenter")
SWITCH = "switch"  # where the bridge is, and mpirun
SUBNET = "10.213.7"
MOST_HOSTS = 64
RETRANSMIT = "10ms"  # instead of 200 ms
TCP = {
    "tcp_congestion_control": "reno",
    "tcp_slow_start_after_idle": 0,
}  # a connection is idle that has sent nothing for that timeout
PATIENCE_S, POLL_S = 10.0, 0.01
NETWORKS = "networks"  # file: the networks of hosts, while they are up
# Whoever began to enter a host when this process was killed may be in it a little later.
TAKE_AWAY = f"""
cat
ours=$(cat "$0/{NETWORKS}" 2>/dev/null)
clean=0 turn=0
while [ -n "$ours" ] && [ $clean -lt 5 ] && [ $turn -lt 100 ]; do
    clean=$((clean + 1)) turn=$((turn + 1))
    for one in /proc/[0-9]*; do
        network=$(readlink "$one/ns/net" 2>/dev/null) || continue
        case " $ours " in *" $network "*) clean=0; kill -9 "${{one#/proc/}}" 2>/dev/null ;; esac
    done
    sleep 0.1
done
rm -rf "$0"
"""
AGENT = """#!/bin/sh
# What mpirun starts a daemon with, as it would with ssh: agent HOST COMMAND...
host=$1
shift
exec nsenter --target "$(cat "$(dirname "$0")/$host.pid")" --net --uts --mount --wd sh -c "$*"
"""


def check() -> None:
    """Refuse where namespaces cannot be made.

    Raises:
        WrongSetting: not Linux, not root, or a tool is missing.
    """
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    reasons = {
        "another system": not sys.platform.startswith("linux"),
        "another user": os.geteuid() != 0,
        f"no {', '.join(missing)}": bool(missing),
    }
    given = next((reason for reason, holds in reasons.items() if holds), None)
    if given is None and subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode:
        given = "a root that may not make namespaces"
    if given:
        raise WrongSetting(
            "--testbed", given, "Linux, root, and iproute2 and util-linux installed: it makes namespaces"
        )


def rate(text: str) -> float:
    """Bytes per second of a link, from what a user wrote.

    Raises:
        WrongSetting: it is none.
    """
    try:
        found = quantity(text, "byte/second", "100 Mbit/s")
    except WrongSetting as error:
        raise WrongSetting("--testbed", text, 'the rate of every link, as "100 Mbit/s"') from error
    if not 1e4 <= found <= 1e11:
        raise WrongSetting("--testbed", text, "a rate from 10 kB/s to 100 GB/s")
    return found


@contextmanager
def testbed(hosts: int, rate_bytes_per_s: float) -> Iterator[Hosts]:
    """`hosts` hosts, host0 and so on, each behind a link of `rate_bytes_per_s` each way; taken down at the end.

    Raises:
        WrongSetting: see `check`; or too many hosts.
        RunFailed: the kernel refuses a command.
    """
    check()
    if not 1 <= hosts <= MOST_HOSTS:
        raise WrongSetting("--testbed", f"{hosts} hosts", f"1 to {MOST_HOSTS}")
    previous = signal.signal(signal.SIGTERM, interrupt)
    holders: dict[str, subprocess.Popen] = {}
    try:
        with _folder() as folder:
            try:
                yield _up(hosts, rate_bytes_per_s, folder, holders)
            finally:
                _down(holders)
                (folder / NETWORKS).unlink(missing_ok=True)
    finally:
        signal.signal(signal.SIGTERM, previous)


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder that goes when this process does, be it killed: another takes it away at the end of a pipe from this one.

    It also ends what is left on hosts, as a daemon of mpirun that had only begun, which waits for an mpirun that is no more.
    """
    folder = tempfile.mkdtemp(prefix="trainsim-testbed-")
    take_away = ["sh", "-c", TAKE_AWAY, folder]
    with subprocess.Popen(take_away, stdin=subprocess.PIPE, start_new_session=True):
        yield Path(folder)


@contextmanager
def asked(text: str | None, hosts: int) -> Iterator[Hosts | None]:
    """The value of the option --testbed: nothing, or the rate of the links of a testbed.

    Raises:
        WrongSetting: see `rate` and `testbed`.
    """
    if text is None:
        yield None
        return
    with testbed(hosts, rate(text)) as made:
        yield made


def add_option(parser: ArgumentParser) -> None:
    """--testbed."""
    parser.add_argument(
        "--testbed",
        metavar="RATE",
        help='give each rank a network namespace of this machine, with links of "100 Mbit/s" (needs root)',
    )


def _up(hosts: int, rate_bytes_per_s: float, folder: Path, holders: dict[str, subprocess.Popen]) -> Hosts:
    names = [f"host{number}" for number in range(hosts)]
    addresses = {name: f"{SUBNET}.{number + 1}" for number, name in enumerate([*names, SWITCH])}
    lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in addresses.items())]
    (folder / "hosts").write_text("\n".join(lines) + "\n")
    for name in addresses:
        holders[name] = _hold(name, folder)
    for name, holder in holders.items():
        _wait(holder, folder / f"{name}.pid")
    (folder / NETWORKS).write_text(" ".join(sorted(_networks(holders))))
    inside = {name: enter(holder.pid) for name, holder in holders.items()}
    _call(inside[SWITCH], "ip link add bridge0 type bridge")
    _call(inside[SWITCH], f"ip address add {addresses[SWITCH]}/24 dev bridge0")
    _call(inside[SWITCH], "ip link set bridge0 up")
    for name in names:
        port, up, down = f"port-{name}", f"up-{name}", f"down-{name}"
        _call(inside[SWITCH], f"ip link add {name} type veth peer name eth0 netns {holders[name].pid}")
        _call(inside[SWITCH], f"ip link add {port} type bridge")
        _call(inside[SWITCH], f"ip link add {up} type veth peer name {down}")
        for end, bridge in ((name, port), (up, port), (down, "bridge0")):
            _call(inside[SWITCH], f"ip link set {end} master {bridge} up")
        _call(inside[SWITCH], f"ip link set {port} up")
        _call(inside[name], f"ip address add {addresses[name]}/24 dev eth0")
        _call(inside[name], "ip link set eth0 up")
        route = f"{SUBNET}.0/24 dev eth0 proto kernel scope link src {addresses[name]}"
        _call(inside[name], f"ip route replace {route} rto_min {RETRANSMIT}")
        for command in shaping.commands((up, down), rate_bytes_per_s):  # from the host, and to it
            _call(inside[SWITCH], command)
    agent = folder / "agent"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    return Hosts(tuple(names), str(agent), tuple(inside[SWITCH]))


def enter(pid: int) -> list[str]:
    """The command before a command that is to run on the host that process `pid` holds."""
    return ["nsenter", "--target", str(pid), "--net", "--uts", "--mount", "--wd"]


def _hold(name: str, folder: Path) -> subprocess.Popen:
    """A process that holds a host and ends with this one."""
    script = f"hostname {name} && mount --bind {folder}/hosts /etc/hosts && ip link set lo up"
    script += "".join(f" && echo {value} > /proc/sys/net/ipv4/{key}" for key, value in TCP.items())
    script += f" && echo $$ > {folder}/{name}.new"
    script += f" && mv {folder}/{name}.new {folder}/{name}.pid && exec sleep infinity"
    return subprocess.Popen(
        ["unshare", "--net", "--uts", "--mount", "sh", "-c", script],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # this process handles Ctrl-C
        preexec_fn=end_with_parent,  # noqa: PLW1509 no thread runs yet
    )


def _wait(holder: subprocess.Popen, ready: Path) -> None:
    give_up_s = time.monotonic() + PATIENCE_S
    while not ready.exists():
        if holder.poll() is not None or time.monotonic() > give_up_s:
            words = holder.stderr.read().strip() if holder.poll() is not None else "it takes too long"
            raise RunFailed(f"no namespace could be made: {words}")
        time.sleep(POLL_S)


def _call(inside: list[str], line: str) -> None:
    done = subprocess.run([*inside, *line.split()], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunFailed(f"{line}: {' '.join(done.stderr.split()) or 'failed'}")


def _networks(holders: dict[str, subprocess.Popen]) -> set[str]:
    """The networks of hosts that are still held, and never the machine's own."""
    found = {network_of(holder.pid) for holder in holders.values() if holder.poll() is None}
    return {network for network in found if network} - {network_of(os.getpid())}


def _down(holders: dict[str, subprocess.Popen]) -> None:
    """End the processes on these hosts, those too that they start meanwhile, and then those that hold them."""
    ours, give_up_s = _networks(holders), time.monotonic() + PATIENCE_S
    pids = {holder.pid for holder in holders.values()}
    while (left := _in(ours) - pids) and time.monotonic() < give_up_s:
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(POLL_S)
    for holder in holders.values():
        holder.kill()
    for holder in holders.values():
        holder.wait()
        holder.stderr.close()


def _in(networks: set[str]) -> set[int]:
    """The processes in these networks."""
    return {pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if network_of(pid) in networks}


def network_of(pid: int) -> str | None:
    """The network namespace of a process; None if it has ended."""
    with suppress(OSError):
        return os.readlink(f"/proc/{pid}/ns/net")
    return None
