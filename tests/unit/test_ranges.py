"""Every number that a user may write has a finite range, and what says too little, or needs too much, is refused in a line."""

import contextlib
import io
import json
import math

import numpy as np
import pytest

from sim import laws, needs, protocols, run
from sim.base.errors import WrongSetting
from sim.base.ranges import JOB
from sim.job.scenario import Scenario
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.model.workload import Workload
from sim.platform import cluster
from sim.platform.cluster import Cluster, Host, Link

VARIABLES = 'variables = [{ name = "w", shape = [1000, 30] }]\n'
MODEL = f'name = "mine"\nbatch = 32\n{VARIABLES}'
HOSTS = 'schema = "cluster/1"\nhosts = [{ count = 9 }]\n'
QUICK = ["--workers", "2", "--steps", "3", "--warmup", "1", "--replications", "1", "--stragglers", "none", "--json"]


def refused(*arguments) -> str:
    """What is said of a command line that is refused; it is one line."""
    with pytest.raises((WrongSetting, SystemExit)) as caught:
        run.main([str(argument) for argument in arguments])
    said = str(caught.value)
    assert "\n" not in said
    return said


def json_of(*arguments) -> dict:
    """The answer to a command line."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert run.main([*map(str, arguments), "--json"]) == 0
    return json.loads(said.getvalue())


def written(tmp_path, text: str) -> str:
    file = tmp_path / "file.toml"
    file.write_text(text)
    return str(file)


def numbers(schema, path: str = "") -> dict[str, dict]:
    """Every number of a JSON schema, by where it is."""
    if isinstance(schema, list):
        return {key: value for n, one in enumerate(schema) for key, value in numbers(one, f"{path}/{n}").items()}
    if not isinstance(schema, dict):
        return {}
    if schema.get("type") in ("number", "integer"):
        return {path: schema}
    return {key: value for name, one in schema.items() for key, value in numbers(one, f"{path}/{name}").items()}


FILES = {"cluster": Cluster, "workload": Workload, **laws.KINDS}
NUMBERS = {
    f"{file}: {key}": n for file, model in FILES.items() for key, n in numbers(model.model_json_schema()).items()
}
OF_ONES_OWN = "own: /properties/settings"  # which the user's class checks
NUMBERS = {where: n for where, n in NUMBERS.items() if OF_ONES_OWN not in where and "/Own/" not in where}


def test_numbers_of_files_are_found():
    assert len(NUMBERS) > 50


@pytest.mark.parametrize("where", NUMBERS)
def test_every_number_of_a_file_has_a_range(where):
    assert {"minimum", "exclusiveMinimum"} & set(NUMBERS[where])
    infinite = "bytes_per_s" in where  # on a free link bytes take no time
    assert infinite or {"maximum", "exclusiveMaximum"} & set(NUMBERS[where])


ODD = ["inf", "-inf", "nan", "-1", "1e300", "true", '""', "[]", "{}", "9223372036854775808000000000000", "'1'"]
OF_HOSTS = ["count", "cores", "gpus", "slots", "speed", "contention", "contention_error", "switching"]
NO_NUMBERS = ("named", "wakes", "by_port", "fair", "store_and_forward", "tcp", "spread_by_hosts")
OF_LINKS = [name for name in Link.model_fields if name not in NO_NUMBERS]
CASES = [
    (key, odd) for key in [*OF_HOSTS, *OF_LINKS] for odd in ODD if not (key.endswith("bytes_per_s") and odd == "inf")
]  # infinite is a free link


@pytest.mark.parametrize(("key", "odd"), CASES)
def test_odd_numbers_of_a_cluster_are_refused(key, odd, tmp_path):
    host, link = (f", {key} = {odd}", "") if key in OF_HOSTS else ("", f"{key} = {odd}\n")
    text = f'schema = "cluster/1"\nhosts = [{{ name = "n"{host} }}]\n[network]\n{link}'
    with pytest.raises(WrongSetting, match=key):
        cluster.read(written(tmp_path, text))


WRONG_CLUSTERS = {
    "a unit of something else": (HOSTS + '[network]\nlatency_s = "10 Gbit"\n', "network.latency_s"),
    "another schema": (HOSTS.replace("/1", "/0"), "cluster/1"),
    "no schema": (HOSTS.partition("\n")[2], "schema"),
    "no hosts": ('schema = "cluster/1"\n', "hosts"),
    "a flag that is a number": (HOSTS + "[network]\nfair = 1\n", "fair"),
    "no name": (HOSTS + 'name = ""\n', "name"),
    "a key that is unknown": (HOSTS + "oversleeps = 1\n", "(did you mean oversleep_s?)"),
    "a link's key that is unknown": (HOSTS + "[network.tcp]\nwindow = 1\n", "(did you mean window_bytes?)"),
    "an expression": (HOSTS + '[network]\nlatency_s = "9**9**9 s"\n', "latency_s"),
    "no connections": (HOSTS + "[network.tcp]\nconnections = 0\n", "connections"),
    "a window of nothing": (HOSTS + "[network.tcp]\nwindow_bytes = 0\n", "window_bytes"),
    "nested too deeply": (HOSTS + "x = " + "[" * 10_000 + "]" * 10_000, "nested"),
    "a number of 10,000 digits": (HOSTS + "x = " + "9" * 10_000, "TOML"),
    "a number of 10,000 digits, in hex": (HOSTS + "x = 0x" + "f" * 10_000, "x"),
    "a law that there is not": (
        HOSTS + '[costs.toy_fc.noise]\nkind = "x"\n',
        "toy_fc.noise: kind: given 'x'; allowed: constant, normal, lognormal, ",
    ),
    "a law of no kind": (HOSTS + "[costs.toy_fc.noise]\ncv = 1\n", "toy_fc.noise: kind: missing; needed: this key"),
    "a number for a table": (HOSTS + "network = 3\n", "network: given 3; allowed: a table"),
    "a table for a list": (
        'schema = "cluster/1"\nhosts = { count = 4 }\n',
        "hosts: given {'count': 4}; allowed: a list",
    ),
    "a number for a name": (HOSTS + "name = 3\n", "name: given 3; allowed: text"),
    "5 MiB": (HOSTS + "# " + "x" * 5 * 2**20, "4 MiB"),
    "bytes that are no text": (HOSTS + "# \udcff", "TOML"),
    "noise of mean 1.26": (HOSTS + '[costs.toy_fc.noise]\nkind = "empirical"\nvalues = [1.25, 1.27]\n', "mean 1"),
}


@pytest.mark.parametrize("what", WRONG_CLUSTERS)
def test_wrong_clusters_are_refused(what, tmp_path):
    text, word = WRONG_CLUSTERS[what]
    file = tmp_path / "file.toml"
    file.write_bytes(text.encode(errors="surrogateescape"))
    assert word in refused(*QUICK, "--cluster", file)


STEP = 'step = { time = "250 ms", batch = 32 }\n'
WRONG_WORKLOADS = {
    "nothing of computing": (MODEL, "step, flops_per_sample or costs"),
    "costs of nothing": (MODEL + "[costs.compute]\nbase_s = 0\nslope_s = 0\n", "step, flops_per_sample or costs"),
    "no operations": (MODEL + "flops_per_sample = 0\n", "flops_per_sample"),
    "operations in metres": (MODEL + 'flops_per_sample = "3 m"\n', "3 Gflop"),
    "a step of no time": (MODEL + "step = { time = 0, batch = 32 }\n", "step.0.time"),
    "a step of no samples": (MODEL + "step = { time = 1, batch = 0 }\n", "step.0.batch"),
    "larger steps that take less": (
        MODEL + "step = [{ time = 2, batch = 32 }, { time = 1, batch = 64 }]\n",
        "grow with the batch",
    ),
    "another schema": (MODEL + STEP + 'schema = "workload/9"\n', "workload/1"),
    "a dimension of 0": (MODEL.replace("30", "0") + STEP, "shape"),
    "a dimension beyond 64 bits": (MODEL.replace("30", "1" + "0" * 30) + STEP, "shape"),
    "more numbers than any model": (MODEL.replace("1000, 30", "10000000000, 10000000000") + STEP, "variables"),
    "no name": (MODEL.replace('"mine"', '""') + STEP, "name"),
}


@pytest.mark.parametrize("what", WRONG_WORKLOADS)
def test_wrong_workloads_are_refused(what, tmp_path):
    text, word = WRONG_WORKLOADS[what]
    assert word in refused(*QUICK, "--workload", written(tmp_path, text))


def test_rows_that_no_memory_holds_are_refused(tmp_path):
    table = '{ name = "e", shape = [500000000000, 8], rows = { per_sample = 1 } }'
    text = f'name = "mine"\nflops_per_sample = 1e6\nvariables = [{table}, {{ name = "w", shape = [9] }}]\n'
    line = refused(*QUICK, "--protocol", "hybrid", "--workload", written(tmp_path, text))
    assert line.startswith("--workload")
    assert "GB of memory" in line


@pytest.mark.parametrize(
    ("steps", "line"),
    [
        ([(0.25, 32)], (0, 0.25 / 32)),
        ([(0.25, 32), (0.35, 32)], (0, 0.3 / 32)),
        ([(1.1, 10), (2.1, 20)], (0.1, 0.1)),
        ([(1.1, 10), (2.0, 20), (3.1, 30)], (1 / 15, 0.1)),
        ([(1.0, 10), (3.0, 20)], (0, 70 / 500)),
    ],
    ids=["one", "one batch twice", "two", "three", "a line below 0"],
)
def test_measured_steps_make_a_line(steps, line, tmp_path):
    listed = ", ".join(f'{{ time = "{time} s", batch = {batch} }}' for time, batch in steps)
    costs = workload.read(written(tmp_path, MODEL + f"step = [{listed}]\n")).costs
    assert (costs.compute.base_s, costs.compute.slope_s) == pytest.approx(line, abs=1e-12)
    assert costs.loop_s + 32 * costs.partition(1) == pytest.approx(costs.compute(32))


GPUS = Cluster(hosts=[Host(count=2, gpus=8)])
FAST = Cluster(hosts=[Host(count=2, gpus=8, speed=80)])
LEARNED = Cluster(hosts=[Host(count=2, gpus=8)], costs={"mnist": Costs(compute=Line(slope_s=1e-3))})
MNIST = workload.read("mnist")


def test_gpus_of_unknown_speed_are_refused():
    with pytest.raises(WrongSetting, match=r"speed of host.*100 Gflop/s"):
        Scenario(protocols.make("horovod"), MNIST, cluster=GPUS).check_computing()


@pytest.mark.parametrize("given", ["speed", "profile", "step"])
def test_gpus_of_known_speed_are_not(given, tmp_path):
    where = {"speed": FAST, "profile": LEARNED, "step": GPUS}[given]
    model = workload.read(written(tmp_path, MODEL + STEP)) if given == "step" else MNIST
    Scenario(protocols.make("horovod"), model, cluster=where).check_computing()


HUGE, BEYOND = 10**9, 2**70
WRONG_OPTIONS = [
    *([f"--{name.replace('_', '-')}", BEYOND] for name in JOB),
    *([f"--{name.replace('_', '-')}", -1] for name in JOB),
    *(["--workers", HUGE], ["--servers", HUGE, "--protocol", "ps-sync"], ["--replications", HUGE]),
    *(["--within", given] for given in ("inf", "nan", "0", "-1", "1e300")),
    *(["--stragglers", f"niagara*{factor}"] for factor in ("", "inf", "nan", "-1", "0", "1e300", "abc", "2*2")),
    *(["--stragglers", f"none*{factor}"] for factor in ("2", "abc", "")),
    *(["--stragglers", f"lognormal(mean={mean}, cv=1)"] for mean in ("inf", "nan", "-1", "0", "1e300", "true", "1 m")),
    *(["--stragglers", f"pareto(mean=1, shape={shape})"] for shape in ("1", "inf", "nan", "1e300", "1 s")),
    *(["--stragglers", f"slow-ranks(rank={rank}, seconds=1)"] for rank in ("0", "3", "-1", "1.5", "a", "[]", BEYOND)),
    *(["--stragglers", f"markov(p_slow={p}, p_recover=0, seconds=1)"] for p in ("0", "2", "-1", "nan")),
    *([f"--{name}", ""] for name in ("protocol", "workload", "cluster", "stragglers", "trace", "json-")),
    *(["--workload", "x" * 5000], ["--cluster", "x" * 5000], ["--stragglers", "x" * 5000], ["--workload", "a\0b"]),
    *(
        ["--protocol", "amb", "--set", f"time_limit_s={given}"]
        for given in ("inf", "nan", "-1", "1e300", "true", "", "9**9 s", "1e300 s")
    ),
    *(["--protocol", "amb", "--set", f"partitions={given}"] for given in ("0", "-1", BEYOND, "true", "1.5", "inf", "")),
    *(["--protocol", "horovod", "--set", f"cycle_s={given}"] for given in ("inf", "-1", "nan")),
    *(["--protocol", "horovod", "--set", f"fusion_bytes={given}"] for given in (BEYOND, "-1", "1e9")),
    *(
        ["--protocol", "kbatch-async", "--set", given]
        for given in ("gradients=-1", f"gradients={BEYOND}", "delay_std_s=inf")
    ),
    *(["--protocol", "amb-dg", "--set", f"window_s={given}"] for given in ("inf", "nan", "-1", "1e9")),
    *(["--protocol", "ps-ssp", "--set", f"staleness={given}"] for given in ("nan", "-1", "1e300")),
    *(["--protocol", "ps-backup", "--set", f"backup={given}"] for given in ("-1", BEYOND)),
    *(["--protocol", given] for given in (":", "os:path", "nowhere:Class", "..a:B", "sim.run:main", "x" * 5000)),
]


@pytest.mark.parametrize("words", WRONG_OPTIONS, ids=lambda words: " ".join(map(str, words))[:60])
def test_wrong_numbers_and_names_of_options_are_refused(words):
    assert len(refused(*QUICK, *words)) < 1000


def test_a_bound_on_staleness_may_be_infinite():
    assert protocols.make("ps-ssp", ["staleness=inf"]).staleness == math.inf


FREE = HOSTS + "[network]\nlatency_s = 0\noverhead_s = 0\nbandwidth_bytes_per_s = inf\n"


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("world", ["engine", "event"])
def test_steps_that_take_no_time_are_refused(world, tmp_path):
    """Only partitions cost anything, and fmb computes none."""
    text = FREE + "[costs.toy_fc.partition]\nslope_s = 1\n"
    words = ["--protocol", "fmb", "--world", world, "--cluster", written(tmp_path, text)]
    assert "time" in refused(*QUICK, *words)


TOO_LARGE = [
    (["--steps", 10**9, "--world", "engine"], "--steps", "GB of memory"),
    (["--steps", 10**9, "--protocol", "ps-async"], "--steps", "GB of memory"),
    (["--warmup", 10**9, "--protocol", "ps-async", "--within", 2], "--w", "GB of memory"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("words", "option", "said"), TOO_LARGE, ids=lambda words: str(words)[:60])
def test_jobs_that_no_memory_holds_are_refused(words, option, said, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(needs, "most_bytes", lambda: 2e9)
    given = words if "--within" in words else [*words, "--replications", 1]
    line = refused(*given)
    assert line.startswith(option)
    assert said in line


def test_workers_wait_while_a_master_is_slow():
    """It evaluates for hours; they had events without end."""
    done = json_of("--protocol", "amb-dg", "--replications", 1, "--steps", 2, "--test-size", 4 * 10**10)
    assert done["samples_per_s"] > 0


def test_many_steps_are_cut_short_where_time_is():
    """A million steps: no more is drawn than there is time for; of a thousand million there is no room for the times."""
    done = json_of("--protocol", "fmb", "--steps", 10**6, "--within", 0.2)
    assert 0 < done["done"]["steps"] < 10**6
    assert refused("--protocol", "fmb", "--steps", 10**9, "--within", 0.2).startswith("--steps: given 1000000000")


@pytest.mark.parametrize("option", ["--batch", "--test-size"])
def test_samples_that_take_beyond_all_range_are_refused(option):
    """Or a clock's next turn would be no later than this one."""
    assert refused(*QUICK, option, 10**12).startswith(f"{option}: given 1000000000000; allowed: samples that take")


def test_a_number_of_an_array_is_shown_as_a_number():
    assert str(WrongSetting("shape", np.float64(0.35), "at least 1.01")) == "shape: given 0.35; allowed: at least 1.01"
