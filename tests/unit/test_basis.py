"""The numbers that an answer rests on (sim.answers.basis)."""

import json
import re
import shlex
from dataclasses import replace
from math import exp, hypot, log

import pytest

from calibration import fit
from real import calibrate
from sim import options, run, simulated_options
from sim.answers import basis, summary
from sim.answers.basis import RUNS, Number
from sim.answers.sources import COMPUTING, INNER_LINKS, LINKS
from sim.job.scenario import Scenario
from sim.model.costs import Costs, Line
from sim.model.workload import read
from sim.platform.cluster import Cluster, Growth, Link, Provenance
from sim.protocols import make
from sim.simulation import simulate

GROWN = Growth(per_doubling=0.2, simulated=0.2, unchanged=0.3, simulated_weight=0.5)
GPUS = "--workload resnet50 --batch 32 --stragglers none --cluster"
JOBS = [
    "--protocol amb",
    "--protocol fmb --workers 0 --stragglers none",
    "--protocol ps-async --workload mnist --workers 4 --servers 2",
    f"--protocol allreduce {GPUS} p4d.24xlarge*2 --workers 16",
    f"--protocol allreduce {GPUS} p4d.24xlarge*1 --workers 8",
]


def scenario(asked: str):
    return simulated_options.scenario(run.parser().parse_args([*asked.split(), "--steps", "20"]), options.Readers())


@pytest.fixture(scope="module", params=JOBS)
def result(request):
    return simulate(scenario(request.param), replications=4)


def test_the_numbers_make_up_the_interval(result):
    low, high = result.interval
    found, mid = result.basis, result.samples_per_s
    assert hypot(*(one.slower for one in found)) == pytest.approx(log(mid / low))
    assert hypot(*(one.faster for one in found)) == pytest.approx(log(high / mid))


def test_shares_are_of_the_whole_and_the_largest_is_first(result):
    shares = [one.share for one in result.basis]
    assert sum(shares) == pytest.approx(1)
    assert shares == sorted(shares, reverse=True)


def test_every_number_has_a_source_and_is_named_once(result):
    names = [one.name for one in result.basis]
    assert all(one.source for one in result.basis)
    assert len(set(names)) == len(names)
    hosts = set(result.scenario.hosts)
    assert COMPUTING in names
    assert (LINKS in names) == (len(hosts) > 1)
    assert (INNER_LINKS in names) == (len(hosts) < result.scenario.ranks)


def test_what_is_measured_first_makes_most_of_what_can_be_measured(result):
    numbers = [Number("a", "", "s", share=0.6), Number("b", "", "s", share=0.3, measured_by="run it")]
    for others, said in ((numbers, ["run it"]), ([numbers[0], numbers[1]._replace(share=0.001)], [])):
        answer = result.answer() | {"basis": [one.as_json() for one in others]}
        assert [text for label, text in summary.lines_of_speed(answer) if label == summary.MEASURE] == said


@pytest.mark.parametrize("runs", [1, 3])
def test_runs_that_do_not_differ_are_not_taken_as_exact(runs):
    job = scenario(f"--protocol allreduce {GPUS} p3.2xlarge*2")
    (found,) = (one for one in simulate(job, replications=runs).basis if one.name == RUNS)
    assert found.limits == "not seen"


@pytest.mark.parametrize("named", [True, False])
def test_costs_of_a_model_s_file_are_no_nominal_ones(named):
    """They are the user's own, and so are links that the user gives; links by name are known no better than elsewhere."""
    model = read("mlp").model_copy(update={"costs": Costs(compute=Line(base_s=1e-3))})
    cluster = Cluster(hosts=[{"count": 3}], network=Link(bandwidth_bytes_per_s=1e9, named=named))
    found = simulate(Scenario(make("ps-sync"), model, 2, 5, 2, cluster=cluster), replications=3)
    assert any("the costs that mlp gives are taken as exact" in one for one in found.notes)
    assert not any("nominal" in one for one in found.notes)
    low, high = found.interval
    assert (high > 1.2 * low) == named


def test_a_cost_that_is_given_is_taken_as_exact():
    job = scenario(f"--protocol allreduce {GPUS} p4d.24xlarge*1 --workers 1")
    (by_name,) = (one for one in simulate(job, replications=2).basis if one.name == COMPUTING)
    assert by_name.slower > log(1.5)
    costs = job.costs.model_copy(update={"error": 0.0})
    given = replace(job, workload=job.workload.model_copy(update={"costs": costs}))
    (exact,) = (one for one in simulate(given, replications=2).basis if one.name == COMPUTING)
    assert (exact.slower, exact.faster, exact.source) == (0, 0, "given")


def test_what_measures_a_fit_is_a_command_that_the_fit_takes(result):
    """A model of a file of one's own is not called by the name in it, which no command knows."""
    own = replace(result.scenario, workload=result.scenario.workload.model_copy(update={"name": "mine"}))
    for job in (result.scenario, own):
        lines = [one.measured_by for one in basis.of(job, result.outcome)]
        asked = re.findall(r"python -m (calibration\.fit|real\.calibrate) ([^;(]+)", " ; ".join(lines))
        assert asked
        parsers = {"calibration.fit": fit.parser(), "real.calibrate": calibrate.parser()}
        read = [parsers[command].parse_args(shlex.split(line)) for command, line in asked]
        assert {one.workload for one in read} <= {None, job.workload.name if job is not own else "FILE"}


@pytest.mark.parametrize(("grown", "said"), [(None, "two sizes of the cluster or more"), (GROWN, "more sizes")])
def test_sizes_that_were_fitted_are_not_asked_for_again(grown, said):
    job = scenario(JOBS[3])
    of_rows = Provenance(traces=("rows.csv",), workers=16, hosts=2, growth=grown)
    job = replace(job, cluster=job.cluster.model_copy(update={"provenance": of_rows}))
    found = " ".join(one.measured_by for one in simulate(job, replications=2).basis)
    assert f"steps of this job on {said}" in found


def test_the_command_prints_them_and_json_has_them(capsys):
    asked = ["--protocol", "amb", "--steps", "20", "--replications", "2"]
    assert run.main([*asked, "--explain"]) == 0
    said = capsys.readouterr().out
    assert said.index("measure first  ") < said.index("rests on") < said.index("assumed: a nominal core")
    assert run.main([*asked, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    low, high = answer["interval"]["samples_per_s"]
    limits = [one["throughput_ratio"] for one in answer["basis"]]
    assert exp(hypot(*(log(one["high"]) for one in limits))) == pytest.approx(high / answer["samples_per_s"])
    assert exp(-hypot(*(log(one["low"]) for one in limits))) == pytest.approx(low / answer["samples_per_s"])


def test_a_link_is_said_in_bytes_that_travel():
    """Gradients of 16 bits pass a link twice as fast, a number each; the link is as it is."""
    job = scenario(JOBS[3])
    halved = replace(job, workload=job.workload.model_copy(update={"gradients": "bf16"}))
    of_both = [{one.name: one.value for one in simulate(one, replications=2).basis} for one in (job, halved)]
    assert of_both[0][LINKS] == of_both[1][LINKS]
    assert of_both[0][INNER_LINKS] == of_both[1][INNER_LINKS]
