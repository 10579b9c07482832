"""Published rates of training decoders: which sources may be looked at, and what is learned from them."""

from __future__ import annotations

import tomllib

import pytest
from test_sources import by_rule

from experiments import figures
from experiments.figures import CHOICE, HELD_OUT

LISTED = tomllib.loads((figures.FOLDER / "decoders.toml").read_text(encoding="utf-8"))
ELSEWHERE = {source.name: source for source in figures.sources()}


@pytest.mark.parametrize("name", LISTED)
def test_the_split_is_that_of_the_rule(name):
    source = LISTED[name]
    if name in ELSEWHERE:
        assert (source["cluster"], source["split"]) == (ELSEWHERE[name].cluster, ELSEWHERE[name].split)
    rule = "held out later" if source.get("later") else CHOICE if source.get("before") else by_rule(source["cluster"])
    assert source["split"] == rule


def test_each_source_has_rows_and_enough_of_them_are_held_out():
    rows = figures.table("decoders")
    assert set(rows.source) == set(LISTED)
    assert not rows.isna().any().any()
    held = rows[rows.source.map(lambda name: LISTED[name]["split"] == HELD_OUT)]
    assert held.source.nunique() >= 6
    assert len(held) >= 60
    assert {"A100-80GB", "H100", "B200", "MI300X"} <= set(held.gpu)
    later = rows[rows.source.map(lambda name: LISTED[name]["split"] == "held out later")]
    assert later.source.nunique() >= 4
    assert len(later) >= 20
