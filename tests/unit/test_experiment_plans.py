"""What experiments fit and predict on this machine."""

from dataclasses import replace

import pytest

from experiments import collectives, learning, master_bandwidth, partitions, servers, validate
from experiments.kit.cells import Plan
from real.cells import Cell, refusal
from sim.protocols import PROTOCOLS


@pytest.fixture
def plan() -> Plan:
    return validate.plan(demo=False, seed=0)


def job(cell: Cell) -> Cell:
    """What a profile is played or asked, whatever its steps and random seed."""
    return replace(cell, steps=1, warmup=0, seed=0)


PLANS = {module.__name__: module.plan for module in (collectives, learning, master_bandwidth, partitions, servers)}
PLANS["demo of validate"], PLANS["validate"] = (
    (lambda seed, demo=demo: validate.plan(demo, seed)) for demo in (True, False)
)


@pytest.mark.parametrize("name", PLANS)
def test_what_is_predicted_is_not_fitted_and_can_be_run(name):
    chosen = PLANS[name](seed=3)
    predicted = [*chosen.predicted, *chosen.further]
    both = {job(cell) for cell in chosen.fitted} & {job(cell) for cell in predicted}
    # of validate's own cells those of 1 and 2 workers are fitted in other runs, which their tables count apart
    assert not both & {job(cell) for cell in (chosen.further if "validate" in name else predicted)}
    assert max(cell.workers for cell in chosen.fitted) <= 2
    assert not any(refusal(cell) for cell in [*chosen.fitted, *predicted])
    assert all(cell.partitions <= cell.batch for cell in predicted if cell.protocol == "amb")


def test_a_partition_of_amb_dg_is_fitted_cold_too(plan):
    """By fmb with a minibatch as small."""
    small = {(c.workload, c.batch) for c in plan.fitted if c.protocol == "fmb"}
    renewing = [c for c in [*plan.fitted, *plan.further] if c.protocol == "amb-dg"]
    assert {(c.workload, c.batch // c.partitions) for c in renewing} <= small


def test_every_protocol_over_mpi_is_predicted(plan):
    """But for those of a library, of layers and of sparse variables, which other experiments ask, and those that are texts alone."""
    elsewhere = {"horovod", "ps-layers", "hybrid"}
    elsewhere |= {"ddp", "fsdp", "hierarchical", "local-sgd", "d-psgd", "gradient-coding", "pipeline"}
    predicted = {cell.protocol for cell in [*plan.predicted, *plan.further]}
    assert set(PROTOCOLS) - elsewhere <= predicted
