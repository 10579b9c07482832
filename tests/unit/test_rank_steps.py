"""Steps of each worker in all replications, of protocols whose answer has one step for all ranks."""

from __future__ import annotations

import pytest

from sim import protocols, simulate
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.model import workload
from sim.protocols import PROTOCOLS
from sim.stragglers import read
from sim.studies import rank_steps

WORKERS, STEPS = 3, 10


def job(name: str, law: str = "none") -> Scenario:
    made = protocols.make(name, ["time_limit_s=0.01"] if name == "amb" else [])
    return Scenario(made, workload.read("mlp"), WORKERS, STEPS, 2, stragglers=read(law))


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_replication_has_the_steps_of_every_worker(name):
    scenario = job(name)
    result = simulate(scenario, replications=2, first=3)
    frame = result.to_frame(by_rank=True)
    assert frame.columns.to_list() == ["replication", "step", "rank", "step_s"]
    assert set(frame["replication"]) == {3, 4}
    assert set(frame["rank"]) == set(range(scenario.servers, scenario.ranks))
    assert (frame["step_s"] > 0).all()
    if not scenario.protocol.by_arrival:
        assert len(frame) == 2 * STEPS * WORKERS
        means_s = frame[frame["step"] < STEPS - 1].groupby("replication")["step_s"].mean()
        assert means_s.to_numpy() == pytest.approx(result.step_s.mean(axis=1), rel=0.1)


def test_a_slow_worker_shows_where_others_do_not_wait_for_it():
    frame = simulate(job("ps-async", "slow-ranks(rank=2, seconds=5ms)"), replications=2).to_frame(by_rank=True)
    means_s = frame.groupby("rank")["step_s"].mean()
    assert means_s[2] > 0.005 + max(means_s[1], means_s[3]) / 2
    counts = frame.groupby("rank").size()
    assert counts[1] > counts[2]


def test_more_steps_than_there_is_room_for_are_refused(monkeypatch):
    monkeypatch.setattr(rank_steps, "MOST", 59)
    result = simulate(job("fmb"), replications=2)
    with pytest.raises(WrongSetting, match="by_rank: given True; allowed: False: workers make 60 steps"):
        result.to_frame(by_rank=True)
