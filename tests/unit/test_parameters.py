"""The file of parameters that a run ends with."""

import numpy as np
import pytest

from real.recording import parameters
from sim import protocols
from sim.job.scenario import Scenario
from sim.model.workload import NAMED

MLP = NAMED["mlp"]
FLAT = np.arange(MLP.parameters, dtype=np.float32)


@pytest.mark.parametrize(("servers", "parts"), [(1, 1), (2, 1), (3, 4)])
def test_servers_shards_make_whole_variables_again(tmp_path, servers, parts):
    scenario = Scenario(protocols.make("ps-sync"), MLP, servers=servers, variable_partitions=parts)
    pieces = [(place, FLAT[place]) for places in scenario.traffic.server_slices for place in places]
    parameters.write(tmp_path / "kept.npz", parameters.joined(MLP, reversed(pieces)))
    kept = parameters.read(tmp_path / "kept.npz")
    assert {name: values.shape for name, values in kept.items()} == {v.name: v.shape for v in MLP.variables}
    assert (np.concatenate([kept[v.name].ravel() for v in MLP.variables]) == FLAT).all()


def test_what_nobody_gave_is_not_a_number():
    first, *others = parameters.joined(MLP, [(slice(0, MLP.variables[0].size), FLAT[: MLP.variables[0].size])]).values()
    assert np.isfinite(first).all()
    assert all(np.isnan(values).all() for values in others)
