"""What real runs refuse before anything starts: hosts without a proper name, jobs that no memory holds, options that would do nothing."""

import json

import pytest

from real import calibrate, campaign, needs, run
from real.launching import host_names
from sim.base.errors import WrongSetting, WrongText

JOB = ["--protocol", "fmb", "--workload", "mlp", "--steps", "2"]


def refused(main, words: list[str]) -> str:
    with pytest.raises(WrongSetting) as error:
        main(words)
    return str(error.value)


@pytest.mark.parametrize("name", ["localhost", "node-1.cluster_2", "10.0.0.1", "::1", "a" * 63, "0"])
def test_names_of_hosts(name):
    host_names.check("--cluster", name)


ODD = ["-oProxyCommand=touch${IFS}x", "-", "a;b", "", "a..b", "x\n", "h\xf6st", "a" * 64, "a/b", "\u0660"]


@pytest.mark.parametrize("name", ODD)
def test_what_ssh_would_take_for_something_else(name):
    with pytest.raises(WrongSetting, match=r"--cluster: given .*names of hosts"):
        host_names.check("--cluster", name)


@pytest.mark.parametrize("protocol", ["fmb", "ps-async", "horovod"])
@pytest.mark.parametrize("count", [1, 2])
def test_a_cluster_with_such_a_host(protocol, count, tmp_path, monkeypatch):
    monkeypatch.setattr("sim.base.home.need", lambda *_: None)
    path = tmp_path / "c.toml"
    path.write_text(f'schema = "cluster/1"\nhosts = [{{ count = {count}, name = "-oProxyCommand=x", cores = 4 }}]\n')
    words = ["--protocol", protocol, "--workload", "mlp", "--workers", "1", "--runtime", "mpi", "--cluster", str(path)]
    assert refused(run.main, words).startswith("--cluster: hosts: name: given '-oProxyCommand=x'")


def test_a_testbed_that_nobody_would_be_in():
    said = refused(run.main, [*JOB, "--workers", "0", "--testbed", "100 Mbit/s"])
    assert said.startswith("--testbed: given '100 Mbit/s'; allowed: nothing with")


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_batch_that_no_memory_holds(workers):
    said = refused(run.main, [*JOB, "--workers", workers, "--batch", "1000000000000"])
    assert said.startswith("--batch: given 1000000000000; allowed: a smaller one")


def test_all_workers_of_no_cluster():
    assert refused(run.main, [*JOB, "--workers", "all"]).startswith(
        "--workers: given 'all'; allowed: a number, or --cluster"
    )


def test_a_model_that_no_memory_holds(tmp_path):
    layers = [("a", [784, 10**9]), ("b", [10**9]), ("c", [10**9, 10]), ("d", [10])]
    variables = ", ".join(f'{{ name = "{name}", shape = {shape} }}' for name, shape in layers)
    path = tmp_path / "w.toml"
    path.write_text(f'schema = "workload/1"\nname = "mlp"\nsample_shape = [784]\nvariables = [{variables}]\n')
    words = ["--protocol", "fmb", "--workload", str(path), "--workers", "1"]
    assert refused(run.main, words).startswith("--workload: given 'mlp'; allowed: a smaller one")


def test_the_memory_of_a_calibration_and_of_a_campaign(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["-o", "p.toml", "--workload", "mlp", "--batch", "1000000000000"]
    assert refused(calibrate.main, words).startswith("--batch: given")
    (tmp_path / "c.json").write_text(json.dumps([["--trace", "c.parquet", *JOB, "--batch", "1000000000000"]]))
    assert refused(campaign.main, ["c.json"]).startswith("--batch: given")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.json"]


def test_what_fits_is_started():
    needs.check(2, 1e6, run.scenario_of(run.parse([*JOB, "--workers", "1"])))
    with pytest.raises(WrongSetting, match="--workers: given 9999; allowed: at most"):
        needs.check(10_000, 1e9)


@pytest.mark.parametrize("cell", [["--help"], ["--data", "a\0b"], ["-h"]])
def test_a_cell_that_would_end_its_campaign(cell, tmp_path, capsys):
    """By a page of help, or a traceback."""
    (tmp_path / "c.json").write_text(json.dumps([["--trace", "c.parquet"], ["--trace", "d.parquet", *cell]]))
    with pytest.raises(SystemExit) as ended:
        campaign.main([str(tmp_path / "c.json")])
    out, err = capsys.readouterr()
    assert (ended.value.code, out, err.count("\n")) == (2, "", 1)
    assert "cell 2" in err


@pytest.mark.parametrize("seed", ["-1", str(2**64)])
def test_a_seed_of_a_calibration(seed, tmp_path):
    assert refused(calibrate.main, ["-o", str(tmp_path / "p.toml"), f"--seed={seed}"]).startswith("--seed: given")


def test_a_text_whose_source_shows_a_mistake(module):
    text = """
from dataclasses import dataclass
from sim.language.text import Text
from sim.language.verbs import compute

@dataclass(frozen=True)
class Own(Text):
    def __call__(self, me):
        for _ in me.steps():
            compute(me)
            yield from me.update()
"""
    words = ["--runtime", "mpi", "--protocol", f"{module(text)}:Own", "--workload", "mlp", "--workers", "2"]
    with pytest.raises(WrongText, match=r"compute\(...\) does nothing without `yield from`"):
        run.main([*words, "--engine", "numpy", "--steps", "2"])
