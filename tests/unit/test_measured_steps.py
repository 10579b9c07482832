"""A measured step is used as measured on the GPU that it names, and carried to another one by published rates, or refused."""

import math

import pytest

from sim import protocols, sweep
from sim.answers import sources
from sim.base import interval
from sim.base.errors import WrongSetting
from sim.job import measured_steps, named_gpus, variants
from sim.job.scenario import Scenario
from sim.model.workload import Workload
from sim.plans import plan, sensitivity
from sim.plans.question import Question
from sim.platform import catalogue
from sim.platform.cluster import Cluster, Model, Provenance
from sim.run import main as run
from sim.simulation import simulate
from sim.sweeps import pools

A100 = {"time": "400 ms", "batch": 8, "gpu": "A100"}
V100 = {"time": "1500 ms", "batch": 8, "gpu": "V100"}
PLAIN = {"time": "400 ms", "batch": 8}


def model(*steps, **more):
    return Workload(name="mine", parameters="1 M", layers=2, step=steps, **more)


def job(trained, *gpus, **more):
    hosts = [{"gpu": gpu, "name": f"host{number}"} for number, gpu in enumerate(gpus)] or None
    cluster = {"cluster": Cluster(hosts=hosts)} if hosts else {}
    given = {"workers": max(1, len(gpus)), "steps": 3, "warmup": 1} | cluster | more
    return Scenario(protocols.make("allreduce"), trained, **given)


def computing_s(scenario, worker=0):
    return scenario.costs.compute(scenario.batch) / scenario.machines[scenario.computing_hosts[worker]].speed


def reached(gpu, precision=None):
    rate = catalogue.find("gpus", gpu).reached(precision)
    return rate.peak * rate.share


def test_on_its_own_gpu_a_step_is_as_measured():
    here = job(model(A100), "A100")
    assert (computing_s(here), here.costs.error, here.on_named_gpus) == (pytest.approx(0.4), 0, False)
    assert here.costs.update(1e9) == 0  # the step contains its update
    assert sources.notes(here)[0].startswith("computing of mine as measured on A100 (tf32)")


@pytest.mark.parametrize("name", ["K80", "T4", "V100", "A100-80GB", "H100"])
def test_on_another_gpu_it_takes_the_ratio_of_rates_with_both_spreads(name):
    there = job(model(A100), name)
    times = reached("A100") / reached(name)
    spreads = [catalogue.find("gpus", gpu).reached(None).spread for gpu in ("A100", name)]
    assert computing_s(there) == pytest.approx(0.4 * times)
    assert there.costs.evaluate(8) == pytest.approx(0.4 * times / 3)
    assert there.costs.error == pytest.approx(math.hypot(*spreads))
    assert there.on_named_gpus
    factor = math.exp(interval.of_normal(there.costs.error))
    assert f"on {name} " in sources.notes(there)[0]
    assert f"{times:.3g} times those on A100 (tf32)" in sources.notes(there)[0]
    assert f"within a factor {factor:.1f}" in sources.notes(there)[0]


def test_steps_of_several_gpus_are_each_used_where_they_were_measured():
    both = model(A100, {"time": "700 ms", "batch": 16, "gpu": "A100"}, V100)
    mixed = job(both, "V100", "A100")
    assert [computing_s(mixed, worker) for worker in (0, 1)] == pytest.approx([1.5, 0.4])
    assert mixed.costs.error == 0
    other = job(both, "H100")  # whose rate is nearer to the A100's, and no less known
    assert computing_s(other) == pytest.approx(0.4 * reached("A100") / reached("H100"))
    assert [computing_s(job(both, "A100", batch=batch)) for batch in (8, 16)] == pytest.approx([0.4, 0.7])


def test_hosts_of_which_one_is_measured_keep_their_ratio_and_the_median_job_has_one_speed():
    mixed = job(model(A100), "A100", "V100", "V100")
    times = reached("A100") / reached("V100")
    assert [computing_s(mixed, worker) for worker in range(3)] == pytest.approx([0.4, 0.4 * times, 0.4 * times])
    median = variants.at_the_median(mixed)
    assert [computing_s(median, worker) for worker in range(3)] == pytest.approx(3 * [0.4 * times])


def test_precision_counts():
    half = model(A100 | {"precision": "bf16"})
    assert half.precision == "bf16"
    assert computing_s(job(half, "A100")) == pytest.approx(0.4)
    asked = model(A100 | {"precision": "tf32"}, precision="bf16")
    assert computing_s(job(asked, "A100")) == pytest.approx(0.4 * reached("A100", "tf32") / reached("A100", "bf16"))
    assert "on A100 (bf16): " in sources.notes(job(asked, "A100"))[0]
    with pytest.raises(WrongSetting, match="precision: given 'bf16'; allowed: fp32, fp16 on V100"):
        job(half, "V100").check_computing()
    with pytest.raises(ValueError, match="given 'bf16'; allowed: gpu beside it"):
        model(PLAIN | {"precision": "bf16"})


def test_the_cluster_that_is_assumed_has_the_gpu_of_the_step():
    assumed = job(model(V100))
    assert assumed.cluster.hosts[0].gpu.name == "V100"
    assert computing_s(assumed) == pytest.approx(1.5)


def test_a_gpu_of_the_cluster_s_file_may_be_named():
    own = {"name": "Mine", "fp32": {"peak": "20 Tflop/s", "share": 0.5, "spread": 0.1}, "memory_bytes_per_s": "1 TB/s"}
    here = job(model(A100 | {"gpu": "mine"}), own)
    assert computing_s(here) == pytest.approx(0.4)
    assert computing_s(job(model(A100), own)) == pytest.approx(0.4 * reached("A100") / 10e12)


@pytest.mark.parametrize(("name", "gpu"), [("NVIDIA A100-SXM4-40GB", "A100"), ("NVIDIA A100-SXM4-80GB", "A100-80GB")])
def test_a_device_s_own_name_is_known(name, gpu):
    assert computing_s(job(model(A100 | {"gpu": name}), gpu)) == pytest.approx(0.4)
    assert job(model(A100 | {"gpu": name})).cluster.hosts[0].gpu.name == gpu


def test_without_a_gpu_a_step_holds_on_the_hosts_and_the_note_says_so():
    for gpu in ("K80", "A100"):
        here = job(model(PLAIN), gpu, gpu)
        here.check_computing()
        assert computing_s(here) + here.costs.update(4 * 120e6) == pytest.approx(0.4)  # the step contains its update
        assert "is taken as measured on these hosts: say gpu =" in sources.notes(here)[0]


def test_a_host_s_speed_is_relative_to_that_of_the_step():
    fast = Cluster(hosts=[{"gpus": 1, "speed": 2.0}, {"gpus": 1}])
    both = job(model(PLAIN), cluster=fast, workers=2)
    assert [computing_s(both, worker) for worker in (0, 1)] == pytest.approx([0.2, 0.4])
    assert "is taken as measured at speed 1, and these hosts have 1 to 2" in sources.notes(both)[0]


@pytest.mark.parametrize(
    ("trained", "gpus", "said"),
    [
        (model(PLAIN), ("A100", "V100"), "hosts: gpu: given 'A100, V100'; allowed: one kind of GPU"),
        (model(PLAIN), ("A100", None), "hosts: gpu: given 'A100, none'"),
        (model(A100), ("A100", None), "hosts: gpu of host1: missing"),
        (model(A100), (None,), "hosts: gpu of host0: missing"),
        (model(A100 | {"gpu": "A1000"}), ("A100",), "step: gpu: given 'A1000'"),
    ],
)
def test_refused_where_nothing_says_how_long_a_step_takes(trained, gpus, said):
    with pytest.raises(WrongSetting) as refused:
        job(trained, *gpus).check_computing()
    assert said in str(refused.value)


def test_hosts_that_compute_nothing_do_not_count():
    idle = job(model(PLAIN), "A100", "V100", workers=1)
    idle.check_computing()
    assert computing_s(idle) == pytest.approx(0.4)


def test_steps_say_their_gpu_all_or_none():
    with pytest.raises(ValueError, match="gpu in each of them, or in none"):
        model(A100, PLAIN)


@pytest.mark.parametrize(("batch", "slower", "faster"), [(8, 1, 1), (32, 1, 4), (2, 4, 1)])
def test_one_batch_says_little_of_others(batch, slower, faster):
    """A larger batch takes no less time than it, and a smaller one no more."""
    found = simulate(job(model(A100), "A100", batch=batch), replications=2)
    low, high = (end / found.samples_per_s for end in found.interval)
    assert (1 / low, high) == pytest.approx((slower, faster), rel=0.15)
    assert any("the only one that was measured" in one.source for one in found.basis) == (batch != 8)
    two = model(A100, A100 | {"time": "700 ms", "batch": 16})
    assert not any("alone" in note for note in simulate(job(two, "A100", batch=32), replications=2).notes)


def test_a_profile_of_one_batch_says_little_of_others():
    known = Provenance(
        models={"mine": Model.of(model())}, hosts=1, workers=1, repeated=("mine",), batches={"mine": (8, 8)}
    )
    where = Cluster(hosts=[{}], costs={"mine": model(PLAIN).costs}, provenance=known)
    same, larger = (simulate(job(model(), cluster=where, batch=batch), replications=2) for batch in (8, 32))
    assert same.interval[1] < 1.2 * same.samples_per_s
    assert larger.interval[1] == pytest.approx(4 * larger.samples_per_s, rel=0.15)


# Several kinds of GPU


@pytest.fixture
def file(tmp_path):
    def written(step):
        path = tmp_path / "mine.toml"
        path.write_text(f'schema = "workload/1"\nname = "mine"\nparameters = "1 M"\nlayers = 2\nstep = [{step}]\n')
        return str(path)

    return written


UNNAMED, NAMED = '{ time = "400 ms", batch = 8 }', '{ time = "400 ms", batch = 8, gpu = "A100" }'
SHORT = ["--protocol", "allreduce", "--workers", "1", "--steps", "2", "--replications", "2", "--stragglers", "none"]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (run, ["--cluster", "p4d.24xlarge", "--what-if", "cluster=p3.8xlarge"]),
        (run, ["--cluster", "p4d.24xlarge", "--what-if", "hosts.0.gpu=V100"]),
        (sweep.main, ["--cluster", "p4d.24xlarge,p3.8xlarge", "-o", "x.parquet"]),
    ],
)
def test_kinds_of_gpu_are_not_compared_by_a_step_that_names_none(command, words, file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WrongSetting, match="hosts: gpu: given 'A100, V100'; allowed: one kind"):
        command(["--workload", file(UNNAMED), *SHORT, *words])


def test_kinds_of_gpu_are_compared_by_a_step_that_names_its_own(file, capsys):
    words = ["--workload", file(NAMED), "--cluster", "p4d.24xlarge", *SHORT]
    assert run([*words, "--what-if", "cluster=p3.8xlarge"]) == 0
    assert "cluster=p3.8xlarge" in capsys.readouterr().out


def planned(path, *hosts):
    hosts = hosts or ("p4d.24xlarge", "p3.8xlarge")
    asked = Question(workload=path, samples_per_s=1, hosts=hosts, counts=(1,), protocols=("allreduce",))
    return plan.answer(asked, pools.of_size(1), 5.0)


def test_a_plan_over_kinds_of_gpu_needs_a_step_that_names_its_own(file):
    with pytest.raises(WrongSetting, match="hosts: gpu: given 'A100, V100'"):
        planned(file(UNNAMED))
    found = {one.configuration.host: one for one in planned(file(NAMED)).simulated}
    assert found["p4d.24xlarge"].error == 0
    assert found["p3.8xlarge"].error > 0.5


def test_a_plan_does_not_advise_to_measure_what_was_measured(file):
    found = (planned(file(NAMED), host).values for host in ("p4d.24xlarge", "p3.8xlarge"))
    there, elsewhere = ({value.parameter.kind for value in values} for values in found)
    assert (there, elsewhere) == ({sensitivity.MESSAGES}, {sensitivity.COMPUTING, sensitivity.MESSAGES})


def test_a_profile_s_costs_are_not_taken_for_those_of_another_gpu():
    of_a100 = Cluster(hosts=[{"gpu": "A100"}], costs={"mine": model(PLAIN).costs})
    jobs = [
        job(model(PLAIN), cluster=of_a100.model_copy(update={"hosts": Cluster(hosts=[{"gpu": name}]).hosts}))
        for name in ("A100", "V100")
    ]
    measured_steps.check_one_kind(jobs[:1] * 2)
    with pytest.raises(WrongSetting, match="A100, V100"):
        measured_steps.check_one_kind(jobs)


def test_servers_on_cores_do_not_make_gpus_slower():
    served = job(model(A100), None, "A100", workers=1)
    served = Scenario(protocols.make("ps-sync"), model(A100), workers=1, cluster=served.cluster)
    served.check_computing()
    assert computing_s(served) == pytest.approx(0.4)
    assert named_gpus.reference(served).name == "A100"
