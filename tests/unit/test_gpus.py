"""GPUs, hosts and links by name: rates and their spread, intervals of a factor, catalogues of one's own, and wrong names."""

import math
import re

import numpy as np
import pytest

from experiments import shares
from sim import protocols
from sim.answers import sources
from sim.base import interval
from sim.base.errors import WrongSetting
from sim.job import named_gpus, variants
from sim.job.scenario import Scenario
from sim.model import nominal, workload
from sim.model.costs import Costs, Line
from sim.platform import catalogue, cluster, gpu, named_links
from sim.platform.cluster import Cluster, Host, Link
from sim.simulation import simulate

MODEL = workload.NAMED["resnet50"]
MINE = workload.Workload(name="mine", parameters="1 M", layers=4, batch=32, flops_per_sample="3 Gflop")
MEASURED = workload.Workload(name="mine", parameters="1 M", layers=4, step={"time": "250 ms", "batch": 32})
FREE = Link(latency_s=0.0, overhead_s=0.0, bandwidth_bytes_per_s=math.inf)


def job(hosts, model=MINE, workers=1, protocol="allreduce", **more):
    where = Cluster(hosts=hosts if isinstance(hosts, list) else [hosts], network=FREE, **more)
    return Scenario(protocols.make(protocol), model, workers=workers, steps=5, warmup=1, cluster=where)


# Shares and their spread


def test_the_catalogue_has_what_published_rates_say():
    """To the digits that it is written with; a model that several published counts once."""
    each = shares.of_one_gpu().groupby(["gpu", "precision", "model"]).log.mean()
    logs = dict(each.groupby(["gpu", "precision"]).mean())
    logs["V100-32GB", "fp32"], logs["V100-32GB", "fp16"] = logs["V100", "fp32"], logs["V100", "fp16"]  # the same chip
    for (name, precision), middle in logs.items():
        found = getattr(catalogue.find("gpus", name), precision).share
        assert found == pytest.approx(math.exp(middle), abs=0.0051), name
    known = {(g.name, name) for g in catalogue.all_of("gpus").values() for name in g.formats if getattr(g, name).known}
    assert known == set(logs)


def test_published_rates_are_within_what_the_catalogue_says_of_their_gpus():
    """Nine times in ten; and half as wide an interval would not hold them."""
    off = []
    for one in shares.of_one_gpu().itertuples():
        rate = getattr(catalogue.find("gpus", one.gpu), one.precision)
        off.append(abs(one.log - math.log(rate.share)) / interval.of_normal(rate.spread))
    assert np.mean(np.array(off) < 1) >= 0.9 > np.mean(np.array(off) < 0.5)


# What computing takes


def test_a_step_on_a_named_gpu():
    """Three times the forward operations over the share of the peak, and the launch of a step."""
    rate = catalogue.find("gpus", "V100").fp32
    costs = job(Host(gpu="V100")).costs
    assert costs.compute(32) == pytest.approx(nominal.LAUNCH_S + 3 * 32 * 3e9 / (rate.peak * rate.share))
    assert costs.error == rate.spread
    assert costs.update(9e8) == pytest.approx(5 * 9e8 / 900e9)


@pytest.mark.parametrize(
    ("name", "precision", "found"), [("V100", None, "fp32"), ("A100", None, "tf32"), ("A100", "fp16", "fp16")]
)
def test_arithmetic_is_in_the_format_asked_for(name, precision, found):
    one = catalogue.find("gpus", name)
    model = MINE.model_copy(update={"precision": precision})
    rate = getattr(one, found)
    assert named_gpus.flops_per_s(one, model) == rate.peak * rate.share


def test_a_faster_gpu_among_others_computes_faster():
    """Costs are of the GPU of most workers, or of the slowest, whatever the order of hosts; speeds are relative to it."""
    v100, k80 = Host(gpu="V100"), Host(gpu="K80")
    of_v100, of_k80 = (named_gpus.flops_per_s(catalogue.find("gpus", name), MINE) for name in ("V100", "K80"))
    for hosts, speeds in (([v100, k80], [of_v100 / of_k80, 1]), ([k80, v100], [1, of_v100 / of_k80])):
        both = job(hosts, workers=2)
        assert [host.speed for host in both.machines] == pytest.approx(speeds)
        assert both.costs == job(k80).costs.model_copy(update={"error": 0.59})
    most = job([k80, v100, v100], workers=3)
    assert most.costs.compute == job(v100).costs.compute


@pytest.mark.parametrize("protocol", ["ps-sync", "ps-layers", "fmb", "kbatch-async"])
@pytest.mark.parametrize("model", [MINE, MEASURED])
def test_a_core_that_serves_costs_the_same_whatever_the_workers_gpu_is_called(protocol, model):
    mine = Host(name="w", gpu={"name": "mine", "fp32": 1e13, "memory_bytes_per_s": 2e11})
    core = nominal.nominal(model.flops_per_sample or 0.0, model.parameters)
    for worker in (mine, Host(name="w", gpu="V100"), Host(name="w", gpu="H100"), Host(name="w", gpus=1)):
        served = job([Host(name="ps"), worker], model, workers=1, protocol=protocol)
        assert served.machines[0].speed == 1.0
        assert (served.costs.reduce, served.costs.update) == (core.reduce, core.update)


def test_a_core_that_serves_beside_gpus_that_add_costs_the_same_too():
    """Workers of hybrid add and update variables by themselves: a core is then as fast as its memory is beside theirs."""
    seconds = set()
    for name in ("V100", "H100"):
        served = job([Host(name="ps"), Host(gpu=name, name="worker")], workload.NAMED["lm1b"], 1, "hybrid")
        seconds.add(round(served.costs.reduce(1e9) / served.machines[0].speed, 9))
    assert seconds == {1e9 / nominal.CORE_BYTES_PER_S}


def test_a_worker_without_a_gpu_computes_at_a_core_s_rate():
    """Beside one with a GPU: as long as on a cluster that has no GPU at all."""
    mixed, alone = job([Host(gpu="V100"), Host(name="core")], workers=2), job(Host(name="core"), workers=1)
    assert mixed.costs.compute.slope_s / mixed.machines[1].speed == pytest.approx(alone.costs.compute.slope_s)


@pytest.mark.parametrize("protocol", ["allreduce", "ps-sync"])
def test_ranks_at_the_median_of_several_kinds_of_gpus_are_alike(protocol):
    """Speeds of hosts are relative to their own GPUs, and the median is relative to the first one's; a server's core stays as it is."""
    hosts = [Host(name="ps"), Host(gpu="V100", name="a"), Host(gpu="A100", name="b", count=2)]
    of = job(hosts[protocol == "allreduce" :], workers=3, protocol=protocol)
    speeds = [of.machines[host].speed for host in of.hosts]
    evened = variants.at_the_median(of)
    found = [evened.machines[host].speed for host in of.hosts]
    assert found[of.servers :] == pytest.approx([speeds[-1]] * 3)
    assert found[: of.servers] == speeds[: of.servers]


def test_a_step_that_was_measured_is_not_changed_by_the_gpu_s_name():
    found = job(Host(gpu="V100"), MEASURED)
    assert found.costs.compute(32) == pytest.approx(0.25)
    assert found.costs.pack(9e8) == pytest.approx(2 * 9e8 / 900e9)


def test_measured_costs_come_first():
    known = Costs(compute=Line(base_s=0.1))
    profiled = job(Host(gpu="V100"), costs={"mine": known})
    assert profiled.costs == known
    assert profiled.machines[0].speed == 1.0
    own = job(Host(gpu="V100"), workload.Workload(name="own", parameters="1 k", layers=1, costs=known))
    assert own.costs.compute == known.compute


# The interval of a factor


@pytest.mark.parametrize("runs", [1, 2, 3, 10, 40])
def test_an_uncalibrated_answer_is_within_the_factor_it_states(runs):
    """Of a job that only computes, whatever the number of replications."""
    quiet = job(Host(gpu="V100"))
    found = simulate(quiet, "event", runs)
    (low, high), middle = found.interval, found.samples_per_s
    factor = math.exp(interval.of_normal(0.59))
    assert factor == pytest.approx(2.6, abs=0.05)
    assert 0.8 * factor < high / middle < 1.15 * factor
    assert 0.8 * factor < middle / low < 1.15 * factor
    assert "within a factor 2.6, nine times in ten" in found.notes[0]


def test_an_unknown_gpu_says_so():
    said = sources.notes(job(Host(gpu="A10G")))[0]
    assert "as no model's rate on A10G in this format was at hand" in said
    assert "at hand" not in sources.notes(job(Host(gpu="A10")))[0]


# Links within a host


def test_tensor_cores_that_are_no_faster_than_others_reach_what_others_do():
    """TF32 of GeForce: five models of three sources on RTX 3090 reach 0.53 of its peak, as models do in FP32, and not 0.18."""
    assert catalogue.find("gpus", "RTX 3090").reached("tf32").share == gpu.OTHERS["fp32"][0]
    assert catalogue.find("gpus", "RTX 3090").reached("tf32", "encoder").share == gpu.OTHERS["fp32"][0]
    assert catalogue.find("gpus", "RTX 3090").reached("fp16").share == gpu.OTHERS["tensor"][0]
    assert catalogue.find("gpus", "A6000").reached("tf32").share == gpu.OTHERS["tensor"][0]


@pytest.mark.parametrize("name", ["PCIe 3 x16", "NVLink 2"])
def test_a_ring_within_a_host_takes_what_its_link_passes(name):
    """Each of 2(n - 1) pieces takes its bytes, at the median rate of such links, and the overheads of both ends; nothing else does."""
    free = workload.Workload(name="free", parameters="100 M", layers=1, costs={"compute": {"base_s": 0.1}})
    host = Host(gpu="V100", gpus=4)
    where = Cluster(hosts=[host], local=name)
    ring = Scenario(protocols.make("allreduce", ["algorithm=ring"]), free, workers=4, steps=3, warmup=1, cluster=where)
    link = catalogue.find("links", name)
    step_s = simulate(ring, "event", 1).step_s.mean()
    floor_s = 0.1 + 6 * (100e6 * 4 / 4) / link.bandwidth_bytes_per_s * math.exp(named_links.within(link).mean)
    assert floor_s < step_s < floor_s + 6 * 4 * (link.latency_s + 2 * link.overhead_s)


# The catalogue


def test_a_file_without_a_network_has_that_of_its_types_and_else_the_usual_one(tmp_path):
    path = tmp_path / "two.toml"
    for hosts, network in (
        ('{ type = "p4d.24xlarge", count = 2 }', catalogue.find("hosts", "p4d.24xlarge").network),
        ('{ type = "p4d.24xlarge" }, { type = "g5.12xlarge" }', catalogue.find("hosts", "g5.12xlarge").network),
        ('{ name = "own", count = 2 }', cluster.ASSUMED),
    ):
        path.write_text(f'schema = "cluster/1"\nhosts = [{hosts}]\n')
        assert cluster.read(str(path)).network == network


@pytest.mark.parametrize("name", catalogue.all_of("hosts"))
def test_every_kind_of_host_answers(name):
    kind = catalogue.find("hosts", name)
    count = 2 if kind.network else 1
    placed = cluster.read(f"{name}*{count}")
    assert placed.hosts[0].count == count
    assert (placed.hosts[0].cores, placed.hosts[0].gpus) == (kind.cores or kind.gpus, kind.gpus)
    assert placed.network == (kind.network or cluster.ASSUMED)
    assert (placed.hosts[0].gpu and placed.hosts[0].gpu.name) == kind.gpu
    assert not (kind.gpus or 1) > 1 or placed.local == catalogue.find("links", kind.local)
    workers = count * placed.hosts[0].ranks
    found = simulate(
        Scenario(protocols.make("allreduce"), MODEL, workers, steps=2, warmup=1, cluster=placed), replications=1
    )
    assert 0 < found.samples_per_s < math.inf
    assert Cluster.model_validate(placed.model_dump(mode="json", by_alias=True)) == placed


ADDRESS, YEAR = re.compile(r"\b[a-z0-9-]+(\.[a-z0-9-]+)+/?"), re.compile(r"\b20[12][0-9]\b")


@pytest.mark.parametrize("section", ["hosts", "gpus"])
def test_every_figure_has_an_address_and_a_date(section):
    for name, one in catalogue.all_of(section).items():
        assert ADDRESS.search(one.source), name
        assert YEAR.search(one.source), name
        for offer in one.offered.values() if section == "hosts" else ():
            assert ADDRESS.search(offer.source), name
            assert re.fullmatch(r"20[0-9]{2}-[01][0-9]-[0-3][0-9]", offer.as_of), name


NEWER = [
    ["K80", "P100", "V100", "A100", "A100-80GB", "H100", "H200", "B200"],
    ["T4", "L4", "L40S"],
    ["A10G", "L40S"],
    ["A100-80GB-PCIe", "H100-PCIe", "H100"],
    ["A100", "MI300X"],
    ["RTX 3060", "RTX 3060 Ti", "RTX 3070", "RTX 3080", "RTX 3090", "RTX 4080", "RTX 4090"],
    ["RTX 4060", "RTX 4060 Ti", "RTX 4070", "RTX 4070 Ti", "RTX 4080", "RTX 4090"],
    ["A10", "A40", "A6000"],
]


@pytest.mark.parametrize("precision", [None, "fp16"])
@pytest.mark.parametrize("names", NEWER, ids=lambda names: names[-1])
def test_a_newer_generation_is_not_slower(names, precision):
    model = MINE.model_copy(update={"precision": precision})
    found = [catalogue.find("gpus", name) for name in names]
    speeds = [named_gpus.flops_per_s(one, model) for one in found if precision is None or one.fp16]
    assert speeds == sorted(speeds)


def test_no_link_between_gpus_is_slower_than_pcie_and_no_newer_one_than_an_older():
    links = {name: one.bandwidth_bytes_per_s for name, one in catalogue.all_of("links").items()}
    assert min(links.values()) == links["PCIe 3 x16"]
    for family in ("PCIe", "NVLink"):
        rates = [rate for name, rate in sorted(links.items()) if name.startswith(family)]
        assert rates == sorted(rates)
    for kind in catalogue.all_of("hosts").values():
        assert kind.local is None or kind.network is None or kind.local in links


def test_discounts_for_being_taken_away_are_discounts():
    for name, kind in catalogue.all_of("hosts").items():
        prices = [kind.offered[offer].usd_per_hour for offer in ("spot", "on-demand") if offer in kind.offered]
        assert prices == sorted(prices), name


@pytest.mark.parametrize(
    ("device", "name"),
    [
        ("NVIDIA A100 80GB PCIe", "A100-80GB-PCIe"),
        ("NVIDIA A100-SXM4-80GB", "A100-80GB"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA L40S", "L40S"),
        ("Tesla V100-SXM2-32GB", "V100-32GB"),
        ("NVIDIA GeForce RTX 3060 Ti", "RTX 3060 Ti"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("NVIDIA RTX A6000", "A6000"),
        ("NVIDIA GH200 480GB", "GH200"),
    ],
)
def test_a_device_is_known_by_its_words(device, name):
    assert catalogue.gpu_of(device).name == name


@pytest.mark.parametrize(
    "device", ["NVIDIA GeForce RTX 3080 Ti", "NVIDIA GeForce RTX 4070 Laptop GPU", "RTX 4080 SUPER"]
)
def test_a_variant_of_a_device_is_another_one(device):
    assert catalogue.gpu_of(device) is None


def test_several_hosts_of_which_nobody_says_how_fast_their_network_is(tmp_path):
    """They are refused by name; a file says how fast it is."""
    with pytest.raises(WrongSetting, match="one lambda-8xH100, because its network is not known"):
        cluster.read("lambda-8xH100*2")
    file = tmp_path / "c.toml"
    file.write_text(
        HEAD + 'hosts = [{ type = "lambda-8xH100", count = 2 }]\n[network]\nbandwidth_bytes_per_s = "400 Gbit/s"\n'
    )
    assert cluster.read(str(file)).network.bandwidth_bytes_per_s == 50e9
    file.write_text(HEAD + 'hosts = [{ type = "lambda-8xH100", count = 2 }]\n')
    with pytest.raises(WrongSetting, match="its network is not known"):
        cluster.read(str(file))


def test_a_type_is_a_start_and_what_is_given_counts():
    placed = Cluster(hosts=[{"type": "p3.8xlarge", "count": 3, "cores": 7, "name": "x"}], local="NVLink 3")
    assert (placed.hosts[0].name, placed.hosts[0].cores, placed.hosts[0].gpus) == ("x", 7, 4)
    assert placed.local == catalogue.find("links", "NVLink 3")
    assert placed.network.bandwidth_bytes_per_s == 1.25e9


HEAD = 'schema = "cluster/1"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('hosts = [{ gpu = "V1000" }]', "hosts.0.gpu: given 'V1000'; allowed: K80, P100"),
        ('hosts = [{ type = "p3.8xlrge" }]', "did you mean p3.8xlarge or"),
        ("hosts = [{ type = 3 }]", "hosts.0: given 3; allowed: a name of a kind of host"),
        ('hosts = [{ gpu = "V100" }]\nlocal = "NVlink"', "local: given 'NVlink'; allowed: PCIe 3 x16"),
        ('hosts = [{ gpu = { name = "x", fp32 = "1 Tflop/s" } }]', "memory_bytes_per_s"),
    ],
)
def test_names_that_are_none(text, said, tmp_path):
    file = tmp_path / "c.toml"
    file.write_text(HEAD + text + "\n")
    with pytest.raises(WrongSetting) as refused:
        cluster.read(str(file))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "text", ["p3.8xlarge*0", "p3.8xlarge*99999999", "p3.8xlarge*", "*4", "p3.8xlrge", "", "\0", "V100"]
)
def test_a_cluster_that_is_none(text):
    with pytest.raises(WrongSetting, match="--cluster"):
        cluster.read(text)
