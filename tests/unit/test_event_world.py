"""The event world's own parts: its clock, and its memory. What it answers is compared everywhere else."""

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
from scenarios import CLUSTERS, EXACT_S, made
from sim.event.clock import Clock

from sim import event
from sim.answers.outcome import of_trace
from sim.event import world

JOBS = (("fmb",), ("amb", "time_limit_s=0.02"), ("ps-sync",), ("ps-async",), ("allreduce",), ("horovod",))


def job(said: tuple[str, ...], cluster: str = "one core each"):
    return next(scenario for _, scenario in made(cluster, said, "toy_fc", 3, 1))


def test_a_clock_holds_events_and_calls_in_one_order():
    clock, told = Clock(), []
    for number, time_s in enumerate([2.0, 1.0, 2.0, 1.0]):
        if number % 2:
            clock.call(time_s, told.append, number)
        else:
            clock.timeout(time_s).callbacks.append(lambda _, number=number: told.append(number))
    assert not clock.run_until(clock.event())
    assert told == [1, 3, 0, 2]


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("said", JOBS, ids=" ".join)
def test_a_trace_has_what_is_added_up_without_one(said, cluster):
    found, _ = event.run(job(said, cluster), want_trace=False)
    traced = of_trace(event.trace(job(said, cluster)))
    np.testing.assert_allclose(found.step_s, traced.step_s, rtol=0, atol=EXACT_S)
    np.testing.assert_array_equal(found.samples, traced.samples)
    np.testing.assert_allclose(found.idle_fraction, traced.idle_fraction, rtol=0, atol=1e-7)


@pytest.mark.parametrize("cluster", ["one core each", "four GPUs", "two cores"])
def test_memory_is_free_at_once(cluster):
    """A world's ranks refer to one another no more, so that the collector has nothing to find."""
    whole = world.EventWorld(replace(job(("fmb",), cluster), steps=2), 0, want_trace=False)
    machine = weakref.ref(whole.machines[-1])
    gc.disable()
    try:
        whole.run()
        whole.fall_apart()
        del whole
        assert machine() is None
    finally:
        gc.enable()
