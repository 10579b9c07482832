"""Published figures come with the package: every experiment that needs some has them, from any folder, with their source named."""

from importlib import import_module

import numpy as np
import pytest

from experiments import figures
from experiments.run import QUESTIONS

TABLES = sorted(path.stem for path in figures.FOLDER.glob("*.csv"))
# How each experiment that compares with figures of others gets them; the rest measure here.
PUBLISHED = {
    "published": lambda module: [module.measured("fmb")[0].step_s, module.measured("amb")[0].step_s, module.turn_s()],
    "parallax": lambda module: [value for model in module.MEASURED.values() for value in model.values()],
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_an_experiment_has_its_published_figures(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert name in QUESTIONS
    found = PUBLISHED[name](import_module(f"experiments.{name}"))
    assert len(found) > 2
    assert all((np.asarray(value) > 0).all() for value in found)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_names_its_source_and_holds_finite_numbers(name):
    head = [line for line in (figures.FOLDER / f"{name}.csv").read_text().splitlines() if line.startswith("#")]
    assert any(line.startswith("# Source: ") for line in head)
    table = figures.table(name)
    numbers = table.select_dtypes("number").to_numpy(float)
    assert len(table) > 20
    assert numbers.shape[1] > 0
    assert np.isfinite(numbers).all()
    assert (numbers >= 0).all()


def test_rounds_are_those_of_the_logs():
    """As the AMB repository counts them: 1331 rounds of 2420 samples, and 1861 of anytime minibatches."""
    for name, rounds, samples in (("ec2_fmb", 1331, 2420 * 1331), ("ec2_amb", 1861, 4_518_000)):
        table = figures.table(name)
        held = table.filter(like="samples").to_numpy().sum() * (10 if "samples" in table else 1)
        assert (len(table), held) == (rounds, pytest.approx(samples, rel=1e-3))
