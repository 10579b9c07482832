"""What the commands on models and hosts print."""

from importlib import import_module

import pytest

from sim import command, run
from sim.base.errors import RunFailed, WrongSetting
from sim.model import workload
from sim.platform import catalogue


def said(capsys, module: str, *words: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        command.run(module, lambda: import_module(module).main(list(words)))
    out, err = capsys.readouterr()
    assert not (out and err)
    return ended.value.code, out or err


def test_models_are_listed_and_shown(capsys):
    code, listed = said(capsys, "sim.workloads", "list")
    assert code == 0
    assert [line.split()[0] for line in listed.splitlines()] == list(workload.NAMED)
    code, shown = said(capsys, "sim.workloads", "show", "resnet18")
    assert "11.7 M in   62 variables" in shown
    assert "bn1.running_mean                                 64, not trained" in shown


def test_hosts_gpus_and_links_are_listed_and_shown(capsys):
    code, listed = said(capsys, "sim.hosts", "list")
    names = [name for section in catalogue.SECTIONS for name in catalogue.all_of(section)]
    assert code == 0
    assert all(line.startswith(name) for name, line in zip(names, listed.splitlines(), strict=True))
    assert "on-demand: 12.24 USD/h as of 2026-07-20" in said(capsys, "sim.hosts", "show", "p3.8xlarge")[1]
    assert "of other GPUs" in said(capsys, "sim.hosts", "show", "A10G")[1]


def test_a_failure_is_said_without_control_characters(capsys):
    def fails():
        raise RunFailed("host a\x1b[31mb\u202e is gone")

    with pytest.raises(SystemExit):
        command.run("sim.run", fails)
    assert capsys.readouterr().err == "sim.run: host a\\x1b[31mb\\u202e is gone\n"


@pytest.mark.parametrize("option", ["--workload", "--cluster", "--stragglers"])
def test_a_file_that_is_not_there_is_said_to_be_none(option, capsys):
    for name in ("nosuch.toml", "nosuch.TOML"):
        code, line = said(capsys, "sim.run", option, name)
        assert (code, line.partition("allowed: ")[2]) == (2, "a file that can be read (No such file or directory)\n")
    assert "or " in said(capsys, "sim.run", option, "nosuch")[1]


def test_a_wrong_key_of_a_variable_lists_the_keys_of_variables(capsys, tmp_path):
    """By the name that files have, which is not that of the program's field."""
    (tmp_path / "w.toml").write_text(
        'schema = "workload/1"\nname = "x"\nvariables = [{ name = "a", shape = [3], dtype = "f4" }]'
    )
    code, line = said(capsys, "sim.workloads", "show", str(tmp_path / "w.toml"))
    assert (code, line.endswith("allowed: the keys name, shape, rows, activation_items, trained\n")) == (2, True)


@pytest.mark.parametrize(
    "words",
    ["hosts show", "hosts list V100", "hosts", "workloads from", "workloads list -o x.toml", "workloads shew mlp"],
)
def test_wrong_words_are_one_line(words, capsys):
    code, line = said(capsys, *f"sim.{words}".split())
    assert (code, line.count("\n")) == (2, 1)


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
