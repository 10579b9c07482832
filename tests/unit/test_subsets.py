"""The best of one's own machines, of several kinds: what they cost, and which are not looked at."""

import shlex
from pathlib import Path

import pytest

from sim import run as sim_run
from sim.base.errors import WrongSetting
from sim.plans import configurations, plan, question, show
from sim.plans.candidates import Figures
from sim.plans.configurations import Room
from sim.platform.cluster import Cluster, Host
from sim.simulation import simulate
from sim.sweeps import pools

OWN = """schema = "cluster/1"
hosts = [
    { name = "big", count = 2, gpu = "A100", price_per_hour = 3.0 },
    { name = "old", gpu = "T4", price_per_hour = 0.5 },
    { name = "twin", gpu = "A100", price_per_hour = 3.0 },
]
"""


@pytest.fixture
def own(tmp_path) -> str:
    path = tmp_path / "own.toml"
    path.write_text(OWN)
    return str(path)


def asked(own: str, **further) -> question.Question:
    given = {"hosts": [own], "workload": "mlp", "protocols": ["allreduce"], "samples_per_s": 1.0}
    return question.read(None, given | further)


def test_machines_of_one_kind_are_interchangeable(own):
    found = Room(asked(own)).all
    assert [(one.hosts, one.subset) for one in found] == [
        (1, (0, 1, 0)),
        (1, (1, 0, 0)),
        (2, (1, 1, 0)),
        (2, (2, 0, 0)),
        (3, (2, 0, 1)),
        (3, (2, 1, 0)),
        (4, (2, 1, 1)),
    ]
    assert [one.usd_per_hour for one in found] == [0.5, 3.0, 3.5, 6.0, 9.0, 6.5, 9.5]


def test_a_price_that_is_given_is_that_of_each_machine(own):
    assert {one.usd_per_hour for one in Room(asked(own, prices={own: 2.0})).all} == {2.0, 4.0, 6.0, 8.0}


def test_counts_and_a_limit_choose_among_numbers(own):
    assert {one.hosts for one in Room(asked(own, counts=[2, 3, 16])).all} == {2, 3}
    assert {one.hosts for one in Room(asked(own, hosts=[f"{own}*2"])).all} == {1, 2}
    with pytest.raises(WrongSetting, match="at most 4"):
        _ = Room(asked(own, counts=[5])).all


def test_of_more_subsets_than_the_bound_there_are_powers_of_two_and_all():
    """A note says so; more kinds than that are refused."""
    kinds = [Host(name=f"n{speed}", count=20, speed=speed) for speed in (1, 2, 3)]
    found, whole = configurations.subsets_of("own.toml", Cluster(hosts=kinds))
    assert not whole
    assert {number for one in found for number in one} == {0, 1, 2, 4, 8, 16, 20}
    assert len(found) == 7**3 - 1
    every, whole = configurations.subsets_of("own.toml", Cluster(hosts=kinds[:2]))
    assert whole
    assert len(every) == 21**2 - 1
    many = [Host(name=f"n{speed}", speed=speed) for speed in range(1, 14)]
    with pytest.raises(WrongSetting, match="with 8,192 subsets"):
        configurations.subsets_of("own.toml", Cluster(hosts=many))


def test_a_plan_says_that_not_all_subsets_were_looked_at(own, monkeypatch):
    Path(own).write_text(OWN.replace("count = 2", "count = 6"))
    assert Room(asked(own)).notes == []
    monkeypatch.setattr(configurations, "MOST_SUBSETS", 12)
    (note,) = Room(asked(own)).notes
    assert note.startswith("of each kind of host of ")


@pytest.mark.slow
def test_the_fastest_are_those_of_simulating_them_all(own, capsys):
    only_money = {"samples_per_s": None, "samples": 10**6, "budget": 1e6, "probability": 0.5}
    found = plan.answer(asked(own, **only_money), pools.of_size(1), 600.0)
    speeds = {one.subset: simulate(found.room.scenario(one), replications=1).samples_per_s for one in found.room.all}
    best = found.best[0].configuration.subset
    assert speeds[best] == pytest.approx(max(speeds.values()), rel=0.02)
    show.show(found)
    out = capsys.readouterr().out
    assert "2 big (A100) + 1 twin (A100)" in out


def test_the_command_simulates_the_subset(own, capsys):
    room = Room(asked(own))
    one = next(one for one in room.all if one.subset == (2, 1, 0))
    said = room.command(one, Figures(1.0, 1.0, 1.0, steps=5, warmup=2, runs=2))
    words = shlex.split(said)[3:]
    assert words[words.index("--what-if") + 1] == "hosts.0.count=2, hosts.1.count=1, hosts.2.count=0, workers=3"
    sim_run.main([*words, "--json"])
    assert '"workers": 3' in capsys.readouterr().out
