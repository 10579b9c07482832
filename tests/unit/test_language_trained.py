"""Texts that train real models in simulated time: as plain arrays do, and each gradient once."""

import weakref
from dataclasses import dataclass, replace

import numpy as np
import pytest
from learning_jobs import MODEL, TRAINING, job
from learning_texts import Drifting, Gossip, Swapped, TopPart

import real.learning.optimisers
import real.learning.values
from real.data import Batches
from real.engines import engine_of
from real.learning.learning import learn
from real.learning.train import train
from real.learning.trainer import Trainer
from real.learning.values import ModelValues
from real.learning.vectors import Gradient, Held
from real.learning.versions import Versions
from real.training.row_optimiser import RowOptimiser
from real.training.trainee import Training
from sim import protocols
from sim.base.errors import RunFailed
from sim.job.scenario import Scenario
from sim.language.event import EventWorld
from sim.language.job import Job, Laws, Layer, worker_number
from sim.language.learning import Chain, Values
from sim.language.pieces import Piece
from sim.language.text import Text
from sim.language.verbs import compute
from sim.laws import Exponential
from sim.laws.base import NOTHING, ONES, Steps
from sim.model.workload import NAMED
from sim.recording.curves import curves
from sim.texts import TEXTS

SGD = replace(TRAINING, optimiser="sgd")
SIZES = [variable.size for variable in MODEL.variables]
ENDS = np.cumsum([0, *SIZES])
CLOSE = {"rtol": 1e-4, "atol": 1e-5}  # sums in another order
BATCH, STEPS = 16, 6


class Plain(Values):
    """Vectors as arrays, each rank's own; each gradient is computed at once, and by itself."""

    kind = np.float32

    def __init__(self, job, text, training):
        super().__init__(job, Chain(), text.data == "shared")
        self.job, self.text, self.trainer = job, text, Trainer(MODEL, job.seed, training)
        self.passes, self.optimisers, self.numbers = {}, {}, {}

    def begin(self, ranks):
        start = self.trainer.initial()
        for me in ranks:
            self.vectors[me.rank] = {"weights": start.copy(), "gradient": np.zeros_like(start)}
            owner = 1 if self.text.data == "shared" else worker_number(me.rank, self.text.servers)
            batches = Batches(self.trainer.data, self.job.batch, self.job.seed, 0, owner)
            self.numbers[me.rank] = [batches.places() for _ in range(20 * self.job.steps)]

    def forward(self, me, command):
        samples = self.job.micro_batch(command.micro, command.of)
        of = self.numbers[me.rank][me.step if self.text.data == "shared" else me.round]
        new = of[samples.start : samples.stop], np.zeros(ENDS[-1], np.float32)
        before = self.passes[me.rank, "activation", command.first, command.micro] if command.first else None
        places, seen = before or new
        seen = seen.copy()
        layers = slice(ENDS[command.first], ENDS[command.stop])
        seen[layers] = self.vectors[me.rank]["weights"][layers]
        self.passes[me.rank, "activation", command.stop, command.micro] = places, seen

    def backward(self, me, command):
        kind = "activation" if command.stop == len(SIZES) else "slope"
        places, seen = self.passes[me.rank, kind, command.stop, command.micro]
        self.passes[me.rank, "slope", command.first, command.micro] = places, seen
        found = self.trainer._engine.fixed(seen, self.trainer.data.train_x[places], self.trainer.data.train_y[places])
        layers = slice(ENDS[command.first], ENDS[command.stop])
        self.vectors[me.rank]["gradient"][layers] += np.float32(command.weight) * found.sum[layers]

    def update(self, me, command):
        piece, training = command.piece, self.trainer.training
        key = me.rank, piece.start, piece.stop
        if key not in self.optimisers:
            self.optimisers[key] = engine_of(training.engine).optimiser(*training.rates)
        gradient = self.view(me, Piece("gradient", piece.start, piece.stop))
        if piece.items:
            self.optimisers[key].apply(self.view(me, piece), gradient, command.samples)
        gradient[:] = 0

    def read(self, me, piece):
        kind, *numbers = piece.vector.split()
        found = self.passes.get((me.rank, kind, *map(int, numbers))) if numbers else None
        return found or super().read(me, piece)

    def put(self, me, piece, values, adds, weight):
        kind, *numbers = piece.vector.split()
        if numbers:
            self.passes[(me.rank, kind, *map(int, numbers))] = values
        else:
            super().put(me, piece, values, adds, weight)


def of_text(text: Text, ranks: int, **of_job) -> Job:
    layers = tuple(Layer(size, 0.002, 0.004, 2) for size in SIZES)
    laws = {"laws": Laws(sleep=Exponential(mean=0.02), seed=3), **of_job}
    return Job(ranks, layers, STEPS, batch=BATCH, bandwidth=1e5, **laws)


def run(text: Text, job: Job, training=SGD, made=lambda *version: None, trainer=None):
    """The values of all ranks after a run."""
    trainer, versions = trainer or Trainer(MODEL, job.seed, training), Versions(made, text.each)
    values = ModelValues(job, text, trainer, 0, versions)
    world = EventWorld(job, text, values)
    versions.samples = world.samples.of
    world.run()
    return values, world, versions


def weights(values, world) -> list[np.ndarray]:
    """Of each rank; what it has dropped is NaN."""
    found = []
    for me in world.ranks:
        each = [values.cells(me, me.weights[k : k + 1])[0] for k in range(me.weights.items)]
        lost = [cell.node is real.learning.values.LOST for cell in each]
        found.append(
            np.array([np.nan if gone else values.array([cell])[0] for gone, cell in zip(lost, each, strict=True)])
        )
    return found


KINDS = {
    "amb": (4, {"time_limit_s": 0.03, "partitions": 4}),
    "amb-dg": (4, {"time_limit_s": 0.03, "partitions": 4, "window_s": 0.05}),
    "ps-async": (6, {"servers": 2}),
    "ps-ssp": (5, {"servers": 2, "staleness": 1}),
    "ps-sync": (5, {"backup": 1}),
    "ps-layers": (6, {"servers": 2}),
    "ddp": (4, {"bucket_mb": 2e-4, "accumulate": 2}),
    "horovod": (4, {"cycle_s": 0.004}),
    "hierarchical": (6, {"group": 3}),
    "local-sgd": (4, {"local": 2, "outer_rate": 0.7, "momentum": 0.9}),
    "pipeline": (3, {"micro_batches": 4}),
    "gradient-coding": (5, {"late": 1}),
    "d-psgd": (4, {"drawn": True}),
}


@pytest.mark.parametrize("name", TEXTS)
def test_ranks_end_with_the_weights_of_plain_arrays(name):
    ranks, settings = KINDS.get(name, (4, {}))
    text, training = TEXTS[name](**settings), replace(TRAINING, learning_rate=0.05)
    (*_, last) = check_plain(text, of_text(text, ranks), training)
    assert not np.allclose(last, Trainer(MODEL, 0, training).initial(), equal_nan=True)


def check_plain(text: Text, job: Job, training=SGD) -> list[np.ndarray]:
    """The weights of all ranks, which are those of plain arrays."""
    found, world, _ = run(text, job, training)
    plain = Plain(job, text, training)
    EventWorld(job, text, plain).run()
    for rank, mine in enumerate(weights(found, world)):
        np.testing.assert_allclose(mine, plain.vectors[rank]["weights"], **CLOSE)
    return weights(found, world)


class Late:
    """One worker sleeps much longer than others compute."""

    def __init__(self, worker=2):
        self.worker = worker

    def sleeps(self, replication, worker, call=0):
        return Steps(lambda count: np.full(count, 0.3 * (worker == self.worker)))

    def noises(self, replication, worker, of="noise"):
        return NOTHING if of == "delay" else ONES


@dataclass(frozen=True)
class Jumping(Text):
    """A late rank goes on with the newest step, and applies its gradients to its own weights."""

    name, servers, data = "jumping", 1, "shared"

    def __call__(self, me):
        if me.rank == me.master:
            for _ in me.steps():
                yield from me.post(me.weights, 1)
                yield from me.work(seconds=0.1)
                yield from compute(me)
                yield from me.update(samples=me.batch)
        else:
            while (yield from me.follow(me.master, me.vector("theirs", me.weights.items))):
                yield from me.sleep()
                yield from compute(me)
                yield from me.update(samples=me.batch)


def test_a_rank_that_is_late_has_the_shared_samples_of_the_step_that_it_goes_on_with():
    check_plain(Jumping(), of_text(Jumping(), 2, laws=Late(1)))


@pytest.mark.parametrize("text", [Drifting(), Gossip(), TopPart(), Swapped()], ids=lambda text: text.name)
@pytest.mark.parametrize("optimiser", ["sgd", "mom"])
def test_a_text_of_ones_own_trains_as_plain_arrays_do(text, optimiser):
    """Ranks end apart from one another, each with a momentum of its own: a mistake in one would not hide."""
    found = check_plain(text, of_text(text, 4), replace(TRAINING, optimiser=optimiser))
    assert not np.allclose(*found[:2])


@dataclass(frozen=True)
class Moved(Text):
    """Gradients that are added where others' are: with them in their own place they are another sum."""

    name = "moved"

    def __call__(self, me):
        for _ in me.steps():
            yield from compute(me)
            yield from me.post(me.gradient[:20], 1 - me.rank)
            yield from me.take(1 - me.rank, me.gradient[10:30], adds=True, weight=0.5)
            yield from me.update(samples=me.batch)


def test_a_gradient_may_be_added_in_another_place():
    check_plain(Moved(), of_text(Moved(), 2))


ROWS = {
    "rows at a server": ("hybrid", {}),
    "parts at servers": ("hybrid", {"servers": 2, "variable_partitions": 3}),
    "all at servers": ("ps-sync", {}, "barrier=true"),
    "layer by layer": ("ps-layers", {}),
    "gathered": ("allreduce", {}, "sparse_as_dense=false"),
}


@pytest.mark.tensorflow
@pytest.mark.parametrize("optimiser", ["sgd", "mom", "rms"])
def test_rows_that_no_minibatch_touches_stay_as_they_are(optimiser):
    """But for plain gradient descent, whose weight decay comes to all; and the rate falls once a step, however many ranks update."""
    further = {"learning_rate": 0.1, "decay_steps": 2, "decay_rate": 0.5}
    training = Training(data="words", optimiser=optimiser, engine="tensorflow", **further)
    trainer, workers, steps = Trainer(NAMED["bigram"], 0, training), 3, 4
    streams = [Batches(trainer.data, BATCH, 0, 0, worker + 1) for worker in range(workers)]
    made, whole, moments = (
        RowOptimiser(*training.rates),
        trainer.initial(),
        np.zeros(trainer.workload.parameters, np.float32),
    )
    for _ in range(steps):
        each = [Gradient(stream.places()) for stream in streams]
        for one in each:
            one.whole = real.learning.values.Whole(whole.copy())
        total, touched = trainer.sum(each), trainer.touched(each)
        some = np.full(whole.size, True) if optimiser == "sgd" else touched
        values, of_some = whole[some], moments[some]
        made.apply(values, of_some, total[some] / np.float32(workers * BATCH))
        whole[some], moments[some] = values, of_some
        made.end_update()
    assert touched.mean() < 0.5
    asked = {"workers": workers, "batch": BATCH, "steps": steps, "warmup": 0}
    for name, (protocol, of_job, *settings) in ROWS.items():
        scenario = Scenario(protocols.make(protocol, settings), trainer.workload, **asked, **of_job)
        np.testing.assert_allclose(train(scenario, 0, trainer)[0].newest.vector, whole, **CLOSE, err_msg=name)


# ---- each gradient once


class Counting(Trainer):
    """Keeps how many gradients each call sums."""

    def __init__(self, *given):
        super().__init__(*given)
        self.calls = []

    def sum(self, gradients):
        self.calls.append(len(gradients))
        return super().sum(gradients)


@pytest.mark.parametrize(
    ("name", "settings", "calls"),
    [
        ("fmb", {}, [3] * STEPS),
        ("ps-sync", {"servers": 2}, [2] * STEPS),
        ("ddp", {"bucket_mb": 2e-4}, [4] * STEPS),
        ("fsdp", {}, [4] * STEPS),
        ("ps-async", {}, [1] * 3 * STEPS),
        ("local-sgd", {"local": 2}, [1] * 4 * STEPS),
        ("pipeline", {"micro_batches": 4}, [4] * STEPS),
    ],
)
def test_gradients_of_one_version_are_one_call_whoever_applies_them(name, settings, calls):
    trainer = Counting(MODEL, 0, SGD)
    values, world, _ = run(TEXTS[name](**settings), of_text(TEXTS[name](**settings), 4), trainer=trainer)
    assert trainer.calls == calls
    assert trainer.computed == STEPS * BATCH * {"pipeline": 1, "fmb": 3, "ps-async": 3, "ps-sync": 2}.get(name, 4)
    if name == "ddp":
        assert len({values.cells(me, me.weights)[0].node for me in world.ranks}) == 1


MOST_LIVE = {"fmb": 3, "ddp": 3, "ps-async": 14, "ps-ssp": 14, "kbatch-async": 14}


@pytest.mark.parametrize("name", MOST_LIVE)
@pytest.mark.slow
def test_versions_that_nobody_holds_are_freed(name, monkeypatch):
    """Twelve workers and their server hold one each at most, and there is a new one; where all wait, the newest and those before."""
    live, counts = weakref.WeakSet(), []

    class Known(Held):
        def __init__(self, *held):
            super().__init__(*held)
            live.add(self)

    for module in (real.learning.values, real.learning.optimisers):
        monkeypatch.setattr(module, "Held", Known)
    text = TEXTS[name](bucket_mb=1e6) if name == "ddp" else TEXTS[name]()
    run(text, of_text(text, 13), made=lambda *version: counts.append(len(live)))
    assert max(counts[1:]) <= MOST_LIVE[name]


# ---- what texts may do


def test_another_rate_has_the_same_optimiser():
    """Of half the rate: momentum is kept."""

    @dataclass(frozen=True)
    class Slower(Text):
        rate: float | None = None
        name = "slower"

        def __call__(self, me):
            for step in me.steps():
                yield from compute(me)
                yield from me.update(samples=me.batch, rate=self.rate if step >= 3 else None)

    found = {}
    for rate in (None, 0.1, 0.05):
        values, world, _ = run(Slower(rate), of_text(Slower(), 1), TRAINING)
        found[rate] = weights(values, world)[0]
    np.testing.assert_array_equal(found[None], found[0.1])  # which is the rate of TRAINING
    plain = Plain(of_text(Slower(), 1), Slower(), TRAINING)
    EventWorld(plain.job, Slower(), plain).run()
    np.testing.assert_allclose(found[None], plain.vectors[0]["weights"], **CLOSE)
    assert np.abs(found[0.05] - found[None]).max() > 1e-3


@dataclass(frozen=True)
class Unwise(Text):
    """A text that cannot be trained."""

    what: str = ""
    name = "unwise"

    def __call__(self, me):
        for _ in me.steps():
            if self.what != "backward":
                yield from me.forward()
            yield from me.backward()
            yield from me.update(me.weights if self.what == "lost" else me.weights[:9])
            if self.what == "pieces":
                yield from me.update(me.weights[4:12])
            if self.what == "lost":
                yield from me.drop(me.weights)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("backward", "rank 0 computes layers whose input, or the gradient of whose output, it does not have"),
        ("pieces", "rank 0 updates items 4 to 12 and 0 to 9: an optimiser keeps to its piece"),
        ("lost", "unwise: a rank computes with items of a vector that it has dropped"),
    ],
)
def test_what_cannot_be_trained_is_said(what, said):
    with pytest.raises(RunFailed, match=said):
        run(Unwise(what), of_text(Unwise(what), 1))


# ---- learning


def own(name: str, *settings: str, **further):
    text = TEXTS[name]
    return job(protocols.make(f"{text.__module__}:{text.__qualname__}", settings), **further)


@pytest.mark.slow
def test_the_last_weights_are_evaluated():
    found = learn(own("ps-async", steps=40), TRAINING, replications=1, evaluate_every=50).curves[0]
    assert found.step.tolist() == [50, 100, 120]


@dataclass(frozen=True)
class Alone(Text):
    """Ranks that train for themselves, and update now and then."""

    every: int = 1
    name = "alone"

    def __call__(self, me):
        for step in me.steps():
            yield from me.sleep()
            yield from compute(me)
            if step % self.every == self.every - 1:
                yield from me.update(samples=self.every * me.batch)


def versions_of(text: Text, ranks: int) -> list[tuple]:
    found = []
    run(text, of_text(text, ranks, laws=Late()), made=lambda of, *said: found.append((*said, of.newest.vector)))
    return found


def test_a_rank_that_is_ahead_is_evaluated_after_the_step_that_is_over():
    ahead, alone = versions_of(Alone(), 2), versions_of(Alone(), 1)
    for (number, time_s, samples, vector), (*_, expected) in zip(ahead, alone, strict=True):
        np.testing.assert_array_equal(vector, expected)
        assert samples == 2 * BATCH * number
        assert time_s == pytest.approx(number * 0.324, rel=0.1)


@dataclass(frozen=True)
class Apart(Text):
    """Two servers that update with gradients of their own, the second one before the first."""

    servers: int = 2
    name, each = "apart", True

    def __call__(self, me):
        for _ in me.steps():
            yield from compute(me)
            if me.rank in me.servers:
                yield from me.work(seconds=0.1 * (me.rank == me.master))
                yield from me.update(me.held(me.weights, me.rank), samples=me.batch)


def test_where_each_gradient_is_an_update_the_first_server_counts():
    assert [number for number, *_ in versions_of(Apart(), 3)] == list(range(1, STEPS + 1))


def test_a_step_without_an_update_makes_no_version():
    found = versions_of(Alone(3), 2)
    assert [number for number, *_ in found] == [1, 2]
    assert [time_s for _, time_s, *_ in found] == pytest.approx([3 * 0.324, 6 * 0.324], rel=0.1)


@pytest.mark.slow
def test_weights_are_new_when_the_last_rank_has_changed_its_own():
    """Of a step in which all go through rounds; evaluations of ranks come later."""
    scenario = own("local-sgd", "local=2", workers=2, stragglers="slow-ranks(rank=1, seconds=100ms)", steps=4)
    found = learn(scenario, TRAINING, replications=1, evaluate_every=1).curves[0]
    assert np.diff(found.time_s, prepend=0.0) == pytest.approx(0.1, rel=0.2)


@pytest.mark.parametrize("name", ["local-sgd", "d-psgd", "ddp", "fsdp", "gradient-coding"])
def test_a_trace_has_the_same_curves(name):
    """The first rank goes ahead of the last one by a step, or none; where all go in step, its updates count in a trace."""
    settings = ["local=2"] if name == "local-sgd" else []
    scenario = own(name, *settings, workers=3, stragglers="slow-ranks(rank=2, seconds=30ms)", steps=8)
    found = learn(scenario, TRAINING, replications=1, evaluate_every=2, want_trace=True)
    for column, expected in vars(found.curves[0]).items():
        np.testing.assert_allclose(getattr(curves(found.trace), column), expected, rtol=1e-3, err_msg=column)
