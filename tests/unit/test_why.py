"""`sim.run --why`: the cause that was planted is found, and what is advised helps."""

import json

import pytest
from scenarios import ANYWHERE

from sim import options, protocols, run
from sim.job.scenario import Scenario
from sim.laws import Constant
from sim.model.workload import Workload
from sim.platform.cluster import Link, one_rank_a_host
from sim.simulation import simulate
from sim.studies import changes
from sim.studies.why import candidates, why, without_causes

SLOW, FAST = Link(latency_s=0.0, bandwidth_bytes_per_s=1e5), Link(latency_s=1e-6, bandwidth_bytes_per_s=1e12)
LITTLE = {"slope_s": 1e-6}
SETTINGS = {"amb": ["time_limit_s=0"], "amb-dg": ["time_limit_s=0"]}


def job(
    name: str = "fmb", *, link: Link = FAST, sleep_s: float = 0.0, servers: int = 1, shapes=((64, 64),), **costs
) -> Scenario:
    variables = [{"name": f"v{index}", "shape": shape} for index, shape in enumerate(shapes)]
    workload = Workload(name="planted", variables=variables, batch=32, costs={"compute": LITTLE} | costs)
    ranks = 4 + servers
    place = one_rank_a_host(ranks, cores=2).model_copy(update={"network": link})
    protocol = protocols.make(name, SETTINGS.get(name, []))
    law = Constant(value=sleep_s)
    return Scenario(protocol, workload, 4, 5, 2, cluster=place, stragglers=law, servers=servers)


def found(scenario: Scenario, changed=lambda text: None):
    def again(other: Scenario, runs: int | None = None):
        return simulate(other, replications=1)

    return why(again(scenario), again, lambda text: changed(text) or scenario)


@pytest.mark.parametrize(
    ("planted", "critical"),
    [
        ({"link": SLOW}, "without messages"),
        ({"sleep_s": 1.0}, "without induced stragglers"),
        ({"update": {"base_s": 1.0}}, "without sums and updates"),
        ({"compute": {"base_s": 1.0}}, "computing twice as fast"),
    ],
)
@pytest.mark.parametrize("name", ["fmb", "ps-async", "allreduce"])
def test_the_planted_cause_is_the_critical_one(name, planted, critical):
    assert found(job(name, **planted)).critical == critical


def test_what_is_no_faster_in_one_run_is_not_simulated_again():
    """And what helps is the same as where all are simulated whole."""
    planted, ran, few = job("allreduce", link=SLOW), [], 1

    def again(other: Scenario, runs: int | None = None):
        ran.append((repr(other), runs))
        return simulate(other, replications=few if runs is None else runs)

    def told():
        answer = why(again(planted), again, lambda text: changes.of_job(text, planted))
        return [one.change for one in (*answer.causes, *answer.advice)]

    expected = told()
    ran.clear()
    few = 3
    assert told() == expected
    whole = [one for one, runs in ran if runs is None]
    screened = [one for one, runs in ran if runs == 1]
    # The job itself, twice the workers, and what may have helped.
    assert len(whole) == len({*whole}) <= len(expected) + 3
    assert len(screened) > len(whole)


@pytest.mark.parametrize("name", ANYWHERE)
def test_no_cause_of_any_protocol_makes_it_faster_by_being_there(name):
    scenario = job(name, link=SLOW, sleep_s=0.1, compute={"base_s": 0.1}, update={"base_s": 0.05})
    base = simulate(scenario, replications=1).samples_per_s
    for cause, without in without_causes(scenario):
        assert simulate(without, replications=1).samples_per_s >= base * (1 - 1e-9), cause


def test_a_job_on_too_few_cores_shares_them():
    scenario = job("ps-async", compute={"base_s": 1.0})
    crowded = scenario.cluster.model_copy(update={"shared_cores": 2})
    names = [
        name for name, _ in without_causes(Scenario(scenario.protocol, scenario.workload, 4, 5, 2, cluster=crowded))
    ]
    assert "without sharing cores" in names


@pytest.mark.slow
def test_a_better_placement_is_advised_where_one_server_holds_nearly_all(capsys, tmp_path):
    shapes = "\n".join(f'{{ name = "v{n}", shape = [{size}] }},' for n, size in enumerate((900_000, 10, 900_000, 10)))
    path = tmp_path / "uneven.toml"
    path.write_text(
        f'schema = "workload/1"\nname = "uneven"\nbatch = 8\nflops_per_sample = 1e6\nvariables = [{shapes}]\n'
    )
    words = ["--protocol", "ps-async", "--servers", "2", "--workers", "4", "--workload", str(path), "--steps", "4"]
    run.main([*words, "--stragglers", "none", "--warmup", "2", "--replications", "2", "--json", "--why"])
    answer = json.loads(capsys.readouterr().out)["why"]
    gains = {one["change"]: one["throughput_ratio"] for one in answer["advice"]}
    assert gains["placement=greedy"] > 1.2
    assert 0.9 < answer["twice_the_workers"]["throughput_ratio"] < 1.6


def test_candidates_are_changes_that_a_user_can_type():
    for name in ANYWHERE:
        given = run.parser().parse_args(["--protocol", name, "--servers", "2"])
        scenario = options.scenario(given)
        tried = list(candidates(scenario))
        assert tried
        for text in tried:
            changes.applied(text, given, options.Readers())


def test_a_page_says_why(capsys):
    run.main(["--protocol", "fmb", "--steps", "5", "--replications", "2", "--why"])
    lines = capsys.readouterr().out.splitlines()
    heading = next(index for index, line in enumerate(lines) if line.startswith("why "))
    assert any(line.startswith("twice the workers") for line in lines[heading:])
