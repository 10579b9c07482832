"""What a simulation may take of the machine: it ends in a line where it has taken that."""

from dataclasses import replace
from itertools import count

import pytest

from sim import needs, protocols
from sim.base.errors import WrongSetting
from sim.job.scenario import LATER, Scenario
from sim.language.event import world
from sim.model import workload
from sim.model.sparse_rows import Rows
from sim.model.workload import Variable, Workload
from sim.platform.cluster import Cluster, Host
from sim.runs.replications import Replications

JOB = Scenario(protocols.make("fmb"), workload.read("mlp"), 2, steps=10**6, warmup=0)


@pytest.mark.parametrize(
    ("more", "option"),
    [
        ({}, "--steps: given 1000000"),
        ({"workers": 50, "steps": 10, "cluster": LATER}, "--workers: given 51"),
        ({"cluster": Cluster(hosts=[Host(count=3, cores=4000)]), "steps": 10}, "--workers: given 3"),
    ],
    ids=["steps", "ranks", "cores"],
)
def test_the_event_world_ends_where_there_is_no_more_memory(monkeypatch, more, option):
    """As it grows, or before its ranks and hosts are there."""
    grown = count(0, 10**5)
    monkeypatch.setattr(world, "peak_bytes", lambda: next(grown))
    monkeypatch.setattr(needs, "most_bytes", lambda: 3e6)
    with pytest.raises(WrongSetting, match=f"{option}; allowed: a smaller job: the event world would take .* GB"):
        Replications(replace(JOB, **more), "event").traced(0)


def test_rows_that_a_part_is_of_need_memory():
    """How often each of them is drawn is an array; NumPy refused 7 TiB."""
    rows = Rows(per_sample=1, of=10**12)
    variables = [Variable(name="a", shape=(100, 10), rows=rows), Variable(name="b", shape=(9,))]
    model = Workload(name="parts", variables=variables)
    with pytest.raises(WrongSetting, match="--workload: given 'parts'; allowed: smaller variables"):
        Replications(Scenario(protocols.make("hybrid"), model, 2))
