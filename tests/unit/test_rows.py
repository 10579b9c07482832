"""Rows of sparse variables in the event world: whose samples count, and parts that are worked on side by side."""

import numpy as np
import pytest
from scenarios import EXACT_S
from test_engine_jobs import GATHER, MANY, ROWS, sparse

from sim import event
from sim.answers.outcome import of_trace
from sim.job.scenario import Scenario


@pytest.mark.parametrize("fused", ["true", "false"])
def test_the_samples_of_all_workers_count_where_all_variables_are_gathered(fused):
    found = event.trace(sparse(f"{GATHER} fused={fused}", variables=ROWS))
    assert set(of_trace(found).samples.ravel()) == {4 * 8}


@pytest.mark.parametrize(("cores", "slots"), [(1, 1), (8, 1), (MANY, 3)])
@pytest.mark.parametrize("said", ["hybrid", "ps-sync barrier=true", "ps-async", GATHER])
def test_parts_side_by_side_take_as_long_as_on_cores_that_are_events(monkeypatch, cores, slots, said):
    """A part has a core of its own, or all take turns on one; of an update that is quick, too."""
    scenario = sparse(said, cores=cores, slots=slots, cold_s=0.0, servers=3, variable_partitions=3)
    found = of_trace(event.trace(scenario))
    monkeypatch.setattr(Scenario, "cores_suffice", False)
    by_events = of_trace(event.trace(scenario))
    np.testing.assert_allclose(found.step_s, by_events.step_s, rtol=0, atol=EXACT_S)
    np.testing.assert_allclose(found.idle_fraction, by_events.idle_fraction, rtol=0, atol=1e-7)
