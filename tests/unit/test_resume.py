"""A campaign that was cut off goes on."""

import json
from contextlib import nullcontext
from dataclasses import replace

import pytest

from real import campaign
from real.campaign import left
from real.options import scenario
from real.run import parse
from sim.traces import Trace, read

CELL = (
    "--protocol amb --set time_limit_s=0.1 --workers 2 --steps 3 --warmup 1 --batch 32 --workload mlp --seed 4 --trace"
)


@pytest.fixture
def cell(tmp_path):
    """One whose trace is there."""
    parsed = parse([*CELL.split(), str(tmp_path / "a.jsonl")])
    Trace.of(scenario(parsed).header("mpi", hosts=["here"]), []).write(parsed.trace)
    return parsed


def test_what_has_its_trace_is_left_out(cell, tmp_path):
    """The other cells, and the probe, are still to do."""
    other = parse([*CELL.split(), str(tmp_path / "b.jsonl")])
    probe = tmp_path / "probe.json"
    assert left([cell, other], str(probe)) == ([other], str(probe))
    probe.touch()
    assert left([cell], str(probe)) == ([], None)


@pytest.mark.parametrize(
    "change",
    [{"world": "event"}, {"steps": 4}, {"seed": 5}, {"settings": {"time_limit_s": 0.2}}, {"stragglers": "none"}],
)
def test_the_trace_of_another_job_counts_for_nothing(cell, change):
    """What is asked for is run."""
    found = read(cell.trace)
    Trace(replace(found.header, **change), found.rows).write(cell.trace)
    assert left([cell], None) == ([cell], None)


def test_half_a_trace_counts_for_nothing(cell, tmp_path):
    """Of a disk that was full."""
    (tmp_path / "a.jsonl").write_text('{"protocol": "am')
    assert left([cell], None) == ([cell], None)


def test_a_probe_that_alone_is_left_has_three_hosts_in_the_testbed(cell, tmp_path, monkeypatch):
    """As a probe by itself: two do not tell how messages share a port."""
    cells, ranks = tmp_path / "cells.json", []
    cells.write_text(json.dumps([[*CELL.split(), cell.trace]]))
    monkeypatch.setattr(campaign.testbed, "asked", lambda _, hosts: nullcontext(ranks.append(hosts)))
    monkeypatch.setattr(campaign.launch, "command", lambda *_, **__: [])
    for name in ("check_installed", "check_memory", "launch"):
        monkeypatch.setattr(campaign.launch, name, lambda *_: None)
    probe = str(tmp_path / "probe.json")
    assert campaign.main([str(cells), "--probe", probe, "--resume", "--testbed", "1 Gbit/s"]) == 0
    assert ranks == [3]
