"""Placement and stragglers of a scenario: the engine charges them as the event world does (and costs: test_worlds.py)."""

from dataclasses import replace

import pytest
from common import common
from event import agree, by_engine

from sim import stragglers
from sim.base.errors import WrongValue
from sim.laws import Constant
from sim.model.costs import Costs, Line


@pytest.mark.parametrize("said", ["ps-async", "ps-sync", "ps-sync barrier=true", "ps-backup", "ps-ssp staleness=1"])
def test_servers_hold_what_placement_gives_them(said):
    for number, placement in ((1, "round-robin"), (2, "greedy"), (3, "round-robin")):
        of = common(number, said)
        variables = [
            of.workload.variables[0].model_copy(update={"name": f"v{k}", "shape": (301 + 1000 * k, 7)})
            for k in range(5)
        ]
        workload = of.workload.model_copy(update={"variables": tuple(variables)})
        agree(replace(of, workload=workload, servers=2, placement=placement, variable_partitions=number, cluster=None))


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_one_slow_rank_is_slow_whichever_it_is(rank):
    """All streams were taken for alike where that of the first worker was a constant."""
    of = common(1, "allreduce")
    quiet = of.workload.model_copy(
        update={"costs": of.workload.costs.model_copy(update={"noise": Constant(value=1.0)})}
    )
    of = replace(of, workload=quiet, workers=4, stragglers=stragglers.read("none"))
    slow = replace(of, stragglers=stragglers.read(f"slow-ranks(factor=3, rank={rank})"))
    agree(slow)
    assert by_engine(slow).step_s.mean() > 1.05 * by_engine(of).step_s.mean()


def test_what_bytes_take_has_no_floor():
    with pytest.raises(WrongValue, match=r"reduce: floor_s = 0"):
        Costs(reduce=Line(floor_s=1e-3))
