"""Training in simulated time: the simulation's times, gradients of the versions that ranks hold, and the parameters of plain loops."""

from collections import Counter
from dataclasses import replace

import event
import numpy as np
import pytest
from learning_jobs import MODEL, TRAINING, job, trained

from real.data import Batches
from real.learning.trainer import Trainer
from real.learning.values import Whole
from real.learning.vectors import Gradient
from real.models import initial
from sim.protocols import PROTOCOLS
from sim.recording.traces import Trace

KINDS = {  # every protocol, and settings that change whose gradients an update has
    "amb": ("amb", "time_limit_s=10ms", "partitions=4"),
    "fmb": ("fmb",),
    "kbatch-async": ("kbatch-async",),
    "kbatch-async of 2": ("kbatch-async", "gradients=2"),
    "amb-dg": ("amb-dg", "time_limit_s=10ms", "partitions=4", "window_s=15ms"),
    "ps-async": ("ps-async",),
    "ps-sync": ("ps-sync",),
    "ps-sync, barrier": ("ps-sync", "barrier=true"),
    "ps-backup": ("ps-backup",),
    "ps-ssp": ("ps-ssp", "staleness=1"),
    "ps-layers": ("ps-layers",),
    "allreduce": ("allreduce",),
    "allreduce, unfused": ("allreduce", "fused=false", "algorithm=ring"),
    "horovod": ("horovod",),
    "horovod, by name": ("horovod", "by_name=true"),
    "hybrid": ("hybrid",),
}
NEW = {
    name: (name, *settings)
    for name, *settings in (
        *(("ddp",), ("fsdp",), ("hierarchical", "group=3")),
        *(("local-sgd",), ("d-psgd",), ("gradient-coding",)),
    )
    if name in PROTOCOLS
}
KINDS |= NEW
APART = ("local-sgd", "d-psgd", "gradient-coding")  # whose weights are of their own
SERVED = ("amb", "fmb", "kbatch-async", "kbatch-async of 2", "amb-dg", "ps-async", "ps-sync", "ps-backup", "ps-ssp")
SAME = ("fmb", "ps-sync, barrier", *(kind for kind in KINDS if kind not in (*SERVED, "ps-sync, barrier", *APART)))
CLOSE = {"rtol": 1e-4, "atol": 1e-5}  # sums in another order
NOT_MEASURED = ("evaluate",)


def rows(trace: Trace, end_s: float = np.inf) -> list[tuple]:
    """Activities until a moment, sorted."""
    frame = trace.rows[(trace.rows["end_s"] <= end_s) & ~trace.rows["activity"].isin(NOT_MEASURED)]
    return sorted(frame.itertuples(index=False, name=None))


def updates(trace: Trace) -> list[tuple[list, int]]:
    """Of each update of rank 0: the rows of the gradients that it adds, and its samples."""
    mine = trace.rows[(trace.rows["rank"] == 0) & trace.rows["activity"].isin(["reduce", "update"])]
    found, added = [], []
    for row in mine.sort_values("end_s", kind="stable").itertuples():
        if row.activity == "reduce":
            added.append(row)
        else:
            found.append((added, row.samples))
            added = []
    return found


def test_no_protocol_is_left_out():
    """But the pipeline, whose layers have to say what their inputs are: test_language_trained has it."""
    assert {said[0] for said in KINDS.values()} == set(PROTOCOLS) - {"pipeline"}


@pytest.mark.parametrize("kind", KINDS)
def test_times_are_those_of_the_simulation(kind):
    """All activities are, of each replication; and samples are those of the updates, which the last rank has made when it counts."""
    scenario = job(*KINDS[kind])
    for replication in (0, 2):
        found, expected = trained(scenario, replication), event.trace(scenario, replication)
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


@pytest.mark.parametrize("kind", SERVED)
def test_gradients_are_of_the_versions_that_the_simulation_says(kind):
    """Those of each update, by the columns `version` and `peer` of what rank 0 adds; and of minibatches of its senders."""
    scenario = job(*KINDS[kind], workers=4, steps=20)
    found = trained(scenario)
    made = updates(event.trace(scenario))
    assert len(made) == len(found.summed) == len(found.versions) - 1
    stale = 0
    for number, ((added, samples), gradients) in enumerate(zip(made, found.summed, strict=True)):
        assert sum(len(gradient.samples) for gradient in gradients) == samples
        said = Counter(row.version for row in added)
        stale += sum(row.version < number for row in added)
        of = {one: _version(found.versions[: number + 1], one.whole.vector) for one in gradients}
        if kind == "amb-dg":  # a gradient counts as of a version of one of its partitions
            assert set(said) <= set(of.values())
            assert len(of) == samples // (scenario.batch // 4)
        elif kind == "amb":
            assert set(of.values()) == set(said)
        else:
            assert Counter(of.values()) == said
    assert stale > 0 or kind in ("amb", "fmb", "ps-sync", "ps-backup")


def _version(versions: list[np.ndarray], vector: np.ndarray) -> int:
    (found,) = [number for number, of in enumerate(versions) if (of == vector).all()]
    return found


@pytest.mark.parametrize("kind", ["fmb", "ps-async", "ps-ssp", "kbatch-async"])
def test_minibatches_are_those_of_a_real_run_in_its_order(kind):
    scenario = job(*KINDS[kind])
    found = trained(scenario, replication=1)
    data = Trainer(MODEL, 0, TRAINING).data
    streams = {
        worker: Batches(data, scenario.batch, scenario.seed, 1, worker) for worker in range(1, scenario.workers + 1)
    }
    for (added, _), gradients in zip(updates(event.trace(scenario, 1)), found.summed, strict=True):
        expected = {tuple(streams[row.peer].places()) for row in added}
        assert {tuple(gradient.samples) for gradient in gradients} == expected


@pytest.mark.parametrize("optimiser", ["sgd", "mom", "rms", "adm"])
def test_synchronous_protocols_end_with_the_same_parameters(optimiser):
    training = replace(TRAINING, optimiser=optimiser, learning_rate=None, decay_steps=3, decay_rate=0.5)
    ends = {kind: trained(job(*KINDS[kind]), training=training).versions[-1] for kind in SAME}
    for kind, end in ends.items():
        np.testing.assert_allclose(end, ends["fmb"], **CLOSE, err_msg=kind)


@pytest.mark.parametrize("kind", ["ps-sync, barrier", "ps-layers", "hybrid"])
@pytest.mark.parametrize("servers", [2, 3])
def test_several_servers_are_one_where_all_wait(kind, servers):
    for parts in (1, 2):
        scenario = job(*KINDS[kind], servers=servers, variable_partitions=parts)
        np.testing.assert_allclose(trained(scenario).end, trained(job("fmb")).end, **CLOSE)


def test_a_worker_of_several_servers_has_pieces_of_their_own_versions():
    """Each server's piece of the weights that a gradient is of is one of those that this server has made."""
    scenario, start = job("ps-async", servers=2, workers=4), Trainer(MODEL, 0, TRAINING).initial()
    held = [np.concatenate([np.arange(MODEL.parameters)[one] for one in of]) for of in scenario.traffic.server_slices]
    pieces = [{start[of].tobytes()} for of in held]

    def seen(versions):
        for server in (0, 1):
            me = versions._ranks[server]
            own = versions._values.array(versions._values.cells(me, me.held(me.weights, server)))
            pieces[server].add(own.tobytes())

    found = trained(scenario, seen=seen)
    mixed = [
        all(gradient.whole.vector[of].tobytes() in made for of, made in zip(held, pieces, strict=True))
        for gradients in found.summed
        for gradient in gradients
    ]
    assert sum(mixed) > 0.5 * len(mixed)
    assert len(found.times_s) == scenario.updates


def test_replications_have_times_minibatches_and_first_parameters_of_their_own():
    one, other = (trained(job("ps-async"), replication) for replication in (0, 1))
    assert one.times_s != other.times_s
    assert not np.allclose(one.versions[-1], other.versions[-1])
    assert not np.allclose(one.versions[0], other.versions[0])
    for run, found in enumerate((one, other)):
        np.testing.assert_array_equal(found.versions[0], initial(MODEL, 0, run))  # those of the real run of that number
    np.testing.assert_array_equal(initial(MODEL, 0), initial(MODEL, 0, 0))
    np.testing.assert_array_equal(one.versions[-1], trained(job("ps-async")).versions[-1])


def test_short_minibatches_are_the_first_samples_of_whole_ones():
    """amb computes the first partitions of the minibatch that it has drawn."""
    scenario = job("amb", "time_limit_s=10ms", "partitions=4", workers=2)
    found, data = trained(scenario), Trainer(MODEL, 0, TRAINING).data
    streams = [Batches(data, scenario.batch, scenario.seed, 0, worker) for worker in (1, 2)]
    sizes = set()
    for gradients in found.summed:
        whole, asked = [stream.places().reshape(4, -1).tolist() for stream in streams], [[], []]
        for gradient in gradients:
            (worker,) = (k for k in (0, 1) if gradient.samples.tolist() in whole[k])
            asked[worker].append(whole[worker].index(gradient.samples.tolist()))
        for each in asked:
            assert sorted(each) == list(range(len(each)))
            sizes.add(len(each))
    assert len(sizes) > 1


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
