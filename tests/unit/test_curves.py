"""Curves of learning: when evaluated parameters were made, after how many samples, and when a target was reached."""

from dataclasses import replace

import event
import numpy as np
import pytest
from scenarios import CLUSTERS, SETTINGS, bare

from sim import protocols
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.recording.curves import Curves, Target, curves, reached
from sim.recording.traces import Activity, Trace


def evaluated(trace: Trace, *evaluations: tuple[int, float, float], rank: int = 0) -> Trace:
    """The fixture's trace with evaluations, each half a second after the step's update began to be there."""
    ends_s = {0: 2.0, 1: 4.0, 2: 9.0}
    rows = [Activity(ends_s[step] + 0.25, ends_s[step] + 0.5, rank, step, "evaluate", 8) for step, *_ in evaluations]
    made = [Activity(*row) for row in trace.rows.itertuples(index=False)] + rows
    return Trace.of(replace(trace.header, evaluations=evaluations), made)


def with_numbers(trace: Trace) -> Trace:
    """A simulated trace with made-up results of its evaluations."""
    steps = trace.rows.loc[trace.rows["activity"] == "evaluate", "step"]
    return Trace(replace(trace.header, evaluations=tuple((int(step), 1.0, 0.5) for step in steps)), trace.rows)


@pytest.mark.parametrize("rank", [0, 1])
def test_an_evaluation_counts_when_its_parameters_were_made(trace, rank):
    """Whichever rank evaluates; warm-up is inside."""
    found = curves(evaluated(trace, (0, 2.3, 0.1), (2, 0.4, 0.8), rank=rank))
    assert found.step.tolist() == [1, 3]
    assert found.time_s.tolist() == [2.0, 9.0]
    assert found.samples.tolist() == [16, 46]
    assert found.loss.tolist() == [2.3, 0.4]
    assert found.accuracy.tolist() == [0.1, 0.8]


def test_before_the_first_update_nothing_has_been_learnt(trace):
    early = Activity(0.0, 0.1, 0, 0, "evaluate", 8)
    rows = [early, *(Activity(*row) for row in trace.rows.itertuples(index=False))]
    found = curves(Trace.of(replace(trace.header, evaluations=((0, 2.3, 0.1),)), rows))
    assert (found.step.tolist(), found.time_s.tolist(), found.samples.tolist()) == ([0], [0.0], [0])


def test_without_evaluations_curves_are_empty(trace):
    found = curves(trace)
    assert {len(getattr(found, name)) for name in Curves.__dataclass_fields__} == {0}
    assert np.isnan(reached(found, "loss=1"))


def test_evaluations_without_their_activities_are_refused(trace):
    with pytest.raises(WrongSetting, match=r"^t\.jsonl: given '2 evaluations in its header, 0 activities `evaluate`'"):
        curves(Trace(replace(trace.header, evaluations=((0, 2.3, 0.1), (1, 2.2, 0.2))), trace.rows), "t.jsonl")


def evaluating(cluster: str, said: tuple[str, ...]) -> Scenario:
    name, *settings = said
    about = {"steps": 4, "warmup": 0, "batch": 16, "test_size": 100, "evaluate_every": 2}
    return Scenario(protocols.make(name, settings), bare("toy_fc"), 3, cluster=CLUSTERS[cluster], **about)


@pytest.mark.parametrize("cluster", ["one core each", "two cores"])
@pytest.mark.parametrize("said", SETTINGS, ids=" ".join)
def test_every_protocol_evaluates_the_update_of_its_step(cluster, said):
    """At the end of that update to the last digit, where each rank has a core, and where they share some."""
    trace = event.trace(evaluating(cluster, said))
    found, rows = curves(with_numbers(trace)), trace.rows
    steps = rows.loc[rows["activity"] == "evaluate", "step"].to_numpy()
    updates = rows[(rows["rank"] == 0) & (rows["activity"] == "update")].groupby("step")  # of all its pieces
    assert len(steps) > 1
    assert found.step.tolist() == (steps + 1).tolist()
    assert found.time_s.tolist() == updates["end_s"].max().loc[steps].tolist()
    assert found.samples.tolist() == updates["samples"].sum().cumsum().loc[steps].tolist()


CURVES = Curves(
    step=np.array([10, 20, 30, 40]),
    time_s=np.array([1.5, 2.5, 4.0, 6.0]),
    samples=np.array([640, 1280, 1920, 2560]),
    loss=np.array([2.0, np.nan, 0.3, 0.5]),
    accuracy=np.array([0.2, 0.9, 0.85, 0.95]),
)


@pytest.mark.parametrize(
    ("target", "time_s"),
    [
        ("accuracy=0.9", 2.5),  # though it is worse again afterwards
        ("accuracy=0.91", 6.0),
        ("accuracy=0.1", 1.5),
        ("accuracy=1", np.nan),
        ("loss=0.3", 4.0),
        ("loss=0.29", np.nan),  # a loss that is no number is not small
        ("loss=1e3", 1.5),
        (Target("loss", 0.6), 4.0),
    ],
    ids=str,
)
def test_a_target_is_reached_at_the_first_evaluation_that_meets_it(target, time_s):
    assert reached(CURVES, target) == pytest.approx(time_s, abs=0, nan_ok=True)


@pytest.mark.parametrize(
    "text",
    [
        "accuracy=1.5", "accuracy=nan", "accuracy=0", "accuracy=-0.1", "accuracy=90%", "accuracy=", "accuracy", "Accuracy=0.9",
        "loss=-1", "loss=0", "loss=inf", "loss=nan", "foo=3", "foo=0.5", "=0.5", "", "accuracy=0.9,loss=0.3",
    ],
)  # fmt: skip
def test_what_is_no_target_is_refused(text):
    with pytest.raises(WrongSetting) as refused:
        Target.read(text)
    assert str(refused.value).startswith(f"--until: given {text!r}; allowed: accuracy=0.9 or loss=0.3")


def test_a_complaint_names_the_setting_that_was_given():
    with pytest.raises(WrongSetting, match=r"^target: "):
        Target.read("foo=3", "target")
