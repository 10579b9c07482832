"""GPUs without a name pack and sum as fast as a GPU's memory, and not as a core's."""

import pytest

from sim import protocols
from sim.answers import sources
from sim.job.scenario import Scenario
from sim.model import nominal
from sim.model.costs import Costs, Line
from sim.model.workload import Workload
from sim.platform.cluster import Cluster
from sim.simulation import simulate

STEP = Workload(name="mine", parameters="25 M", layers=10, step={"time": "60 ms", "batch": 32})
FLOPS = Workload(name="mine", parameters="25 M", layers=10, flops_per_sample="4 Gflop", batch=32)
OWN = {"name": "own", "fp32": "20 Tflop/s", "memory_bytes_per_s": "900 GB/s"}
SIZE = 1e8


def job(*hosts, model=STEP, protocol="allreduce", **more):
    return Scenario(protocols.make(protocol), model, cluster=Cluster(hosts=hosts), **{"workers": 4, "steps": 3, **more})


@pytest.mark.parametrize("model", [STEP, FLOPS])
@pytest.mark.parametrize("speed", [1.0, 20.0])
def test_work_over_parameters_is_of_a_gpu_s_memory_whatever_its_speed(model, speed):
    given = job({"gpus": 4, "cores": 4, "speed": speed}, model=model)
    for name, times in (("pack", 2), ("take_up", 2), ("reduce", 3)):
        assert getattr(given.costs, name)(SIZE) / speed == pytest.approx(times * SIZE / nominal.GPU_BYTES_PER_S)
    assert given.costs.compute == model.costs.compute
    assert given.costs.update(SIZE) == 0 or model is FLOPS  # a step contains its update
    assert "the memory of GPUs without a name is taken to pass 900 GB/s" in sources.notes(given)[0]


@pytest.mark.parametrize("protocol", ["allreduce", "ps-sync", "fmb"])
def test_a_job_takes_as_long_as_on_gpus_with_such_a_memory(protocol):
    hosts = ({"gpus": 4, "cores": 4, "count": 2}, {"gpus": 4, "cores": 4, "count": 2, "gpu": OWN})
    unnamed, rated = (simulate(job(host, protocol=protocol), replications=2).samples_per_s for host in hosts)
    assert unnamed == pytest.approx(rated, rel=0.01)


def test_cores_that_serve_stay_cores():
    served = job({"cores": 4}, {"gpus": 4, "cores": 4}, protocol="ps-sync", workers=4, servers=4)
    assert served.costs.reduce == STEP.costs.reduce
    assert served.costs.pack(SIZE) == pytest.approx(2 * SIZE / nominal.GPU_BYTES_PER_S)


def test_cores_and_measured_costs_stay_as_they_are():
    assert job({"cores": 4}).costs == STEP.costs
    known = Costs(compute=Line(base_s=0.1), pack=Line(slope_s=1e-9))
    fitted = Cluster(hosts=[{"gpus": 4}], costs={"mine": known})
    assert Scenario(protocols.make("allreduce"), STEP, cluster=fitted).costs == known
