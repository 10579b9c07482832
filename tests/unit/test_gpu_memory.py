"""Parameters, gradients, the optimiser's state and activations against a GPU's memory: in answers, sweeps and plans."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from sim import protocols
from sim.answers import notes
from sim.job import gpu_memory
from sim.job.scenario import Scenario
from sim.model.sparse_rows import Rows
from sim.model.workload import NAMED, Variable, Workload
from sim.plans import plan, question, search
from sim.plans.configurations import Room
from sim.platform.cluster import Cluster, Host
from sim.simulation import simulate
from sim.studies import what_if
from sim.sweeps.jobs import figures

GB = 10**9


def model(parameters: str = "1 G", **more) -> Workload:
    return Workload(name="x", parameters=parameters, layers=10, flops_per_sample="1 Gflop", **{"batch": 4} | more)


def job(workload: Workload, protocol: str = "allreduce", host: Host | None = None, **more) -> Scenario:
    host = host or Host(gpu="V100", gpus=4)
    return Scenario(
        protocols.make(protocol), workload, cluster=Cluster(hosts=[host]), **{"workers": 2, "steps": 2} | more
    )


@pytest.mark.parametrize(
    ("optimiser", "copies"), [("sgd", 0), ("momentum", 1), ("rmsprop", 1), ("adam", 2), ("adamw", 2), ("lamb", 2)]
)
def test_the_state_of_an_optimiser_is_so_many_copies_of_the_parameters(optimiser, copies):
    taken = gpu_memory.of_job(job(model(optimiser=optimiser)))
    assert taken.bytes == (2 + copies) * 4 * GB
    assert taken.share == pytest.approx(taken.bytes / (16 * GB))


def test_mixed_precision_has_a_copy_of_the_parameters_in_16_bits():
    assert gpu_memory.of_job(job(model(precision="fp16"))).held.parameters == 6 * GB
    assert gpu_memory.of_job(job(model(precision="fp32"))).held.parameters == 4 * GB


@pytest.mark.parametrize(
    ("protocol", "state"), [("allreduce", 4), ("horovod", 4), ("fmb", 0), ("ps-sync", 0), ("ps-async", 0)]
)
def test_servers_and_a_master_have_the_state_of_what_they_hold(protocol, state):
    beside = {"servers_on": "workers"} if protocol != "allreduce" else {}
    assert gpu_memory.of_job(job(model(), protocol, **beside)).held.state == state * GB


def test_one_process_alone_has_its_own_state():
    assert gpu_memory.of_job(job(model(), "fmb", workers=0)).held.state == 4 * GB


def test_frozen_layers_have_no_gradient_and_no_state():
    variables = (Variable(name="a", shape=(10**9,), trained=False), Variable(name="b", shape=(10**8,)))
    found = gpu_memory.of_job(job(Workload(name="x", variables=variables, flops_per_sample=1e9)))
    assert found.bytes == pytest.approx((1.1 + 0.1 + 0.1) * 4 * GB)


def test_sparse_rows_on_servers_are_not_all_on_the_worker():
    table = Variable(name="t", shape=(10**6, 1000), rows=Rows(fraction=1e-5))
    sparse = Workload(name="x", variables=(table, Variable(name="b", shape=(1000,))), flops_per_sample=1e9, batch=1)
    assert gpu_memory.of_job(job(sparse, "ps-sync", servers_on="workers")).bytes < 0.001 * GB
    assert gpu_memory.of_job(job(sparse, "allreduce")).bytes > 11 * GB


def test_activations_follow_from_what_a_process_was_seen_to_take():
    measured = model(memory_bytes="14 GB")
    assert gpu_memory.of_job(job(measured)).held.activations == 2 * GB
    assert gpu_memory.of_job(job(measured, batch=8)).bytes == 16 * GB
    assert gpu_memory.of_job(job(measured, batch=12)).share > 1
    assert gpu_memory.of_job(job(measured, "ps-sync", servers_on="workers")).bytes == 10 * GB


WORDS = {"inputs": "words", "sample_shape": [2048], "classes": 50_000}


@pytest.mark.parametrize("shape", ["named", "equal layers"])
def test_activations_of_a_transformer_are_estimated_from_its_shape(shape):
    """GPT-3 of 6.7 G: 32 layers of width 4096, and 34 or 2 bytes a place (Korthikanti et al., table 2); logits of the vocabulary."""
    of = (
        NAMED["gpt3_6.7b"]
        if shape == "named"
        else model(f"{12 * 4096**2 * 32}", **WORDS).model_copy(update={"layers": 32})
    )
    fewest, all_of_them = gpu_memory.activations(of, 3)
    assert fewest == pytest.approx(3 * 2048 * 4096 * 32 * 2)
    assert all_of_them == pytest.approx(3 * 2048 * (4096 * 32 * 34 + 4 * (4096 + of.classes)))


@pytest.mark.parametrize("other", [{"architecture": "other"}, {"inputs": "pictures"}])
def test_those_of_other_models_are_not(other):
    assert gpu_memory.activations(model(**WORDS | other), 3) is None


@pytest.mark.parametrize(
    ("batch", "begins"),
    [(2, "a worker takes "), (8, "fits only with recomputed activations: "), (200, "does not fit: ")],
)
def test_a_batch_that_cannot_fit_is_said(batch, begins):
    answer = simulate(job(model(optimiser="sgd", **WORDS), batch=batch), replications=1)
    assert answer.notes[-1].startswith(begins)
    assert "if none is recomputed" in answer.notes[-1]
    assert [answer.notes[-1]] * (batch == 2) == [one for one in notes.explained(answer.scenario) if "takes" in one]


def test_less_than_the_parts_is_taken_as_measured():
    small = model(memory_bytes="6 GB")
    assert [gpu_memory.of_job(job(small, batch=batch)).bytes for batch in (1, 4, 8)] == [6 * GB, 6 * GB, 12 * GB]
    assert "a process was seen to take 6 GB" in gpu_memory.note(job(small))[0]


def test_a_measured_memory_is_of_a_batch():
    with pytest.raises(ValueError, match="batch: missing"):
        Workload(name="x", parameters="1 M", layers=1, memory_bytes="1 GB", flops_per_sample=1e9)


def test_workers_on_one_gpu_share_its_memory():
    shared = Host(gpu="V100", gpus=1, slots=2)
    assert gpu_memory.of_job(job(model(), host=shared)).workers == 2
    assert gpu_memory.of_job(job(model(), host=shared)).bytes == 24 * GB
    assert "does not fit: 2 workers on a GPU take 24 GB" in gpu_memory.note(job(model(), host=shared))[0]


def test_an_answer_says_what_is_counted_and_what_is_not():
    assert simulate(job(model()), replications=1).notes[-1] == (
        "a worker takes 12 GB (parameters 4 GB, gradients 4 GB, momentum 4 GB) of the 16 GB of V100; "
        "activations are not counted: say memory_bytes"
    )
    full = simulate(job(model("7 G", optimiser="adam", memory_bytes="200 GB")), replications=1).notes[-1]
    assert full == (
        "does not fit: a worker takes 200 GB (parameters 28 GB, gradients 28 GB, adam 56 GB, activations 88 GB), and V100 has 16 GB"
    )


def test_a_sweep_has_the_share_of_the_memory():
    assert figures(simulate(job(model()), replications=1))["gpu_memory_fraction"] == 0.75


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_a_plan_throws_out_what_does_not_fit(optimiser, tmp_path):
    """7 G parameters on a T4, users.md 4: they were the cheapest, with a probability of 1."""
    lines = ['schema = "workload/1"', 'name = "seven"', 'parameters = "7 G"', "layers = 32", "batch = 1"]
    lines += [f'optimiser = "{optimiser}"', 'flops_per_sample = "14 Tflop"']
    (tmp_path / "w.toml").write_text("\n".join(lines))
    asked = {"workload": str(tmp_path / "w.toml"), "hosts": ["g4dn.12xlarge", "p5.48xlarge"], "counts": [1, 4]}
    asked |= {"protocols": ["allreduce", "horovod"], "samples_per_s": 0.5}
    found, thrown = search.screened(Room(question.read(None, asked)))
    takes = {"sgd": 56, "adam": 112}[optimiser]
    expected = {f"do not fit the 16 GB of T4: a worker takes {takes} GB (optimiser {optimiser})": 4}
    if optimiser == "adam":
        expected["do not fit the 80 GB of H100: a worker takes 112 GB (optimiser adam)"] = 4
    assert thrown == expected
    assert {one.configuration.host for one in found} == ({"p5.48xlarge"} if optimiser == "sgd" else set())


def test_a_plan_says_what_its_first_choice_takes():
    asked = question.read(None, {"hosts": ["g4dn.xlarge"], "counts": [1], "samples_per_s": 1})
    room = Room(asked)
    first = SimpleNamespace(configuration=room.all[0], figures=None, work=None)
    (line,) = plan.notes(SimpleNamespace(whole=True, best=[first], room=room, question=asked))
    assert line.startswith("the first: a worker takes 0.307 GB (parameters 0.103 GB")
    assert line.endswith("of the 16 GB of T4; activations are not counted: say memory_bytes")


def test_what_if_says_what_does_not_fit():
    """Four times the batch, whose activations are four times as many; the job itself fits."""
    small = job(model("100 M", memory_bytes="14 GB"))
    base, large = (simulate(one, replications=1) for one in (small, replace(small, batch=16)))
    (line,) = what_if.too_large([what_if.compare("batch=16", base, one) for one in (base, large)])
    assert line.startswith("batch=16: does not fit: a worker takes ")


@pytest.mark.parametrize(("unit", "gathered", "summed"), [(0, 2, 1), (3e8, 6, 3), (1e9, 10, 10)])
def test_a_rank_of_fsdp_has_a_part_of_all_and_two_whole_units(unit, gathered, summed):
    """Ten equal layers; while one unit is computed, the next is gathered."""
    protocol = protocols.make("fsdp", [f"unit_parameters={unit}"])
    held = gpu_memory.of_job(replace(job(model(optimiser="adam"), workers=4), protocol=protocol)).held
    assert held.parameters == pytest.approx((1 / 4 + 3 / 4 * gathered / 10) * 4 * GB)
    assert held.gradients == pytest.approx((1 / 4 + 3 / 4 * summed / 10) * 4 * GB)
    assert held.state == 2 * GB


def test_a_stage_of_a_pipeline_has_its_layers_and_the_activations_of_what_is_under_way():
    of = model(activation_items=1000, memory_bytes=13 * GB, optimiser="sgd", batch=8)
    alone = gpu_memory.of_job(job(of, workers=1)).held
    held = gpu_memory.of_job(job(of, "pipeline", workers=4)).held
    # Three of ten layers.
    assert (held.parameters, held.gradients, held.state) == pytest.approx((1.2 * GB, 1.2 * GB, 0))
    # Four of eight micro-batches in a quarter of the layers.
    assert held.activations == pytest.approx(alone.activations / 8)
