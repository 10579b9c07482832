"""What the experiment validate fits and predicts."""

from dataclasses import replace

import pytest

from experiments import validate
from real.cells import Cell, refusal
from sim.protocols import PROTOCOLS


@pytest.fixture
def plan():
    return validate.plan(demo=False, seed=0)


def job(cell: Cell) -> Cell:
    """What a profile is played or asked, whatever its steps and luck."""
    return replace(cell, steps=1, warmup=0, seed=0)


def test_no_further_cell_is_fitted(plan):
    """Nor are more workers than two."""
    fitted = {job(cell) for cell in plan.fitted}
    assert not fitted & {job(cell) for cell in plan.further}
    assert max(cell.workers for cell in plan.fitted) == 2


def test_amb_dg_is_fitted_on_other_settings_than_it_is_predicted_on(plan):
    fitted, predicted = ([c for c in cells if c.protocol == "amb-dg"] for cells in (plan.fitted, plan.further))
    for field in ("workers", "time_limit_s", "settings", "stragglers"):
        assert not {getattr(c, field) for c in fitted} & {getattr(c, field) for c in predicted}


def test_a_partition_of_amb_dg_is_fitted_cold_too(plan):
    """By fmb with a minibatch as small."""
    small = {(c.workload, c.batch) for c in plan.fitted if c.protocol == "fmb"}
    renewing = [c for c in [*plan.fitted, *plan.further] if c.protocol == "amb-dg"]
    assert {(c.workload, c.batch // c.partitions) for c in renewing} <= small


def test_every_fitted_kind_is_repeated(plan):
    assert plan.fits > 1


def test_every_protocol_over_mpi_is_predicted(plan):
    """But for those of a library, of layers and of sparse variables, which other experiments ask, and those that are texts alone."""
    elsewhere = {"horovod", "ps-layers", "hybrid"}
    elsewhere |= {"ddp", "fsdp", "hierarchical", "local-sgd", "d-psgd", "gradient-coding", "pipeline"}
    predicted = {cell.protocol for cell in [*plan.predicted, *plan.further]}
    assert set(PROTOCOLS) - elsewhere <= predicted


def test_real_run_would_run_them_all(plan):
    assert not any(refusal(cell) for cell in [*plan.fitted, *plan.predicted, *plan.further])
