"""Training in simulated time: the simulation's times, and what protocols learn (of which gradients: test_language_trained)."""

from dataclasses import replace

import event
import numpy as np
import pytest
from learning_jobs import MODEL, TRAINING, job, trained

from real.learning.trainer import Trainer
from real.learning.values import Whole
from real.learning.vectors import Gradient
from real.models import initial
from sim.protocols import PROTOCOLS
from sim.recording.traces import Trace

OWN = {  # settings that change whose gradients an update has
    "amb": ("time_limit_s=10ms", "partitions=4"),
    "amb-dg": ("time_limit_s=10ms", "partitions=4", "window_s=15ms"),
    "ps-ssp": ("staleness=1",),
    "hierarchical": ("group=3",),
}
KINDS = {  # but the pipeline, whose layers have to say what their inputs are: test_language_trained has it
    **{name: (name, *OWN.get(name, ())) for name in PROTOCOLS if name != "pipeline"},
    "kbatch-async of 2": ("kbatch-async", "gradients=2"),
    "ps-sync, barrier": ("ps-sync", "barrier=true"),
    "allreduce, unfused": ("allreduce", "fused=false", "algorithm=ring"),
    "horovod, by name": ("horovod", "by_name=true"),
}
SAME = ("fmb", "ps-sync, barrier", "ps-layers", "allreduce", "allreduce, unfused", "horovod", "horovod, by name")
SAME += ("hybrid", "ddp", "fsdp", "hierarchical")
CLOSE = {"rtol": 1e-4, "atol": 1e-5}  # sums in another order
NOT_MEASURED = ("evaluate",)


def rows(trace: Trace, end_s: float = np.inf) -> list[tuple]:
    """Activities until a moment, sorted."""
    frame = trace.rows[(trace.rows["end_s"] <= end_s) & ~trace.rows["activity"].isin(NOT_MEASURED)]
    return sorted(frame.itertuples(index=False, name=None))


@pytest.mark.parametrize("kind", KINDS)
def test_times_are_those_of_the_simulation(kind):
    """All activities are; and samples are those of the updates, which the last rank has made when it counts."""
    scenario = job(*KINDS[kind], steps=5)
    found, expected = trained(scenario, 2), event.trace(scenario, 2)
    assert sorted(row for row in found.rows if row.activity not in NOT_MEASURED) == rows(expected)
    updates = expected.rows[(expected.rows["activity"] == "update") & (expected.rows["samples"] > 0)]
    made = updates[updates["rank"] == 0].sort_values("end_s")
    times = scenario.workers if scenario.by_all_ranks else 1
    assert found.samples == (times * np.cumsum(made["samples"])).tolist()
    made = expected.rows[(expected.rows["activity"] == "update")]
    made = made if scenario.by_all_ranks else made[made["rank"] == 0]
    ends_s = made.groupby("step")["end_s"].max()  # of several pieces the last
    if kind != "local-sgd":  # whose weights are an average's, later than those of an update
        assert found.times_s == pytest.approx(ends_s.tolist(), rel=0.02)


@pytest.mark.parametrize("optimiser", ["sgd", "adm"])
def test_synchronous_protocols_end_with_the_same_parameters(optimiser):
    training = replace(TRAINING, optimiser=optimiser, learning_rate=None, decay_steps=3, decay_rate=0.5)
    ends = {kind: trained(job(*KINDS[kind], steps=5), training=training).versions[-1] for kind in SAME}
    for kind, end in ends.items():
        np.testing.assert_allclose(end, ends["fmb"], **CLOSE, err_msg=kind)


def test_replications_have_times_minibatches_and_first_parameters_of_their_own():
    one, other = (trained(job("ps-async"), replication) for replication in (0, 1))
    assert one.times_s != other.times_s
    assert not np.allclose(one.versions[-1], other.versions[-1])
    assert not np.allclose(one.versions[0], other.versions[0])
    for run, found in enumerate((one, other)):
        np.testing.assert_array_equal(found.versions[0], initial(MODEL, 0, run))  # those of the real run of that number
    np.testing.assert_array_equal(initial(MODEL, 0), initial(MODEL, 0, 0))
    np.testing.assert_array_equal(one.versions[-1], trained(job("ps-async")).versions[-1])


# ---- what computes


def test_samples_that_many_workers_have_are_computed_once(monkeypatch):
    """Where the workers' minibatches are much of the training set; the sum is the same, to rounding."""
    asked, trainer = [], Trainer(MODEL, 0, TRAINING)
    size = len(trainer.data.train_y)
    weighted = trainer._engine.weighted
    monkeypatch.setattr(trainer._engine, "weighted", lambda *given: asked.append(len(given[1])) or weighted(*given))
    rng, whole = np.random.default_rng(0), Whole(trainer.initial())
    parts = [Gradient(rng.permutation(size)[: size // 4]) for _ in range(12)]
    for part in parts:
        part.whole = whole
    found = trainer.sum(parts)
    assert asked == [len(np.unique(np.concatenate([part.samples for part in parts])))]
    assert trainer.computed == 12 * (size // 4)  # as many samples as the workers have
    x, y = trainer.data.train_x, trainer.data.train_y
    one_by_one = sum(trainer._engine.fixed(whole.vector, x[part.samples], y[part.samples]).sum for part in parts)
    np.testing.assert_allclose(found, one_by_one, rtol=1e-4, atol=1e-3)
    assert trainer.share(size // 4, 12) == pytest.approx(asked[0] / trainer.computed, rel=0.05)
    assert trainer.share(1, 2) == 1.0
