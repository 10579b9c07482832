"""Steps to a target by the global batch: planted laws come back, intervals cover them, and wrong tables are refused."""

import math
from math import nan

import numpy as np
import pytest

from sim.base.errors import WrongSetting
from sim.efficiency import law, published

BATCHES = (64, 128, 256, 512, 1024)


def planted(batch, s_min=1000.0, b_crit=300.0):
    return s_min * (1 + b_crit / batch)


@pytest.mark.parametrize("batches", [BATCHES, BATCHES[:2], (64, 64, 512)])
def test_a_planted_law_comes_back(batches):
    found = law.fit(batches, [planted(batch) for batch in batches])
    assert (found.s_min, found.b_crit) == pytest.approx((1000, 300), rel=1e-6)
    assert found.steps(4096).median == pytest.approx(planted(4096), rel=1e-6)
    assert found.freedom == len(set(batches)) - 2 + law.PUBLISHED.freedom


@pytest.mark.parametrize(("steps", "at_twice"), [((1000, 500), 250), ((1000, 1000), 1000)])
def test_without_a_bend_samples_or_steps_stay(steps, at_twice):
    assert law.fit((64, 128), steps).steps(256).median == pytest.approx(at_twice, rel=0.01)


def test_the_interval_grows_with_doublings_beyond_the_table():
    found = law.fit(BATCHES, [planted(batch) for batch in BATCHES])
    assert [found.beyond(batch) for batch in (16, 64, 100, 1024, 4096)] == [2, 0, 0, 0, 2]
    inside, twice, four_times = (found.deviation(batch) for batch in (1024, 2048, 4096))
    assert inside < twice < four_times
    alone = found._replace(a_doubling=0.0)
    assert math.sqrt(found.deviation(4096) ** 2 - alone.deviation(4096) ** 2) == pytest.approx(2 * found.a_doubling)
    low, high = (end / found.steps(4096).median for end in found.steps(4096)[1:])
    assert low * high == pytest.approx(1)


def test_intervals_cover_one_more_run_as_often_as_they_say():
    rng, inside, tries = np.random.default_rng(0), 0, 400
    for _ in range(tries):
        noisy = [planted(batch) * rng.lognormal(0, 0.05) for batch in BATCHES]
        _, low, high = law.fit(BATCHES, noisy).steps(512)
        inside += low <= planted(512) * rng.lognormal(0, 0.05) <= high
    assert 0.85 <= inside / tries <= 0.97


def test_repeats_tell_what_differs_from_run_to_run():
    noisy = [planted(batch) * factor for batch in BATCHES for factor in (0.8, 1.25)]
    found = law.fit([batch for batch in BATCHES for _ in range(2)], noisy)
    assert found.of_runs == pytest.approx(math.log(1.25 / 0.8) / math.sqrt(2))
    assert found.b_crit == pytest.approx(300, rel=1e-6)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("batch,steps\n64,1000\n64,1100\n", "two batches or more"),
        ("batch,updates\n64,1000\n128,600\n", "steps"),
        ("size,steps\n64,1000\n128,600\n", "batch"),
        ("batch,steps\n64,1000\n128,0\n", "row 2"),
        ("batch,steps\n-64,1000\n128,600\n", "row 1"),
        ("batch,steps\n64,\n128,600\n", str(nan)),
        ("batch,steps\n64,many\n128,600\n", "numbers from"),
        ("batch,steps\n", "at least one row"),
        ("", "columns batch, steps"),
    ],
)
def test_wrong_tables_are_refused_by_name(tmp_path, text, said):
    path = tmp_path / "steps.csv"
    path.write_text(text)
    with pytest.raises(WrongSetting, match=said) as error:
        law.read(str(path))
    assert "--until" in str(error.value)
    assert "steps.csv" in str(error.value)


def test_published_runs_are_in_order():
    for (model, metric, batch), one in published.table().groupby(["model", "metric", "batch"]):
        assert list(one["steps"]) == sorted(set(one["steps"])), (model, batch)
        assert list(one["value"]) == sorted(set(one["value"]), reverse=metric in published.FALLING)


def test_a_published_target_is_that_of_the_first_evaluation_that_reached_it():
    law_of = published.read("resnet50", "accuracy=0.755", "--until")
    assert law_of.batches == (200, 400, 800, 1600, 3200, 6400, 12800)
    assert 10_000 < law_of.steps(12800).median < 16_000
    again = published.read("resnet50", "accuracy=0.759", "--until")  # another source's, which reached this one alone
    assert again.batches[0] == 1632
    falling = published.runs("deepspeech2", "wer", 30.0)
    assert len(falling) == 6
    smallest = min(falling)
    assert falling[smallest] < published.runs("deepspeech2", "wer", 24.5)[smallest]


@pytest.mark.parametrize(
    ("model", "target", "said"),
    [
        ("vgg16", "accuracy=0.7", "accuracy=0.7 of vgg16.*a table .* as steps.csv; targets are known by name of bert"),
        ("resnet50", "loss=1", "accuracy=NUMBER of resnet50, or a table"),
        ("resnet50", "accuracy=0.9", r"accuracy from 0\.07004 to 0\.7576 or 0\.759 of resnet50"),
        ("resnet50", "accuracy=much", "of resnet50"),
        ("resnet50", "accuracy=nan", "of resnet50"),
        ("resnet50", "accuracy=0.001", "of resnet50"),
        ("bert_large", "accuracy=0.7", "accuracy 0.72 of bert_large"),
    ],
)
def test_targets_that_nobody_reached_are_refused(model, target, said):
    with pytest.raises(WrongSetting, match=said):
        published.read(model, target, "--until")
