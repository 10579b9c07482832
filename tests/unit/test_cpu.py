"""Cores, and turns on each, against closed forms."""

from dataclasses import dataclass

import event
import pandas as pd
import pytest

from sim import protocols
from sim.job.scenario import Scenario
from sim.language.event.observed import ObservedWorld
from sim.language.hosts import TICK_S
from sim.language.hosts import Host as LanguageHost
from sim.language.job import Job, Layer
from sim.language.text import Text
from sim.language.verbs import pause
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.platform.cluster import Cluster, Host, Link

FREE = Link(latency_s=0, overhead_s=0, bandwidth_bytes_per_s=float("inf"))


@dataclass(frozen=True)
class Arriving(Text):
    """Each rank works for its seconds from its time on."""

    arrivals: tuple = ()
    name = "arriving"

    def __call__(self, me):
        arrival_s, work_s = self.arrivals[me.rank]
        for _ in me.steps():
            yield from pause(me, arrival_s)
            yield from me.work(seconds=work_s)


def finish_times(cores: int, arrivals: list[tuple[float, float]]) -> list[float]:
    """When works end that ranks of one host begin at their times."""
    job = Job(len(arrivals), (Layer(1),), per_host=len(arrivals), kinds=(LanguageHost(cores, TICK_S),))
    world = ObservedWorld(job, Arriving(tuple(arrivals)))
    world.run()
    ends_s = {row.rank: row.end_s for row in world.activities() if row.activity != "wait"}
    return [ends_s[rank] for rank in range(len(arrivals))]


T = TICK_S


@pytest.mark.parametrize(
    ("cores", "arrivals", "expected"),
    [
        (1, [(0, 1)], [1]),
        (2, [(0, 1), (0, 2)], [1, 2]),
        (1, [(0, T / 2), (0, T / 2)], [T / 2, T]),  # each within its turn
        (1, [(0, 1.5 * T), (0, 2 * T)], [2.5 * T, 3.5 * T]),  # a turn each, then half a turn of the first
        (1, [(0, 3 * T), (1.5 * T, T / 2)], [3.5 * T, 2 * T]),  # whose turn is over gives way at once
        (1, [(0, 1.5 * T), (0.5 * T, T / 2)], [2 * T, 1.5 * T]),  # else when it is
        (2, [(0, T / 2), (0, T / 2), (0, T / 2)], [T / 2, T / 2, T]),  # two on one core, and the other idles
        (
            2,
            [(0, 3 * T), (0, T / 2), (0, 3 * T)],
            [3.5 * T, T / 2, 4 * T],
        ),  # until it takes over who waits, a tick later
        (2, [(0, 3 * T), (0, T), (0, T / 2), (0, 9 * T)], [3.5 * T, T, 1.5 * T, 10 * T]),
    ],
)
def test_turns(cores, arrivals, expected):
    assert finish_times(cores, arrivals) == pytest.approx(expected)


def ring_of_a_host(workers: int, cores: int, costs: Costs, local: Link = FREE) -> pd.DataFrame:
    """Rows of an allreduce among ranks of one host."""
    cluster = Cluster(hosts=[Host(cores=cores, slots=9)], local=local, costs={"mlp": costs})
    text = protocols.make("allreduce", ["algorithm=ring"])
    return event.trace(Scenario(text, workload.read("mlp"), workers=workers, steps=1, warmup=0, cluster=cluster)).rows


def lengths_s(rows: pd.DataFrame, activity: str) -> list[float]:
    return sorted(rows[rows["activity"] == activity].eval("end_s - start_s"))


def test_threads_of_a_runtime_have_short_turns():
    """On one core each of two takes nearly as long as both; ranks of one thread come one after the other."""
    for local, first_s in ((FREE, TICK_S / 2), (FREE.model_copy(update={"background_s": 1e-9}), TICK_S)):
        rows = ring_of_a_host(2, 1, Costs(compute=Line(base_s=TICK_S / 2)), local)
        assert lengths_s(rows, "compute") == pytest.approx([first_s, TICK_S], rel=0.1)
