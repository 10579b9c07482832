"""What a result says to a program."""

import inspect
import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from processes import ROOT

from sim import protocols
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.language.engine import job as engine
from sim.laws import LogNormal
from sim.model.costs import Line
from sim.model.workload import Variable, Workload
from sim.model.workload import read as read_workload
from sim.platform.cluster import Cluster, Host, Link
from sim.platform.cluster import read as read_cluster
from sim.recording.traces import read as read_trace
from sim.run import main
from sim.simulation import simulate
from sim.stragglers import read as read_stragglers
from sim.sweep import sweep


def job(protocol="amb", **settings):
    law = "niagara*0.01"
    about = {"workers": 2, "steps": 8, "stragglers": read_stragglers(law), "stragglers_name": law} | settings
    return Scenario(protocols.make(protocol), read_workload("mlp"), **about)


def test_the_lines_of_the_reference_run(capsys):
    lines = (ROOT / "docs" / "reference" / "python.md").read_text().split("```python\n")[1].split("```")[0]
    exec(inspect.cleandoc(lines), {})
    assert "step" in capsys.readouterr().out


@pytest.mark.parametrize("protocol", ["amb", "ps-async"])
def test_a_result_is_the_answer_of_the_command(protocol, capsys):
    """All but the seconds that it took."""
    words = ["--protocol", protocol, "--workload", "mlp", "--workers", "2", "--steps", "8", "--replications", "3"]
    words += ["--stragglers", "niagara*0.01"]
    assert main([*words, "--json"]) == 0
    printed, found = json.loads(capsys.readouterr().out), simulate(job(protocol), replications=3)
    made = json.loads(found.to_json())
    assert made.pop("wall_s") > 0
    del printed["wall_s"]
    assert made == printed
    assert found.answer() | {"wall_s": 0.0} == json.loads(json.dumps(found.answer())) | {"wall_s": 0.0}


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("world", ["event", "engine"])
def test_arrays_have_the_shapes_that_they_say(world):
    found = simulate(job(), world, 3)
    assert found.world == world
    assert found.step_s.shape == found.samples.shape == (3, 8)
    assert found.idle_fraction.shape == (3, 3)
    assert found.asked == found.done == (3, 8, 10)
    each = found.samples.sum(axis=1) / found.step_s.sum(axis=1)
    assert found.samples_per_s == pytest.approx(math.exp(np.log(each).mean()))
    assert found.why_no_interval is None
    assert found.interval[0] < found.samples_per_s / 3 < found.samples_per_s * 1.5 < found.interval[1]
    assert found.trace is None
    assert simulate(job(), "event", 3, want_trace=True).trace is not None


def test_the_arrays_of_a_result_cannot_be_written_into():
    """Its other figures would follow."""
    found = simulate(job("allreduce"), replications=2)
    before = found.samples_per_s
    for array in (found.step_s, found.samples, found.idle_fraction):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 7
    assert found.samples_per_s == before


def test_a_result_is_one_line():
    said = repr(simulate(job(), replications=3))
    assert said.startswith("<Result: amb (time_limit_s=0.06, partitions=16), mlp, 2 workers, batch 100: ")
    assert "from run to run" in said
    assert "mean step" in said
    assert said.endswith(f"; {'engine' if engine._kernel else 'event'}, 3 runs of 8 steps>")
    assert "\n" not in said


WRONG = {  # of a scenario
    "protocol": "amb",
    "workload": "mnist",
    "cluster": "p3.8xlarge*4",
    "stragglers": "none",
    "workers": "4",
    "steps": 4.0,
    "batch": True,
    "seed": 0.5,
    "servers": -1,
    "placement": "nonsense",
}


@pytest.mark.parametrize("name", WRONG)
def test_an_object_or_a_number_of_another_kind_is_refused(name):
    given = {"protocol": protocols.make("amb"), "workload": read_workload("mlp")} | {name: WRONG[name]}
    with pytest.raises(WrongSetting, match=re.escape(f"--{name}: given {WRONG[name]!r}; allowed: ")):
        Scenario(**given)


@pytest.mark.parametrize(
    ("named", "name"),
    [
        ({"world": "mars"}, "--world"),
        ({"replications": 0}, "--replications"),
        ({"replications": 2.5}, "--replications"),
        ({"first": -1}, "first"),
        ({"within_s": -1.0}, "--within"),
        ({"within_s": math.nan}, "--within"),
        ({"done": 3}, "done"),
    ],
)
def test_arguments_of_simulate_are_checked(named, name):
    with pytest.raises(WrongSetting, match=f"^{name}: given "):
        simulate(job(), **named)


@pytest.mark.parametrize(("named", "name"), [({"world": "moon"}, "--world"), ({"processes": 0}, "--workers-processes")])
def test_arguments_of_sweep_are_checked(named, name, tmp_path):
    """They are those of every scenario: a row each would say the same."""
    with pytest.raises(WrongSetting, match=f"^{name}: given "):
        sweep([job()], str(tmp_path / "x.parquet"), **{"processes": 1} | named)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Host(cores=0), "Host: cores: given 0; allowed: "),
        (lambda: Host(gpus_=2), "Host: gpus_: given 2; allowed: the keys name, count, "),
        (lambda: Link(latency_s=-1), "Link: latency_s: given -1; allowed: "),
        (lambda: Cluster(hosts=[], name="x"), "Cluster: hosts: given []; allowed: "),
        (lambda: Cluster(hosts=[Host()], network={"latency_s": math.nan}), "Cluster: network.latency_s: given nan"),
        (lambda: Line(slope_s="x"), "Line: slope_s: given 'x'; allowed: "),
        (lambda: Variable(name="v", shape=()), "Variable: shape: given (); allowed: "),
        (lambda: Workload(name="w"), "Workload: variables: missing; needed: "),
        (lambda: LogNormal(cv=-1), "LogNormal: cv: given -1; allowed: "),
        (lambda: Host(name="a\nb"), "Host: name: given 'a\\nb'; allowed: a name without control characters"),
        (
            lambda: Workload(name="w", variables=[{"name": name, "shape": [1]} for name in "abcb"]),
            "Workload: variables: given 'b'; allowed: each name once",
        ),
    ],
)
def test_an_object_that_cannot_be_is_a_wrong_setting(make, said):
    with pytest.raises(WrongSetting, match=re.escape(said)):
        make()


@pytest.mark.parametrize("servers", [-1, 0])
@pytest.mark.parametrize("protocol", ["fmb", "ps-async"])
def test_a_job_has_servers_or_not(protocol, servers):
    with pytest.raises(WrongSetting, match=f"--servers: given {servers}"):
        Scenario(protocols.make(protocol), read_workload("mlp"), servers=servers)
    alone = Scenario(protocols.make("allreduce"), read_workload("mlp"))
    assert replace(alone, steps=5).servers == 0  # which it has once it is made


GIVEN = {  # what a program may give by mistake, and the setting that is then named
    "simulate": (simulate, "scenario"),
    "make": (protocols.make, "--protocol"),
    "settings": (lambda given: protocols.make("amb", given), "--set"),
    "read_workload": (read_workload, "--workload"),
    "read_cluster": (read_cluster, "--cluster"),
    "read_trace": (read_trace, "trace file"),
    "read_stragglers": (read_stragglers, "--stragglers"),
    "sweep": (lambda given: sweep(given, "x.parquet"), "scenarios"),
    "sweep of one": (lambda given: sweep([given], "x.parquet"), "scenarios"),
    "sweep into": (lambda given: sweep([job()], given), "out"),
    "sweep by": (lambda given: sweep([job()], "x.parquet", given or 1), "executor"),
}


@pytest.mark.parametrize("given", [None, 3, True, math.nan, object(), b"x"], ids=lambda given: type(given).__name__)
@pytest.mark.parametrize("name", GIVEN)
def test_what_is_no_scenario_and_no_text_is_refused(name, given):
    """An integer would be an open file, which is read and then closed."""
    call, setting = GIVEN[name]
    with pytest.raises(WrongSetting, match=re.escape(setting)):
        call(given)


def test_a_frame_has_a_row_for_each_step():
    found = simulate(job(), replications=3, first=4)
    frame = found.to_frame()
    assert frame["replication"].unique().tolist() == [4, 5, 6]
    assert (frame.groupby("replication")["step"].apply(list).map(lambda steps: steps == list(range(8)))).all()
    picked = frame[(frame["replication"] == 5) & (frame["step"] == 7)]
    assert picked["step_s"].item() == found.step_s[1, 7]
    assert picked["samples"].item() == found.samples[1, 7]


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("world", ["event", "engine"])
def test_replications_are_the_same_whichever_is_the_first(world):
    np.testing.assert_array_equal(simulate(job(), world, 3).step_s[1:], simulate(job(), world, 2, first=1).step_s)


def test_the_first_trace_is_of_the_first_replication():
    assert simulate(job(), replications=1, first=3, want_trace=True).trace.header.replication == 3
    assert simulate(job(), "event", 1, first=3, want_trace=True).trace.header.replication == 3


def test_a_job_that_only_sends_says_so():
    """Commands refuse it; a program may time messages alone."""
    vector = Workload(name="vector", variables=[Variable(name="v", shape=(1000,))])
    found = simulate(Scenario(protocols.make("allreduce", ["algorithm=ring"]), vector, steps=3), replications=1)
    assert "computing takes no time" in found.notes[0]
    assert not any("computing takes no time" in note for note in simulate(job(), replications=1).notes)


def test_a_scenario_travels_without_what_was_worked_out():
    import pickle

    whole = job("ps-sync", servers=2)
    _ = whole.traffic.placed, whole.costs
    there = pickle.loads(pickle.dumps(whole))
    assert there == whole
    assert "traffic" in vars(whole)
    assert "traffic" not in vars(there)
    np.testing.assert_array_equal(simulate(there, replications=1).step_s, simulate(whole, replications=1).step_s)
