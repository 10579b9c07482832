"""What --testbed refuses, where mpirun's ranks go, and what a probe of a shaped link makes of its times."""

import os
import shutil

import numpy as np
import pytest

from real import run
from real.launching import mpirun as launch
from real.launching import testbed
from real.probing import link_from_times as wire
from sim.base.errors import WrongSetting
from sim.laws import LogNormal
from sim.platform.cluster import Link


@pytest.mark.parametrize(("text", "rate"), [("100 Mbit/s", 12.5e6), ("1Gbit/s", 1.25e8), ("5 MB/s", 5e6)])
def test_rates_are_read(text, rate):
    assert testbed.rate(text) == rate


@pytest.mark.parametrize("text", ["", "fast", "100 Mbit", "-1 Mbit/s", "0", "nan", "inf", "1 bit/s", "4x100Mbit/s"])
def test_what_is_no_rate_is_refused(text):
    with pytest.raises(WrongSetting, match="--testbed"):
        testbed.rate(text)


def test_only_root_makes_one(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(WrongSetting, match=r"--testbed.*root"), testbed.asked("100 Mbit/s", 3):
        pass


def test_a_missing_tool_is_named(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda tool: None if tool == "tc" else f"/sbin/{tool}")
    with pytest.raises(WrongSetting, match="no tc"), testbed.testbed(2, 1e6):
        pass


@pytest.mark.parametrize("hosts", [0, 65])
def test_so_many_hosts_are_refused(monkeypatch, hosts):
    monkeypatch.setattr(testbed, "check", lambda: None)
    with pytest.raises(WrongSetting, match="1 to 64"), testbed.testbed(hosts, 1e6):
        pass


def test_without_the_option_there_is_none():
    with testbed.asked(None, 3) as hosts:
        assert hosts is None


def test_it_does_not_go_with_other_hosts():
    with pytest.raises(WrongSetting, match=r"--testbed.*--cluster"):
        run.check(run.parse(["--testbed", "1 Gbit/s", "--cluster", "p3.16xlarge*2"]))


def test_ranks_go_one_to_each_host(monkeypatch):
    monkeypatch.setattr(launch, "mpirun", lambda: "mpirun")
    line = launch.command(2, "real.run", ["--quiet"], hosts=launch.Hosts(("a", "b"), "/tmp/agent", ("enter", "it")))
    assert line[:5] == ["enter", "it", "mpirun", "-n", "2"]
    assert line[line.index("--host") + 1] == "a:1,b:1"
    assert line[line.index("plm_ssh_agent") + 1] == "/tmp/agent"
    assert "self,sm" not in line
    assert line[-3:] == ["-m", "real.run", "--quiet"]


@pytest.mark.parametrize("cv", [0.1, 0.5, 1.0])
def test_a_probe_finds_how_unequal_shares_are(cv):
    """Planted: pairs of weights; the first to end takes 1 / (R share), both end after 2 / R."""
    one, other = LogNormal(cv=cv).draw(np.random.default_rng(0), 2 * 20_000).reshape(2, -1)
    share = np.maximum(one, other) / (one + other)
    assert wire.unfairness(1 / share, np.full(share.size, 2.0)) == pytest.approx(cv, rel=0.07)


def test_where_who_comes_second_has_as_much_nothing_has_to_grow():
    assert wire.ramp_bytes([2e6, 1e6], [1.9e6, 1.2e6]) == 0
    assert wire.ramp_bytes([2e6, 1e6], [0, -1e5]) == 2e6 * 17 / 16  # a sixteenth all the time


@pytest.mark.parametrize("turns", [False, True])
@pytest.mark.parametrize("burst_bytes", [0, 65_536])
@pytest.mark.parametrize("bandwidth", [1.2e7, 1.2e8])
def test_a_probe_finds_rate_and_burst(bandwidth, burst_bytes, turns):
    """Planted: 0.3 ms, a word there and one back, and what the rate makes of all bytes but the burst."""
    sizes = np.array(wire.LARGE_BYTES)
    seconds = 3e-4 + 2 * (3e-4 - 4e-5) * turns + (sizes - burst_bytes) / bandwidth
    small_s = 3e-4 + (0 if burst_bytes else wire.SMALL_BYTES / bandwidth)
    found = wire.link(small_s, 2e-5, sizes, seconds, turns)
    found.pop("message_s")
    link = Link(**found)
    assert link.bandwidth_bytes_per_s == pytest.approx(bandwidth, rel=1e-6)
    assert link.latency_s == pytest.approx(3e-4 - 4e-5, abs=1e-6)
    assert link.burst_bytes == pytest.approx(burst_bytes, rel=1e-3)
    assert link.fair
    assert link.eager_bytes == (wire.EAGER_BYTES if turns else None)


def test_what_a_probe_left_behind_is_bytes_at_the_ports_rate_but_for_noise():
    """A word that waits 2 ms at 50 MB/s waits behind 100 kB; never behind more than there is, or less than none."""
    assert wire.left_behind(2e-3, 50e6, 4e6) == pytest.approx(100e3)
    assert wire.left_behind(1.0, 50e6, 4e6) == 4e6
    assert wire.left_behind(-2e-3, 50e6, 4e6) == wire.left_behind(1e-5, 50e6, 4e6) == 0


def test_a_probe_tells_ranks_that_take_turns_from_ranks_that_do_not():
    """One late by a quarter of a message."""
    assert wire.takes_turns(2.05, 1, 0.25)
    assert not wire.takes_turns(1.3, 1, 0.25)


def test_ranks_of_one_machine_talk_through_memory_and_yield_while_they_wait(monkeypatch):
    monkeypatch.setattr(launch, "mpirun", lambda: "mpirun")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    line = launch.command(4, "real.run", [])
    at = line.index("mpi_yield_when_idle")
    assert line[at - 1 : at + 2] == ["--mca", "mpi_yield_when_idle", "1"]
    assert "self,sm" in line
