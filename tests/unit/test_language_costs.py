"""Placement and stragglers of a scenario: the engine charges them as the event world does (and costs: test_worlds.py)."""

from dataclasses import dataclass, replace

import pytest
from common import common
from event import agree, by_engine
from test_language_engine_jobs import KERNELS, Own

from sim import stragglers
from sim.base.errors import WrongValue
from sim.language import event
from sim.language.engine import job as engine
from sim.language.job import Job, Layer
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


@dataclass(frozen=True)
class Sums(Own):
    """Rank 0 puts half of the weights in place, adds half of a gradient, mixes another half, and the whole weights."""

    def __call__(self, me):
        for _ in me.steps():
            if me.rank:
                for piece in (me.weights, me.gradient, me.gradient):
                    yield from me.post(piece, 0, share=0.5)
            else:
                yield from me.take(1, me.weights)
                yield from me.take(1, me.gradient, adds=True)
                message = yield from me.take(1)
                yield from me.mix(me.gradient, message, 0.5, 0.5)
                yield from me.mix(me.gradient, me.weights, 0.5, 0.5)


@KERNELS
@pytest.mark.parametrize(("rows", "half_s"), [({}, 1.5), ({"rows_s": 2e-3, "rows_base_s": 3.0}, 4.0)])
def test_what_messages_take_is_what_their_costs_say(rows, half_s, kernel):
    """Both worlds ask one function."""
    costs = {"mix_base_s": 1.0, "mix_s": 1e-3, "take_up_base_s": 10.0, "take_up_s": 1e-2, **rows}
    of = Job(2, (Layer(1000, 0.0, 0.0),), latency_s=0.0, bandwidth=float("inf"), **costs)
    for found in (event.run(of, Sums()), engine.run(of, Sums(), kernel)):
        assert found.ends_s == pytest.approx([15.0 + 2 * half_s + 2.0])
