"""What commands say of their options, and of those that they do not have."""

import json
import re
from importlib import import_module

import pytest
from test_commands import COMMANDS, refused

from sim import stragglers
from sim.base.errors import nearest
from sim.command import PIPED_COLUMNS
from sim.model import workload
from sim.protocols import PROTOCOLS

REPEATED = {
    "sim.run": ["--workers", "2", "--workers", "3"],
    "sim.sweep": ["--workers", "2,3", "--workers", "4", "-o", "x.parquet"],
    "sim.plan": ["--samples", "2", "--samples", "3"],
    "real.run": ["--optimiser", "sgd", "--optimiser=sgd"],
    "real.probe": ["-o", "a.json", "--output", "b.json"],
    "real.campaign": ["cells.json", "--probe", "a.json", "--probe", "b.json"],
    "real.calibrate": ["-o", "a.toml", "--output", "b.toml"],
    "calibration.fit": ["t.jsonl", "-o", "a.toml", "-o", "b.toml"],
    "calibration.check": ["p.toml", "t.jsonl", "--tolerance", "0.1", "--tolerance=0.2"],
    "experiments.run": ["seeds", "--out", "a", "--out", "b"],
    "sim.timeline": ["t.jsonl", "-o", "a.json", "-o", "b.json"],
    "sim.plot": ["t.jsonl", "-o", "a.png", "-o", "b.png"],
    "sim.workloads": ["from", "config.json", "-o", "a.toml", "-o", "b.toml"],
    "sim.protocols.check": ["fmb", "--workload", "mlp", "--workload", "mlp"],
}
MEANT = {
    "protocol": (["--protocol", "abm"], "amb"),
    "protocol's case": (["--protocol", "AllReduce"], "allreduce"),
    "workload": (["--workload", "resnet"], "resnet50"),
    "law": (["--stragglers", "niagra*0.1"], "niagara"),
    "placement": (["--placement", "roundrobin", "--protocol", "ps-sync", "--servers", "2"], "round-robin"),
    "setting": (["--protocol", "amb", "--set", "limit=3"], "time_limit_s"),
    "option": (["--protcol", "amb"], "--protocol"),
    "option with its value": (["--replicatons=2"], "--replications"),
    "choice": (["--world", "engin"], "engine"),
}


def help_of(module: str, here) -> str:
    done = here(module, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("module", COMMANDS)
def test_no_default_is_empty_or_said_twice(module, here):
    text = help_of(module, here)
    assert "default: None" not in text
    assert "default: False" not in text
    assert "default: []" not in text
    entries = " ".join(text.split()).split(" --")
    assert all(entry.count("(default") <= 1 for entry in entries)
    assert any("(default: " in entry for entry in entries) or not defaults(module)


def defaults(module: str) -> list:
    actions = import_module(module).parser()._actions
    return [action.dest for action in actions if action.default and action.default != "==SUPPRESS=="]


@pytest.mark.parametrize("module", ["sim.run", "sim.sweep", "real.run"])
def test_names_are_those_of_the_registries(module, here, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = " ".join(help_of(module, here).split())
    for names in (PROTOCOLS, workload.NAMED, stragglers.NAMED):
        assert ", ".join(names) in text


@pytest.mark.parametrize("module", COMMANDS)
def test_help_that_is_piped_is_wide(module, here, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    wide = max(len(line) for line in help_of(module, here).splitlines())
    monkeypatch.setenv("COLUMNS", "20")
    narrow = max(len(line) for line in help_of(module, here).splitlines())
    assert narrow <= wide
    assert wide <= PIPED_COLUMNS or module == "experiments.run"  # whose questions are lines of their own


@pytest.mark.parametrize("module", REPEATED)
def test_an_option_is_given_once(module, here):
    line = refused(here(module, *REPEATED[module]))
    assert line.startswith(f"{module}: ")
    assert "given twice" in line


def test_a_setting_is_given_once(here):
    line = ["sim.run", "--protocol", "amb", "--set", "partitions=2"]
    assert "each setting once" in refused(here(*line, "--set", "partitions=3"))
    assert "partitions" not in refused(here(*line, "--seed", "-1"))


@pytest.mark.parametrize("what", MEANT)
def test_the_nearest_name_is_asked_for(what, here):
    words, name = MEANT[what]
    assert f"did you mean {name}?" in refused(here("sim.run", *words))


@pytest.mark.parametrize("option", ["--protocol", "--set", "--workers"])
def test_two_dashes_are_no_value(option, here):
    assert refused(here("sim.run", f"{option}=--")).startswith(f"sim.run: {option}: given '--'")


def test_what_is_like_nothing_is_not_guessed_at():
    assert nearest("xyzzy", PROTOCOLS) == ""


@pytest.mark.parametrize("module", ["real.run", "real.probe", "real.campaign"])
def test_a_command_without_mpi_complains_under_its_own_name(module, here, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cells.json").write_text(json.dumps([["--trace", "t.parquet"]]))
    monkeypatch.setattr("sim.base.home.find_spec", lambda module: module not in ("tensorflow", "mpi4py") or None)
    words = {"real.probe": ["-o", "p.json"], "real.campaign": ["cells.json"]}
    line = refused(here(module, *words.get(module, [])))
    assert re.match(rf"{module}: this needs (tensorflow|mpi4py): pip install ", line)


def test_a_cell_is_named_by_its_number(here, tmp_path):
    file = tmp_path / "cells.json"
    file.write_text(json.dumps([["--trace", "t.parquet"], ["--trace", "u.parquet", "--workers", "two"]]))
    assert refused(here("real.campaign", file)).startswith(f"real.campaign: {file}: cell 2: --workers: given 'two'")


def test_a_parser_reads_one_line_after_another():
    parser = import_module("experiments.run").parser()
    assert [parser.parse_args(["--out", out]).out for out in "ab"] == ["a", "b"]
