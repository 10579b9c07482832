"""Processor sharing against closed forms."""

from __future__ import annotations

import pytest
import simpy

from sim.cpu import Cores


def finish_times(cores: int, arrivals: list[tuple[float, float]], **host) -> list[float]:
    """When tasks of (arrival_s, work_s) end."""
    env = simpy.Environment()
    shared, ends = Cores(env, cores, **host), {}

    def task(name, arrival_s, work_s):
        yield env.timeout(arrival_s)
        yield shared.work(work_s)
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
        (2, [(0, 1), (0, 1), (0, 1)], [1.5, 1.5, 1.5]),
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
