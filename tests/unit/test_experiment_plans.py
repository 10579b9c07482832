"""What experiments fit and predict on this machine."""

from dataclasses import replace

import pytest

from experiments import collectives, learning, master_bandwidth, partitions, servers, validate
from experiments.kit.cells import Plan
from real.cells import Cell, refusal
from real.libraries import entries


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
def test_what_is_predicted_is_not_fitted_and_can_be_run(name, monkeypatch):
    monkeypatch.setattr(entries, "find_spec", lambda library: library)  # Horovod, which need not be installed
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


def test_protocols_of_masters_and_of_servers_are_predicted(plan):
    wanted = {"fmb", "amb", "amb-dg", "kbatch-async", "allreduce", "ps-async", "ps-sync", "ps-backup", "ps-ssp"}
    assert wanted <= {cell.protocol for cell in [*plan.predicted, *plan.further]}
