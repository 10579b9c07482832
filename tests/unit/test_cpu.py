"""Cores, and turns on each, against closed forms."""

import pandas as pd
import pytest
import simpy
from sim.event.machines.cores import MOST_TURNS, TICK_S, Cores

from sim import event, protocols
from sim.job.scenario import Scenario
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.platform.cluster import Cluster, Host, Link

FREE = Link(latency_s=0, overhead_s=0, bandwidth_bytes_per_s=float("inf"))


def finish_times(cores: int, arrivals: list[tuple[float, float]], **host) -> list[float]:
    """When tasks of (arrival_s, work_s) end."""
    env = simpy.Environment()
    shared, ends = Cores(env, cores, **host), {}

    def task(name, arrival_s, work_s):
        yield env.timeout(arrival_s)
        yield shared.work(work_s, name)
        ends[name] = env.now

    for name, arrival in enumerate(arrivals):
        env.process(task(name, *arrival))
    env.run()
    return [ends[name] for name in range(len(arrivals))]


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


def test_long_tasks_have_long_turns():
    """Of a twentieth of the shorter, or there would be an event each tick."""
    first_s, second_s = finish_times(1, [(0, 1000.0), (0, 1001.0)])
    assert second_s == pytest.approx(2001.0)
    assert 2000.0 - 2 * 1000.0 / MOST_TURNS < first_s < 2000.0


def test_short_turns_are_equal_shares():
    """Processor sharing is the limit: half each till 2 s, then the second alone."""
    assert finish_times(1, [(0, 1), (0, 2)], turn_s=1e-3) == pytest.approx([2, 3], rel=0.05)


def test_speed_divides_work():
    assert finish_times(1, [(0, 1)], speed=4) == pytest.approx([0.25])


def test_contention_counts_busy_cores_not_tasks():
    assert finish_times(2, [(0, 1), (0, 1)], contention=0.5) == pytest.approx([1.5, 1.5])
    assert max(finish_times(2, [(0, 1)] * 4, contention=0.5)) == pytest.approx(3)
    assert finish_times(2, [(0, 1)], contention=0.5) == pytest.approx([1])


@pytest.mark.parametrize("cores", [1, 2])
def test_work_takes_as_long_where_the_clock_is_coarse(cores):
    """After 11 days of simulated time it tells a tenth of a nanosecond."""

    def lasts_s(from_s: float) -> float:
        env = simpy.Environment(initial_time=from_s)
        shared = Cores(env, cores)
        for number in range(5):
            shared.work(T * (0.1 + number / 7), number)
        for _ in range(1000):  # a clock that stands still has events without end
            if env.peek() < float("inf"):
                env.step()
        assert env.peek() == float("inf")
        return env.now - from_s

    assert lasts_s(1e6) == pytest.approx(lasts_s(0), abs=1e-8)


def test_no_work_is_lost():
    """Work conservation: one core is busy until all work is done, however it is shared."""
    arrivals = [(0.0, 0.3), (0.1, 0.7), (0.15, 0.05), (0.5, 1.1)]
    assert max(finish_times(1, arrivals)) == pytest.approx(sum(work_s for _, work_s in arrivals))


def ranks_end(cores: int, works: dict[str, list[float]], waits_s: float = 0.0) -> dict[str, float]:
    """When ranks have done all their works, seconds of a core each, between which they wait."""
    env = simpy.Environment()
    shared, ends = Cores(env, cores), {}

    def rank(name, works_s):
        for work_s in works_s:
            yield shared.work(work_s, name)
            yield env.timeout(waits_s)
        ends[name] = env.now

    for name, works_s in works.items():
        env.process(rank(name, works_s))
    env.run()
    return ends


@pytest.mark.parametrize(("waits_s", "expected"), [(0.0, {"a": 2 / 3 * T, "b": T}), (1e-9, {"a": T, "b": 2 / 3 * T})])
def test_who_goes_on_keeps_the_core_and_its_turn(waits_s, expected):
    """Two pieces of work on end are like one; who has waited in between, however briefly, lets another have the core."""
    ends = ranks_end(1, {"a": [T / 3, T / 3], "b": [T / 3]}, waits_s)
    assert ends == pytest.approx(expected, rel=1e-3)


def test_who_goes_on_has_no_more_than_a_turn():
    assert ranks_end(1, {"a": [0.6 * T] * 3, "b": [T / 2]}) == pytest.approx({"a": 2.3 * T, "b": 1.5 * T})


@pytest.mark.parametrize(("waits_s", "last_s"), [(0.0, 2 * T), (1e-9, 1.7 * T)])
def test_who_has_waited_takes_the_core_with_least_to_do(waits_s, last_s):
    """Of two ranks on the first core one has waited, while the second core idles; one that goes on stays, and the other waits for it."""
    ends = ranks_end(2, {"a": [0.7 * T, 0.3 * T], "b": [0.6 * T], "c": [T]}, waits_s)
    assert ends == pytest.approx({"a": T, "b": 0.6 * T, "c": last_s}, rel=1e-3)


def test_an_idle_core_takes_over_what_is_nobodys_at_once():
    env = simpy.Environment()
    shared = Cores(env, 2)
    rank, behind = shared.work(3e-3, "a"), [shared.work(1e-3) for _ in range(2)]
    env.run(simpy.AllOf(env, behind))
    assert env.now == pytest.approx(2e-3)
    env.run(rank)
    assert env.now == pytest.approx(3e-3)


def test_looks_of_those_who_wait_take_the_rest_of_the_cores_first():
    env = simpy.Environment()
    shared, ends = Cores(env, 2), []

    def rank():
        yield shared.work(1.0)
        ends.append(env.now)

    shared.take(0.5)
    for _ in range(2):
        env.process(rank())
    env.run()
    assert ends == pytest.approx([4 / 3, 4 / 3])
    env.process(rank())
    env.run()
    assert ends[2] - ends[0] == pytest.approx(1.0)


def ring_of_a_host(workers: int, cores: int, costs: Costs, local: Link = FREE) -> pd.DataFrame:
    """Rows of an allreduce among ranks of one host."""
    cluster = Cluster(hosts=[Host(cores=cores, slots=9)], local=local, costs={"mlp": costs})
    text = protocols.make("allreduce", ["algorithm=ring"])
    return event.trace(Scenario(text, workload.read("mlp"), workers=workers, steps=1, warmup=0, cluster=cluster)).rows


def lengths_s(rows: pd.DataFrame, activity: str) -> list[float]:
    return sorted(rows[rows["activity"] == activity].eval("end_s - start_s"))


def test_an_update_stays_on_its_ranks_core():
    """Three on two cores: when the first ends, a core idles for a tick before it takes one over."""
    rows = ring_of_a_host(3, 2, Costs(update=Line(base_s=3 * TICK_S)))
    assert lengths_s(rows, "update") == pytest.approx([3 * TICK_S, 5 * TICK_S, 5 * TICK_S])


def test_threads_of_a_runtime_have_short_turns():
    """On one core each of two takes nearly as long as both; ranks of one thread come one after the other."""
    for local, first_s in ((FREE, TICK_S / 2), (FREE.model_copy(update={"background_s": 1e-9}), TICK_S)):
        rows = ring_of_a_host(2, 1, Costs(compute=Line(base_s=TICK_S / 2)), local)
        assert lengths_s(rows, "compute") == pytest.approx([first_s, TICK_S], rel=0.1)
