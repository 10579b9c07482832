"""Hosts and GPUs of a cluster on which a job has no rank are named, and options that its protocol does not use."""

import pickle
from dataclasses import replace

import pytest

from sim import protocols
from sim.answers import notes
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.model import workload
from sim.plans import question
from sim.plans.configurations import Room
from sim.platform import cluster
from sim.platform.cluster import Cluster, Provenance
from sim.run import main as run
from sim.simulation import simulate

MODEL = workload.NAMED["resnet50"]
CORES = Cluster(hosts=[{"name": "a", "cores": 4}, {"name": "b", "count": 3, "cores": 4}])


def said(where, workers, protocol="allreduce", **more):
    where = cluster.read(where) if isinstance(where, str) else where
    return notes._idle(Scenario(protocols.make(protocol), MODEL, workers, cluster=where, **more))


@pytest.mark.parametrize(
    ("where", "workers", "note"),
    [
        ("p3.8xlarge*4", 16, None),
        ("p3.8xlarge*4", 3, "3 workers on 16 GPUs: 13 idle, and no rank on 3 of 4 hosts (3 x p3.8xlarge)"),
        ("p3.8xlarge*1", 1, "1 worker on 4 GPUs: 3 idle; --workers 4"),
        (CORES, 2, "no rank on 3 of 4 hosts (3 x b)"),
        (CORES, 9, "no rank on 1 of 4 hosts (b)"),
        (CORES, 13, None),
        (None, 3, None),
    ],
)
def test_what_is_idle_is_said(where, workers, note):
    found = said(where, workers)
    assert len(found) == (note is not None)
    assert all(one.startswith(note) for one in found)


def test_servers_take_slots_or_none():
    assert said("p3.8xlarge*4", 15, "ps-sync") == []
    assert "2 idle; --workers 14" in said("p3.8xlarge*4", 12, "ps-sync", servers=2)[0]
    assert "4 idle, and" in said("p3.8xlarge*4", 12, "ps-sync", servers=2, servers_on="workers")[0]


def test_a_profile_may_have_as_many_hosts_as_anybody_asks_for():
    known = {"provenance": Provenance()}
    assert said(CORES.model_copy(update=known), 1) == ["no rank on 3 of 4 hosts (3 x b)"]
    assert said(Cluster(hosts=[{"count": cluster.UNCOUNTED}], **known), 1) == []


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            ["--protocol", "amb", "--batch", "8"],
            "--set partitions: given nothing, which means 16; allowed: an integer from 1",
        ),
        (["--protocol", "amb", "--batch", "8", "--set", "partitions=9"], "--set partitions: given 9; allowed"),
        (
            ["--protocol", "ps-sync", "--servers", "2", "--cluster", "m3.xlarge"],
            "--workers: given nothing, which means 3; allowed: at most 2",
        ),
        (["--cluster", "p3.2xlarge*2", "--workers", "4"], "--workers: given 4; allowed"),
    ],
)
def test_a_value_that_nobody_gave_is_not_said_to_be_given(words, complaint):
    with pytest.raises(WrongSetting) as refused:
        run(["--workload", "resnet50", *words])
    assert complaint in str(refused.value)


OF_SERVERS = {"servers": 2, "servers_on": "workers", "placement": "greedy", "variable_partitions": 2}


@pytest.mark.parametrize(
    ("protocol", "unused"),
    [
        ("allreduce", {*OF_SERVERS}),
        ("horovod", {*OF_SERVERS}),
        ("ddp", {*OF_SERVERS}),
        ("fmb", {*OF_SERVERS} - {"servers_on"}),  # a master
        ("ps-sync", set()),
    ],
)
def test_options_that_a_protocol_does_not_use_are_said(protocol, unused):
    job = Scenario(protocols.make(protocol), MODEL, **OF_SERVERS)
    assert {one.split()[0] for one in job.unused} == {f"--{name.replace('_', '-')}" for name in unused}
    assert pickle.loads(pickle.dumps(job)).unused == job.unused
    notes = simulate(replace(job, steps=2, **OF_SERVERS), replications=1).notes
    assert (f"{job.protocol.name} does not use {', '.join(job.unused)}" in notes) == bool(unused)
    assert Scenario(protocols.make(protocol), MODEL).unused == ()


def test_placement_is_that_of_several_servers():
    assert Scenario(protocols.make("ps-sync"), MODEL, placement="greedy").unused == ("--placement greedy",)


def test_choices_that_no_configuration_has_are_said():
    asked = {"hosts": "p3.2xlarge*2", "counts": [1, 2, 4], "protocols": "allreduce", "samples_per_s": 1}
    room = Room(question.read(None, asked | {"servers": [1, 2], "placements": ["greedy"], "batches": [16]}))
    said = ["4 of --counts", "1, 2 of --servers", "greedy of --placements"]
    assert room.notes == [f"no configuration uses {one}" for one in said]
    assert Room(question.read(None, asked | {"servers": [1, 2], "protocols": "ps-sync", "counts": 2})).notes == []
