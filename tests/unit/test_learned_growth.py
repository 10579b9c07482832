"""The constants of steps beyond a table: they are learned from planted rows, and those in use are the ones that were learned."""

import re
from math import hypot
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

from calibration.scaling.changes import Origin
from experiments import growth as experiment
from experiments.kit import kept
from sim.answers import growth, ignorance

KEPT = Path(__file__).parents[2] / "docs/data/growth.json"
NONE = np.zeros(0)


def planted(law: growth.Law, count: int = 40) -> list[experiment.Row]:
    """Rows of two sizes each, off as a law says: its quantiles at even distances."""
    rows = []
    for at, level in enumerate(np.linspace(0.02, 0.98, count).tolist()):
        grown = (0.05, 0.1, 0.2)[at % 3]
        part = growth.Part(1.0, 0.0, law.scale(grown**2), law.faster)
        off = growth.quantile([part], level)
        rows.append(experiment.Row(f"{at}", [Origin(1.0, "", grown**2, NONE, NONE)], 1.0, off, 0.0, 0.0, 0.0, 0.0))
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("by_growth", [0.4, 3.0])
def test_planted_constants_are_learned(by_growth):
    law = growth.LAW._replace(by_growth=by_growth)
    rows = planted(law)
    found = experiment.learned(rows, growth.LAW, experiment.score)
    assert found.scale(0.01) == pytest.approx(law.scale(0.01), rel=0.4)
    assert experiment.score(rows, found).mean() < 0.97 * experiment.score(rows, growth.LAW).mean()


@pytest.mark.parametrize("times", [0.5, 2.0])
def test_planted_constants_of_jobs_without_a_table_are_learned(times):
    """Rows whose simulation is off by a deviation that is half or twice the one in use, and links that change as much."""
    law = ignorance.LAW._replace(elsewhere=times * ignorance.LAW.elsewhere, unchanged=times * ignorance.LAW.unchanged)
    rows = []
    for at, level in enumerate(np.linspace(0.02, 0.98, 40).tolist()):
        far, doublings = NormalDist().inv_cdf(level), 1.0 + at % 3
        off = law.deviation(doublings) * far * (1 if far > 0 else law.faster)
        free = hypot(law.deviation(doublings), law.unchanged * doublings) * far
        rows.append(experiment.Row(f"{at}", [], doublings, off, 0.0, off - free, 0.0, 0.0))
    found = experiment.learned(rows, ignorance.LAW, experiment.score_alone)
    assert found.elsewhere == pytest.approx(law.elsewhere, rel=0.35)
    assert found.unchanged == pytest.approx(law.unchanged, rel=0.35)
    assert found.step == law.step  # no row is of a measured size


def test_nothing_is_learned_of_rows_that_are_as_the_law_says():
    assert experiment.learned(planted(growth.LAW), growth.LAW, experiment.score) == growth.LAW


@pytest.mark.parametrize(("what", "law"), [("constants", growth.LAW), ("constants without a table", ignorance.LAW)])
def test_the_constants_in_use_are_those_that_were_learned(what, law):
    said = next(line for line in kept.read(KEPT).shown if isinstance(line, str) and line.startswith(f"{what}: "))
    assert {name: float(value) for name, value in re.findall(r"(\w+) ([\d.e-]+)(?:,|$)", said)} == law._asdict()
