"""Cores, and processor sharing on each, against closed forms."""

from __future__ import annotations

import pytest
import simpy

from sim.cpu import BALANCE_S, Cores


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


@pytest.mark.parametrize(
    ("cores", "arrivals", "expected"),
    [
        (1, [(0, 1)], [1]),
        (2, [(0, 1), (0, 2)], [1, 2]),
        (1, [(0, 1), (0, 1)], [2, 2]),
        (1, [(0, 1), (0, 2)], [2, 3]),  # half each till 2 s, then the second alone
        (1, [(0, 2), (1, 0.5)], [2.5, 2]),  # 1 s alone, 1 s shared, half a second alone
        (2, [(0, 1e-3), (0, 1e-3), (0, 1e-3)], [2e-3, 1e-3, 2e-3]),  # two on one core, and the other idles
        (2, [(0, 1), (0, 1), (0, 1)], [1.5 + BALANCE_S / 2, 1, 1.5 + BALANCE_S / 2]),  # until it takes one over
        (2, [(0, 1), (0, 3), (0.5, 1), (0.6, 1)], [1.5, 3.702, 2, 2.302]),  # it takes the one that has most left
    ],
)
def test_equal_shares(cores, arrivals, expected):
    assert finish_times(cores, arrivals) == pytest.approx(expected)


def test_speed_divides_work():
    assert finish_times(1, [(0, 1)], speed=4) == pytest.approx([0.25])


def test_contention_counts_busy_cores_not_tasks():
    assert finish_times(2, [(0, 1), (0, 1)], contention=0.5) == pytest.approx([1.5, 1.5])
    assert finish_times(2, [(0, 1)] * 4, contention=0.5) == pytest.approx([3, 3, 3, 3])
    assert finish_times(2, [(0, 1)], contention=0.5) == pytest.approx([1])


def test_no_work_is_lost():
    """Work conservation: one core is busy until all work is done, however it is shared."""
    arrivals = [(0.0, 0.3), (0.1, 0.7), (0.15, 0.05), (0.5, 1.1)]
    assert max(finish_times(1, arrivals)) == pytest.approx(sum(work_s for _, work_s in arrivals))


def test_who_goes_on_stays_and_who_has_waited_takes_the_core_with_least_to_do():
    """Two ranks on the first core of two, one on the second, which ends after 1 ms; then the first has more to do."""
    env = simpy.Environment()
    shared, ends = Cores(env, 2), {}

    def rank(name, works_s, waits_s):
        for work_s in works_s:
            yield shared.work(work_s, name)
            yield env.timeout(waits_s)
        ends[name] = env.now - waits_s

    for waits_s, expected in ((0.0, 4e-3), (1e-6, 3e-3)):
        processes = [env.process(rank(n, (1e-3,) * k, waits_s)) for n, k in (("a", 2), ("b", 1), ("c", 2))]
        start_s = env.now
        env.run(simpy.AllOf(env, processes))
        assert ends["a"] - start_s == pytest.approx(expected, rel=0.01)


def test_an_idle_core_takes_over_what_is_nobodys_at_once():
    env = simpy.Environment()
    shared = Cores(env, 2)
    rank, behind = shared.work(1e-3, "a"), [shared.work(1e-3) for _ in range(2)]
    env.run(simpy.AllOf(env, [rank, *behind]))
    assert env.now == pytest.approx(1.5e-3)


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
