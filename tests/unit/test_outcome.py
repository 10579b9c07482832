"""Outcomes of hand-made traces, and intervals that cover as often as they say."""

from dataclasses import replace

import numpy as np
import pytest

from sim.answers.outcome import Outcome, join, of_trace
from sim.base import interval
from sim.base.errors import WrongSetting
from sim.recording.traces import Trace


def runs(step_s, samples=32.0):
    """An outcome of two ranks that never waited."""
    return Outcome(step_s, np.full(step_s.shape, samples), np.zeros((len(step_s), 2)))


def coverage(outcomes_and_next, level=0.9):
    """How often the interval of an outcome covers the throughput of one more run."""
    covered = []
    for seen, unseen in outcomes_and_next:
        low, high = seen.interval(level)
        covered.append(low <= unseen <= high)
    return np.mean(covered)


def test_steps_run_from_update_to_update_and_warm_up_is_left_out(trace):
    outcome = of_trace(trace)
    assert outcome.step_s.tolist() == [[2.0, 5.0]]
    assert outcome.samples.tolist() == [[18, 12]]
    assert outcome.throughput() == pytest.approx([30 / 7])


def test_waiting_is_counted_inside_the_measured_window_only(trace):
    assert of_trace(trace).idle_fraction == pytest.approx(np.array([[1 / 7, (1 + 1) / 7]]))


def test_without_warm_up_the_first_step_starts_at_zero(trace):
    outcome = of_trace(Trace(replace(trace.header, warmup=0), trace.rows))
    assert outcome.step_s.tolist() == [[2.0, 2.0, 5.0]]
    assert outcome.idle_fraction == pytest.approx(np.array([[2 / 9, (0.5 + 2.3 + 1) / 9]]))


def test_a_run_cut_short_counts_its_complete_steps(trace):
    outcome = of_trace(Trace(trace.header, trace.rows[trace.rows.end_s < 9]))
    assert outcome.step_s.tolist() == [[2.0]]
    assert outcome.idle_fraction == pytest.approx(np.array([[0.5, 0.5]]))


def test_steps_after_a_lost_one_are_not_complete(trace):
    lost = (trace.rows.activity == "update") & (trace.rows.step == 1)
    with pytest.raises(WrongSetting, match="1 of warm-up"):
        of_trace(Trace(trace.header, trace.rows[~lost]))


def test_order_of_rows_does_not_matter(trace):
    shuffled = Trace(trace.header, trace.rows.sample(frac=1, random_state=0))
    assert of_trace(shuffled).step_s.tolist() == of_trace(trace).step_s.tolist()


@pytest.mark.parametrize("rows", [0, 5])
def test_a_trace_without_a_measured_step_is_refused(trace, rows):
    with pytest.raises(WrongSetting, match="at least one step after warm-up"):
        of_trace(Trace(trace.header, trace.rows[:rows]))


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_interval_of_replications_covers_one_more_normal_run(level):
    rng = np.random.default_rng(1)
    throughput = rng.normal(100, 5, (1500, 6))
    pairs = ((runs(32 / row[:5, None]), row[5]) for row in throughput)
    assert coverage(pairs, level) == pytest.approx(level, abs=0.04)


@pytest.mark.parametrize("steps", [20, 25, 100])
def test_interval_of_a_single_run_covers_one_more(steps):
    rng = np.random.default_rng(2)
    step_s = rng.gamma(4, 0.25, (1500, 2, steps))
    pairs = ((runs(seen[None]), runs(unseen[None]).throughput()[0]) for seen, unseen in step_s)
    assert 0.87 < coverage(pairs) < 0.93


def test_interval_of_a_single_run_in_closed_form():
    """Ten batches of 2 samples in 1 s or 3 s: ratio 1, residuals of 1, relative variance 10/9 x 10 / 20^2; t(9) = 1.8331."""
    step_s = np.repeat([0.5, 1.5] * 5, 2)[None]
    half = 1.8331 * np.sqrt(2 / 36)
    assert runs(step_s, samples=1.0).interval() == pytest.approx((np.exp(-half), np.exp(half)), rel=1e-4)


def test_equal_runs_have_an_interval_without_width():
    assert runs(np.full((3, 4), 0.5)).interval() == pytest.approx((64, 64))
    assert runs(np.full((1, 40), 0.5)).interval() == pytest.approx((64, 64))


@pytest.mark.parametrize("replications", [1, 4])
def test_one_step_far_out_leaves_the_interval_above_zero(replications):
    step_s = np.ones((replications, 40))
    step_s[0, 3] = 1000.0
    low, high = runs(step_s).interval()
    assert 0 < low < high


def test_the_middle_of_speeds_is_that_of_times():
    """Replications that differ by factors leave the prediction where it is, of seconds and of samples a second alike."""
    step_s = np.exp(0.5 * np.array([-1.0, 0, 1]))[:, None] * np.full((3, 4), 0.25)
    assert interval.middle(runs(step_s).throughput()) == pytest.approx(32 / 0.25)
    assert interval.middle(step_s.mean(axis=1)) == pytest.approx(0.25)


def test_too_few_steps_of_a_single_run_say_nothing():
    assert np.isnan(runs(np.ones((1, 19))).interval()).all()
    assert np.isfinite(runs(np.ones((1, 20))).interval()).all()


def test_join_stacks_replications_and_counts():
    one, two = runs(np.ones((1, 3))), runs(np.full((2, 3), 2.0))
    both = join([one, two])
    assert both.step_s[:, 0].tolist() == [1, 2, 2]
    assert both.idle_fraction.shape == (3, 2)


def test_join_refuses_runs_of_different_length():
    with pytest.raises(WrongSetting, match="same number of steps"):
        join([runs(np.ones((1, 3))), runs(np.ones((1, 4)))])


def test_billions_of_samples_have_the_interval_of_as_many_thousands():
    """Samples are integers of 64 bits, and the square of their sum is beyond them."""
    rng = np.random.default_rng(0)
    step_s, samples = 1 + 0.01 * rng.random(1000), 4000 + rng.integers(0, 100, 1000)
    few, many = (np.array(interval.of_batches(step_s, factor * samples)) for factor in (1, 10**6))
    assert many / 10**6 == pytest.approx(few)
