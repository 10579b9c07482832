"""An unknown algorithm: candidates are simulated alike, and the interval is that of their mixture."""

import math
from dataclasses import replace

import pytest

from sim import protocols
from sim.answers import candidates
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.model.costs import Costs, Line
from sim.model.workload import Workload
from sim.platform.cluster import Cluster, Host, Provenance
from sim.simulation import simulate

MODEL = Workload(name="mine", parameters="20 M", layers=4, costs=Costs(compute=Line(base_s=0.01)))


def job(protocol="allreduce", hosts=4, each=1, algorithm="unknown", gpus=None):
    where = Cluster(hosts=[Host(count=hosts, cores=each, gpus=gpus)])
    text = protocols.make(protocol, [f"algorithm={algorithm}"])
    return Scenario(text, MODEL, workers=hosts * each, steps=3, warmup=1, cluster=where)


def test_the_interval_is_that_of_the_mixture():
    asked = job(hosts=3)  # where halving and doubling folds ranks, and a ring does not
    found = simulate(asked)
    alone = {name: simulate(one, replications=1).samples_per_s for name, one in candidates.of(asked).items()}
    assert found.speeds == pytest.approx(alone)
    runs = candidates.shared_out(candidates.weights(asked), candidates.RUNS)
    assert len(found.step_s) == candidates.RUNS
    middle = sum(runs[name] * math.log(speed) for name, speed in alone.items()) / candidates.RUNS
    assert found.samples_per_s == pytest.approx(math.exp(middle))
    low, high = found.interval
    assert low < min(alone.values()) < max(alone.values()) < high
    one = simulate(job(hosts=3, algorithm="ring"), replications=4).interval
    assert high / low > 1.2 * one[1] / one[0]  # the negative control: an algorithm that is known


def test_the_answer_names_the_library_and_the_likeliest_first():
    said = simulate(job()).notes[-1]
    assert said.startswith("nobody said which algorithm sums; Open MPI is taken to use halving-doubling 0.56 (")
    assert ", ring 0.44 (" in said


def test_candidates_are_those_of_the_library_by_size():
    """NCCL has neither recursive doubling nor a tree whose pieces do not follow one another."""
    assert candidates.weights(job(gpus=1)) == {"ring": 1.0}
    assert candidates.weights(job("horovod", hosts=2, each=2, gpus=2)) == pytest.approx(
        {"ring": 0.9, "hierarchical": 0.1}
    )
    assert "hierarchical" not in candidates.of(job())
    small = Workload(name="mine", parameters=100, layers=1, costs=MODEL.costs)
    assert next(iter(candidates.weights(replace(job(), workload=small)))) == "recursive-doubling"
    torch = Provenance(engines=("torch",))
    on_cores = replace(job(), cluster=job().cluster.model_copy(update={"provenance": torch}))
    assert next(iter(candidates.weights(on_cores))) == "ring"


def test_one_candidate_is_simulated_as_any_job():
    found, known = (simulate(job(gpus=1, algorithm=name)) for name in ("unknown", "auto"))
    assert found.samples_per_s == pytest.approx(known.samples_per_s)
    assert found.notes[-1] == "nobody said which algorithm sums; NCCL is taken to use ring"


def test_runs_that_are_asked_for_are_shared_out():
    assert simulate(job(), replications=30).step_s.shape == (30, 3)
    assert simulate(job(), replications=1).step_s.shape == (candidates.RUNS, 3)


def test_a_trace_and_a_real_run_follow_one_algorithm():
    with pytest.raises(WrongSetting, match="a name, because a trace follows one algorithm"):
        simulate(job(), want_trace=True)
    with pytest.raises(WrongSetting, match="a real run"):
        candidates.refuse(job(), "a real run")


def test_a_wrong_name_lists_it():
    with pytest.raises(WrongSetting, match="hierarchical, unknown"):
        job(algorithm="fastest")
