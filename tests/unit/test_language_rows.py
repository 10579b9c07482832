"""Sparse layers in the language: which share of their items travels, is added and updated, and Parallax's hybrid."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from test_language_engine_jobs import differ

from experiments.proving.definitions import BATCH, CHAIN, RATE, STEPS, serial
from sim import protocols
from sim.base.errors import WrongSetting, WrongText
from sim.job.scenario import Scenario
from sim.language.engine import job as engine
from sim.language.event import run
from sim.language.hosts import Host as Cores
from sim.language.job import Job
from sim.language.layers import Layer, Rows, stages
from sim.language.learning import Values
from sim.language.text import Text
from sim.language.verbs import push
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.model.workload import Variable, Workload
from sim.platform.cluster import Cluster, Host, Link
from sim.simulation import simulate
from sim.texts import TEXTS
from sim.texts.allreduce import Allreduce
from sim.texts.hybrid import Hybrid

COUNT, COLUMNS, ALPHA = 7200, 16, 0.05
ITEMS = COUNT * COLUMNS
GATHERED = Allreduce("ring", sparse_as_dense=False)
SPARSE = Layer(ITEMS, 0.01, 0.02, rows=Rows(COUNT, lambda minibatches: round(COUNT * (1 - (1 - ALPHA) ** minibatches))))
DENSE = Layer(6000, 0.01, 0.02)
LINK = {"latency_s": 1e-3, "bandwidth": 1e8}


def touched(minibatches: int = 1) -> int:
    return SPARSE.rows.touched(minibatches)


def bytes_s(items: float) -> float:
    return 4 * items / LINK["bandwidth"]


@dataclass(frozen=True)
class Handed(Text):
    """The input of the last layer, from the first rank to the last."""

    name = "handed"

    def __call__(self, me):
        for _ in me.steps():
            for layer in me.layers:
                if me.rank == 0:
                    yield from me.post(me.activation(layer), me.n - 1)
                else:
                    yield from me.take(0, me.activation(layer))


def test_one_worker_pulls_and_pushes_its_rows():
    """Row numbers, rows, then both and the note that it may go on: each a latency, and its bytes."""
    found = run(Job(2, (SPARSE,), 2, **LINK), Hybrid())
    rows, numbers = touched(), touched() * COLUMNS
    step_s = 4 * LINK["latency_s"] + bytes_s(rows + numbers + rows + numbers) + 0.03
    assert np.diff(found.ends_s, prepend=0) == pytest.approx([step_s] * 2, abs=1e-12)


def test_a_ring_of_rows_passes_what_each_worker_has():
    """Pushes grow with the workers: n - 1 times its rows leave each port, and are added one after another."""
    of = Job(5, (SPARSE,), 2, rows_s=1e-8, rows_base_s=1e-4, mix_s=1.0, update_s=1e-8, **LINK)
    items, share = touched() * (COLUMNS + 1), touched(5) / COUNT
    turn_s = LINK["latency_s"] + bytes_s(items) + 1e-4 + 1e-8 * items
    step_s = 0.03 + 4 * turn_s + 1e-8 * ITEMS * share
    for found in (run(of, GATHERED), engine.run(of, GATHERED)):
        assert np.diff(found.ends_s, prepend=0) == pytest.approx([step_s] * 2, abs=1e-12)


def test_layers_of_two_kinds_count_each_sample_once():
    """Workers update dense layers alike, and servers sparse ones, whatever part of the model these are."""
    for layers in ((SPARSE, DENSE), (replace(SPARSE, items=COUNT), DENSE), (DENSE,), (SPARSE,)):
        of = Job(6, layers, 3, batch=8)
        for found in (run(of, Hybrid(2)), engine.run(of, Hybrid(2))):
            assert found.samples == pytest.approx([32.0] * 3)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [None, engine._kernel], ids=["plain", "compiled"])
def test_the_engine_takes_as_long(kernel):
    costs = {
        "mix_s": 1e-9,
        "rows_s": 3e-9,
        "rows_base_s": 1e-5,
        "update_s": 1e-9,
        "take_up_s": 1e-9,
        "overhead_s": 1e-5,
    }
    for more in ({}, costs, costs | {"per_host": 3, "cores": 2}):
        of = Job(7, (DENSE, SPARSE, DENSE, DENSE, replace(SPARSE, server=0)), 3, **more)
        for text in (GATHERED, Hybrid(2), Hybrid(3, local_aggregation=False)):
            assert differ(of, text, kernel) == {}
    assert differ(replace(of, layers=(DENSE,)), Hybrid(0), kernel) == {}


def test_sparse_layers_need_servers():
    with pytest.raises(WrongSetting, match="--servers: given 0; allowed: an integer from 1 with sparse variables"):
        run(Job(3, (SPARSE,)), Hybrid(0))


# ---- values


@pytest.mark.parametrize("together", [False, True])
def test_hybrid_trains_on_all_minibatches(together):
    """Each server has its sparse layers, and each worker the dense ones, as one process would have them."""
    layers = [*CHAIN.layers(0.02, 0.04)]
    for layer in (1, 2, 4):
        layers[layer] = replace(layers[layer], rows=Rows(3, lambda _: 2))
    job = Job(6, tuple(layers), STEPS, batch=BATCH, per_host=2, bandwidth=1e5, rate=RATE)
    values = Values(job, CHAIN)
    run(job, Hybrid(2, local_aggregation=together), values)
    expected = serial(range(2, 6)).reshape(CHAIN.depth, -1)
    for rank, vectors in values.vectors.items():
        mine = [k for k in range(CHAIN.depth) if (k % 2 == rank if k in (1, 2, 4) else rank > 1)]
        assert np.abs(vectors["weights"].reshape(CHAIN.depth, -1) - expected)[mine].max() < 1e-12


# ---- stages of pipelines


@pytest.mark.parametrize(
    ("name", "layers", "items"),
    [
        ("gpt2", 14, 1024 * 768),
        ("bert_base", 13, 384 * 768),
        ("llama3_8b", 34, 4096 * 4096),
        ("vit_b_16", 14, 197 * 768),
        ("resnet50", 18, 56 * 56 * 64),
        ("resnet18_cifar", 10, 32 * 32 * 64),
    ],
)
def test_models_known_by_name_say_what_their_layers_inputs_have(name, layers, items):
    variables = workload.read(name).variables
    assert len(set(stages(variables, layers))) == len(set(stages(variables, layers + 1))) == layers + 1
    assert variables[stages(variables, layers)[1]].activation_items == items


PLAIN = Link(latency_s=1e-3, overhead_s=0, gap_s=0, bandwidth_bytes_per_s=1e8)
COMPUTING = Costs(compute=Line(base_s=0.01))


def test_a_pipeline_passes_inputs_of_layers_at_which_the_model_can_be_cut():
    """Two stages of equal layers, one micro-batch: both passes one after another, an activation and its gradient between them."""
    model = Workload(name="equal", parameters="8 k", layers=4, activation_items=1000, costs=COMPUTING)
    of = Scenario(
        protocols.make("sim.texts.pipeline:Pipeline", ["micro_batches=1"]), model, 2, steps=2, warmup=0, batch=8
    )
    of = replace(of, cluster=Cluster(hosts=[Host(count=2)], network=PLAIN))
    step_s = 0.01 + 2 * (PLAIN.latency_s + 4 * 8 * 1000 / PLAIN.bandwidth_bytes_per_s)
    for kind in ("event", "engine"):
        assert simulate(of, kind, 1).outcome.step_s == pytest.approx(np.full((1, 2), step_s), abs=1e-9)


def test_a_layer_that_does_not_say_what_its_input_has_is_not_sent():
    for world in (run, engine.run):
        with pytest.raises(WrongText):
            world(Job(2, (DENSE, replace(DENSE, activation_items=None))), Handed())


@pytest.mark.parametrize(("name", "servers"), [("lm1b", 2), ("toy_fc", 0)])
def test_hybrid_has_servers_for_sparse_variables_alone(name, servers):
    protocol = protocols.make("sim.texts.hybrid:Hybrid")
    of = Scenario(protocol, workload.read(name), 3, servers=2, variable_partitions=2)
    assert of.servers == of.protocol.text(of.servers).servers == servers
    assert [one.name for one in of.summed] == [one.name for one in of.workload.variables if not one.rows]
    of.protocol.check(of)


def test_variables_say_themselves_what_their_layers_inputs_have():
    with pytest.raises(
        WrongSetting, match="activation_items: given 5; allowed: in variables, or with parameters and layers"
    ):
        Workload(name="model", variables=[Variable(name="numbers", shape=(7199,))], activation_items=5)


def test_as_many_texts_begin_at_once_as_there_are_layers():
    assert differ(Job(2, (Layer(1),) * 300), TEXTS["ps-layers"](1), engine._kernel) == {}


@dataclass(frozen=True)
class Pushed(Text):
    """A worker pushes its gradient to two servers."""

    servers: int = 2
    name = "pushed"

    def __call__(self, me):
        for _ in me.steps():
            if me.rank in me.workers:
                yield from push(me, me.servers)
                assert me.now() == pytest.approx(1.0)  # both halves have left
            else:
                yield from me.take(2)


def test_a_gradient_that_is_pushed_begins_anew_when_it_has_left():
    run(Job(3, (Layer(1000),), latency_s=0.0, bandwidth=4000.0), Pushed())


def test_a_server_works_on_several_layers_at_once():
    """As the pool of threads of TensorFlow's servers does."""
    layers = tuple(Layer(1000) for _ in range(2))
    of = Job(2, layers, 1, latency_s=0.0, bandwidth=1e12, update_base_s=1.0, kinds=(Cores(2), Cores(2)))
    assert run(of, TEXTS["ps-layers"](1)).ends_s == [pytest.approx(1.0, rel=1e-6)]
    one_core = replace(of, kinds=(Cores(1), Cores(2)))
    assert run(one_core, TEXTS["ps-layers"](1)).ends_s == [pytest.approx(2.0, rel=1e-6)]
