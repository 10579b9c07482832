"""The list of published sources: the split of each follows the rule that was written first, and each table is well-formed.

No prediction is made of a source that is held out: not here, and not before the end.
"""

from __future__ import annotations

import hashlib
from importlib import import_module

import numpy as np
import pytest

from experiments import figures
from experiments.figures import CHOICE, HELD_OUT
from sim import zoo

SOURCES = figures.sources()
TABLES = [source.name for source in SOURCES if not source.module]
NUMBERS = ["batch", "hosts", "gpus", "samples_per_s"]


def test_each_source_has_its_figures_and_each_table_is_listed():
    assert sorted(TABLES) == sorted(path.stem for path in (figures.FOLDER / "sizes").glob("*.csv"))
    for source in SOURCES:
        assert not source.module or import_module(f"experiments.extrapolation.{source.module}")
    assert len(SOURCES) >= 20


def by_rule(cluster: str) -> str:
    return CHOICE if int(hashlib.sha256(cluster.encode()).hexdigest()[0], 16) % 2 else HELD_OUT


def test_the_split_is_that_of_the_rule():
    """Named here, too: a source that was moved after its predictions were seen would have to be moved in two files."""
    assert all(source.split == CHOICE if source.before else by_rule(source.cluster) for source in SOURCES)
    held = [source.name for source in SOURCES if source.split == HELD_OUT]
    assert sorted(held) == [
        "dlperf",
        "horovod_900",
        "lambda_h100_pcie",
        "mosaic_h100",
        "mxnet_4968",
        "p3_jeffwan",
        "p3_markmp",
        "p3_wskinner",
        "paddle_perf",
    ]
    assert len(held) >= sum(not source.before for source in SOURCES) / 3


def test_sources_of_one_cluster_go_together():
    splits: dict[str, set] = {}
    for source in SOURCES:
        splits.setdefault(source.cluster, set()).add((source.split, source.before))
    assert all(len(found) == 1 for found in splits.values())
    assert len(splits["EC2 p3.16xlarge"]) == 1


@pytest.mark.parametrize("name", TABLES)
def test_a_table_names_its_source_and_what_is_not_stated(name):
    head = (figures.FOLDER / "sizes" / f"{name}.csv").read_text(encoding="utf-8").splitlines()[:3]
    assert head[0].startswith("# ")
    assert head[1].startswith("# Source: ")
    assert head[2].startswith("# Not stated: ")


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_well_formed(name):
    rows = figures.table(f"sizes/{name}")
    assert [*rows] == ["model", "million_parameters", "system", "precision", "summed_by", *NUMBERS]
    assert np.isfinite(rows[NUMBERS].to_numpy(float)).all()
    assert (rows[NUMBERS] > 0).all().all()
    assert (rows.gpus % rows.hosts == 0).all()
    assert set(rows.summed_by) <= {"allreduce", "servers", "sharded"}
    assert rows.gpus.nunique() >= 3
    of_zoo = rows.model.isin(zoo.names())
    assert (of_zoo | (rows.million_parameters > 0)).all()
    assert rows.million_parameters[of_zoo].isna().all()
