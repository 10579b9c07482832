"""A campaign that was cut off goes on."""

import json
from contextlib import nullcontext
from dataclasses import fields, replace

import pytest

from real import campaign
from real.campaign import header_of, left
from real.options import scenario
from real.run import parse
from sim.job.header import RECORDED, Header
from sim.recording.traces import Trace, read

CELL = (
    "--protocol amb --set time_limit_s=0.1 --workers 2 --steps 3 --warmup 1 --batch 32 --workload mlp --seed 4 --trace"
)
# What a campaign may ask for instead: any of these is another job.
OTHERS = [
    *(
        "--protocol amb-dg",
        "--set time_limit_s=0.2",
        "--workers 3",
        "--steps 4",
        "--warmup 2",
        "--batch 64",
        "--seed 5",
    ),
    *("--workload toy_fc", "--stragglers none", "--test-size 9", "--test-size 9 --evaluate-every 2"),
    *(
        "--data synthetic",
        "--optimiser sgd",
        "--learning-rate 0.5",
        "--decay-steps 3",
        "--decay-rate 0.5",
        "--threads 2",
    ),
    *("--device gpu", "--device gpu --cpu-master", "--engine numpy"),
]
SERVED = "--protocol ps-async --runtime mpi --servers 2 --workers 2 --steps 3 --workload mlp --trace"
OTHERS_SERVED = ["--servers 1", "--placement greedy", "--variable-partitions 2", "--protocol ps-sync"]
OTHERS_SERVED.append("--runtime tensorflow")


@pytest.fixture
def cell(tmp_path):
    """One whose trace is there."""
    return recorded(CELL, tmp_path / "a.jsonl")


def recorded(words, trace):
    """A cell, and its trace, from another host."""
    parsed = parse([*words.split(), str(trace)])
    job = scenario(parsed)
    run = {"hosts": (("here", 2),) * job.ranks, "evaluations": ((0, 2.0, 0.5),), "details": {"on": 1}}
    Trace.of(replace(header_of(parsed), **run), []).write(parsed.trace)
    return parsed


def test_what_has_its_trace_is_left_out(cell, tmp_path):
    """The other cells, and the probe, are still to do."""
    other = parse([*CELL.split(), str(tmp_path / "b.jsonl")])
    probe = tmp_path / "probe.json"
    assert left([cell, other], str(probe)) == ([other], str(probe))
    probe.touch()
    assert left([cell], str(probe)) == ([], None)


@pytest.mark.parametrize(("words", "more"), [*((CELL, m) for m in OTHERS), *((SERVED, m) for m in OTHERS_SERVED)])
def test_the_trace_of_another_job_counts_for_nothing(tmp_path, words, more):
    """What is asked for is run."""
    same = recorded(words, tmp_path / "a.jsonl")
    given = [*words.split(), same.trace]
    kept = [word for pair in zip(given[::2], given[1::2], strict=True) if pair[0] not in more.split() for word in pair]
    asked = parse([*kept, *more.split()])
    assert left([same, asked], None) == ([asked], None)


@pytest.mark.parametrize("field", [one.name for one in fields(Header) if one.name not in RECORDED])
def test_a_field_of_the_header_is_compared(cell, field):
    """A new one too, unless it says where a run was or how it went."""
    found = read(cell.trace).header
    another = {"name": "another"} if field == "model" else "another"
    assert found.job != replace(found, **{field: another}).job
    assert found.job == replace(found, cluster="another", hosts=(), cpu_s={"0": 1.0}, details={}).job


def test_a_trace_that_was_cut_short_counts_for_nothing(cell):
    """Though it is of the same job."""
    found = read(cell.trace)
    Trace(replace(found.header, complete=False), found.rows).write(cell.trace)
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
    for module, name in ((campaign.home, "need"), (campaign.launch, "launch"), (campaign.needs, "check")):
        monkeypatch.setattr(module, name, lambda *_: None)
    probe = str(tmp_path / "probe.json")
    assert campaign.main([str(cells), "--probe", probe, "--resume", "--testbed", "1 Gbit/s"]) == 0
    assert ranks == [3]
