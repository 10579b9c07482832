"""What the commands on models and hosts print."""

import pytest
from test_commands import refused

from sim import command, run
from sim.base.errors import RunFailed, WrongSetting
from sim.model import workload
from sim.platform import catalogue


def test_models_are_listed_and_shown(here):
    listed = here("sim.workloads", "list")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == list(workload.NAMED)
    shown = here("sim.workloads", "show", "resnet18").stdout
    assert "11.7 M in   62 variables" in shown
    assert "bn1.running_mean                                 64, not trained" in shown


def test_hosts_gpus_and_links_are_listed_and_shown(here):
    listed = here("sim.hosts", "list")
    names = [name for section in catalogue.SECTIONS for name in catalogue.all_of(section)]
    assert (listed.returncode, listed.stderr) == (0, "")
    assert all(line.startswith(name) for name, line in zip(names, listed.stdout.splitlines(), strict=True))
    assert "on-demand: 12.24 USD/h as of 2026-07-20" in here("sim.hosts", "show", "p3.8xlarge").stdout
    assert "of other GPUs" in here("sim.hosts", "show", "A10G").stdout


def test_a_failure_is_said_without_control_characters(capsys):
    def fails():
        raise RunFailed("host a\x1b[31mb\u202e is gone")

    with pytest.raises(SystemExit):
        command.run("sim.run", fails)
    assert capsys.readouterr().err == "sim.run: host a\\x1b[31mb\\u202e is gone\n"


@pytest.mark.parametrize("option", ["--workload", "--cluster", "--stragglers"])
def test_a_file_that_is_not_there_is_said_to_be_none(option, here):
    for name in ("nosuch.toml", "nosuch.TOML"):
        line = refused(here("sim.run", option, name))
        assert line.endswith("allowed: a file that can be read (No such file or directory)")
    assert "or " in refused(here("sim.run", option, "nosuch"))


def test_a_wrong_key_of_a_variable_lists_the_keys_of_variables(here, tmp_path):
    """By the name that files have, which is not that of the program's field."""
    (tmp_path / "w.toml").write_text(
        'schema = "workload/1"\nname = "x"\nvariables = [{ name = "a", shape = [3], dtype = "f4" }]'
    )
    line = refused(here("sim.workloads", "show", tmp_path / "w.toml"))
    assert line.endswith("allowed: the keys name, shape, rows, activation_items, trained")


@pytest.mark.parametrize(
    "words",
    ["hosts show", "hosts list V100", "hosts", "workloads from", "workloads list -o x.toml", "workloads shew mlp"],
)
def test_wrong_words_are_one_line(words, here):
    refused(here(*f"sim.{words}".split()))


def test_another_format_of_numbers_is_simulated_and_not_trained():
    from real.models import forward_of

    half = workload.NAMED["mlp"].model_copy(update={"precision": "fp16"})
    assert forward_of(workload.NAMED["mlp"])
    with pytest.raises(WrongSetting, match="precision: given 'fp16'; allowed: fp32"):
        forward_of(half)


@pytest.mark.parametrize(
    "text",
    [
        "step = { time = 1e-300, batch = 1000000000 }",
        'step = [{ time = "1 ms", batch = 1 }, { time = "0.9 ns", batch = 2 }]',
        "costs = { compute = { base_s = 1e-300 } }",
        "costs = { compute = { base_s = 1e-10, slope_s = 1e-300 } }",
    ],
)
def test_no_step_is_computed_within_a_nanosecond(text, tmp_path, monkeypatch):
    """The answer was some 10^13 samples/s."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.toml").write_text(
        f'schema = "workload/1"\nname = "w"\nvariables = [{{ name = "a", shape = [4] }}]\n{text}\n'
    )
    with pytest.raises(WrongSetting, match=r"1e-300|9e-10|1e-10"):
        run.main(["--workload", "w.toml", "--protocol", "fmb", "--steps", "2", "--replications", "1", "--json"])
