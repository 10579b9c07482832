"""`sim.run --what-if`: what a change is, and the difference that it makes on the same random numbers."""

import json
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from real import learn
from sim import options, protocols, run, stragglers
from sim.answers import paired, shares
from sim.answers.summary import digits, number
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.laws import LogNormal
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.platform import cluster
from sim.platform.cluster import Cluster, Host, Link
from sim.simulation import simulate
from sim.studies import asking, changes, what_if
from sim.studies.what_if import compare

TWO = Cluster(hosts=(Host(name="a", count=2), Host(name="b", count=3, speed=2.0)), network=Link(latency_s=1e-3))


def applied(text: str, *words: str, protocol: str = "fmb") -> Scenario:
    given = run.parser().parse_args(["--protocol", protocol, *words])
    return changes.applied(text, given, options.Readers())


def scenario(name: str = "fmb", **further) -> Scenario:
    law = stragglers.read("niagara*0.02")
    return Scenario(protocols.make(name), workload.read("toy_fc"), steps=20, stragglers=law, **further)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("workers=64", {"workers": "64"}),
        ("protocol=allreduce, algorithm=ring", {"protocol": "allreduce", "algorithm": "ring"}),
        ('network.bandwidth="25 Gbit/s",workers=2', {"network.bandwidth": "25 Gbit/s", "workers": "2"}),
        ("stragglers=law(a=1, b=[2, 3]),workers=2", {"stragglers": "law(a=1, b=[2, 3])", "workers": "2"}),
        ("stragglers='a,b.toml'", {"stragglers": "a,b.toml"}),
    ],
)
def test_a_change_is_cut_at_commas_but_not_inside_quotes_and_brackets(text, values):
    assert changes.parse(text) == values


@pytest.mark.parametrize("text", ["", "workers", "=3", "workers=", "workers=3,", "workers=3,workers=4"])
def test_a_change_without_a_name_or_a_value_is_refused(text):
    with pytest.raises(WrongSetting, match="--what-if"):
        changes.parse(text)


def test_options_and_settings_change_and_all_else_stays():
    changed = applied("protocol=amb, partitions=4, workers=5", "--seed", "3", "--batch", "32")
    assert changed.protocol == protocols.make("amb", ["partitions=4"])
    assert (changed.workers, changed.seed, changed.batch) == (5, 3, 32)


def test_another_protocol_keeps_the_settings_that_it_has():
    settings = "--set", "time_limit_s=0.2", "--set", "partitions=4"
    changed = applied("protocol=amb-dg", *settings, protocol="amb")
    assert changed.protocol == protocols.make("amb-dg", ["time_limit_s=0.2", "partitions=4"])
    assert applied("protocol=fmb", *settings, protocol="amb").protocol == protocols.make("fmb")


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("network.bandwidth", "25 Gbit/s", {"network": {"bandwidth_bytes_per_s": 3.125e9}}),
        ("network.latency_s", "0.5", {"network": {"latency_s": 0.5}}),
        ("hosts.1.count", "7", {"hosts": {1: {"count": 7}}}),
        ("local.latency", "1 ms", {"local": {"latency_s": 1e-3}}),
    ],
)
def test_a_path_changes_one_thing_in_the_cluster(path, text, expected):
    table = TWO.model_dump(mode="json")
    for name, inside in expected.items():
        for key, value in inside.items():
            if isinstance(value, dict):
                table[name][key] |= value
            else:
                table[name][key] = value
    assert changes.with_values(TWO, {path: text}).model_dump(mode="json") == table


def test_what_a_million_samples_cost_is_a_column_where_a_price_is_known():
    priced = Cluster(hosts=(Host(name="a", count=4, price_per_hour=1.5),))
    known = workload.read("toy_fc").model_copy(update={"costs": Costs(compute=Line(slope_s=1e-3))})
    job = replace(scenario(cluster=priced), workload=known)
    found = asking.what_if(job, "workers=2", "cluster=p3.2xlarge*4", replications=1)
    usd = [one.result.answer()["usd_per_million_samples"] for one in found]
    frame = found.to_frame()
    assert frame["usd_per_million_samples"].tolist() == pytest.approx(usd)
    assert usd[0] == pytest.approx(6.0 / 3600 / frame["samples_per_s"][0] * 1e6)
    headings, base, *rows = what_if.rows(found, found.base.answer())
    assert headings[-1] == "USD/M"
    told = [
        number(one[what_if.USD], digits(one)) for one in (found.base.answer(), *(one.result.answer() for one in found))
    ]
    assert [row[-1] for row in (base, *rows)] == told
    free = asking.what_if(scenario(), "workers=2", replications=1)
    assert next(what_if.rows(free, free.base.answer())) == [*what_if.HEADINGS]
    assert free.to_frame()["usd_per_million_samples"].isna().all()


def test_hosts_whose_count_is_0_are_gone():
    assert changes.with_values(TWO, {"hosts.0.count": "0"}).hosts == TWO.hosts[1:]
    with pytest.raises(WrongSetting, match=r"hosts\.0\.count: given 0"):
        changes.with_values(TWO, {"hosts.0.count": "0", "hosts.1.count": "0"})


def test_all_workers_are_those_of_the_hosts_that_are_left(tmp_path):
    path = tmp_path / "two.toml"
    path.write_text('schema = "cluster/1"\nhosts = [{ count = 4 }, { cores = 2 }]\n')
    words = "--cluster", str(path), "--workers", "all"
    for change, workers in (("hosts.1.count=0", 3), ("hosts.0.count=0, workers=all", 1)):
        assert applied(change, *words).workers == workers
    job = Scenario(protocols.make("fmb"), workload.read("mlp"), 5, cluster=cluster.read(str(path)))
    assert changes.of_job("hosts.1.count=0, workers=all", job).workers == 3


def test_more_workers_and_more_hosts_may_come_in_one_change(tmp_path):
    path = tmp_path / "two.toml"
    path.write_text('schema = "cluster/1"\nhosts = [{ name = "node", count = 4 }]\n')
    with pytest.raises(WrongSetting, match="at most 3 workers"):
        applied("workers=15", "--cluster", str(path))
    assert len(set(applied("workers=15, hosts.0.count=16", "--cluster", str(path)).hosts)) == 16


def test_other_hosts_and_another_network_are_changed_further(tmp_path):
    """Of --hosts and --network: what a change does not name is as in the job that it is compared with."""
    path = tmp_path / "four.toml"
    path.write_text('schema = "cluster/1"\nhosts = [{ name = "node", count = 4 }]\n')
    words = "--cluster", str(path), "--hosts", "9", "--network", "100 Mbit/s, 1 ms", "--workers", "6"
    network = applied("network.latency=2 ms", *words).cluster.network
    assert (network.latency_s, network.bandwidth_bytes_per_s) == (2e-3, 12.5e6)
    more = applied("workers=11, hosts.0.count=12", *words).cluster
    assert (more.hosts[0].count, more.network.bandwidth_bytes_per_s) == (12, 12.5e6)


@pytest.mark.parametrize("name", ["hosts", "network"])
def test_a_change_of_no_cluster_s_hosts_is_refused(name):
    with pytest.raises(WrongSetting, match="nothing without --cluster"):
        applied("network.latency=2 ms", f"--{name}", "5")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("worker=3", "did you mean workers"),
        ("workers=x", "an integer"),
        ("network.bandwith=3", "did you mean bandwidth?"),
        ("hosts.3.count=2", "of hosts: 0"),
        ("hosts.0.count=0", "greater than or equal to 1"),
        ("protocol=ps-async, servers=3, hosts.0.count=2", "a cluster with more slots: .* has 2 slots, 3 for servers"),
        ("hosts.0.count.x=1", "nothing below it"),
        ("hosts=3", "nothing without --cluster, whose hosts it changes$"),
        ("network=3", "a part of network: network.latency_s, "),
        ("network.bandwidth=fast", "a quantity such as"),
        ("protocol=amb, window_s=3", "time_limit_s"),
        ("world=event", "protocol, workers"),
    ],
)
def test_what_cannot_be_changed_is_said_in_a_line(text, said):
    with pytest.raises(WrongSetting, match=said):
        applied(text)


def test_a_difference_on_the_same_random_numbers_is_known_better_than_by_itself():
    base, changed = simulate(scenario(), replications=10), simulate(scenario("allreduce"), replications=10)
    found = compare("protocol=allreduce", base, changed)
    apart = np.subtract.outer(*(np.log(one.outcome.throughput()) for one in (changed, base)))
    assert found.ratio == pytest.approx(np.exp(apart.mean()))
    assert np.diag(apart).std() < apart.std() / 2
    assert found.interval[0] < found.ratio < found.interval[1]


def test_runs_that_the_changed_job_had_no_time_for_are_left_out():
    base, changed = simulate(scenario(), replications=5), simulate(scenario("allreduce"), replications=2)
    expected = changed.outcome.throughput() / base.outcome.throughput()[:2]
    assert compare("", base, changed).ratio == pytest.approx(np.exp(np.log(expected).mean()))


def test_the_answer_of_a_change_is_that_of_the_changed_job(capsys):
    words = ["--protocol", "fmb", "--steps", "10", "--replications", "3", "--json"]
    run.main([*words, "--what-if", "workers=6, network.bandwidth=1 Gbit/s"])
    answer = json.loads(capsys.readouterr().out)
    change = answer["what_if"][0]
    slow = changes.with_values(cluster.one_rank_a_host(7), {"network.bandwidth": "1 Gbit/s"})
    law = stragglers.read("niagara*0.01")
    by_hand = Scenario(protocols.make("fmb"), workload.read("toy_fc"), 6, 10, cluster=slow, stragglers=law)
    assert change["answer"]["samples_per_s"] == simulate(by_hand, replications=3).samples_per_s
    assert change["throughput_ratio"] == pytest.approx(change["answer"]["samples_per_s"] / answer["samples_per_s"])


def test_a_page_shows_the_job_as_it_is_and_each_change(capsys):
    run.main(
        ["--protocol", "fmb", "--steps", "10", "--replications", "3", "--what-if", "workers=6", "--what-if", "batch=8"]
    )
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[-3:]] == ["as", "workers=6", "batch=8"]


def test_a_long_change_is_printed_whole(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    change = "stragglers=lognormal(mean=50.000000ms,cv=1.500000)"
    words = ["--protocol", "fmb", "--workers", "2", "--steps", "5", "--replications", "2", "--what-if", change]
    assert run.main(words) == 0
    page = capsys.readouterr().out.partition("what if ")[2]
    assert "…" not in page
    assert "".join(line.split("  ")[0].strip() for line in page.splitlines()[2:]) == change


def test_what_two_jobs_do_not_share_is_in_the_interval():
    """Fewer workers share the messages' unknowns, another protocol does not; the same job is no different."""
    base = simulate(scenario(), replications=3)
    for other in (scenario(workers=2), scenario("allreduce")):
        changed = simulate(other, replications=3)
        alone, real = compare("", base, changed), compare("", base, changed, real=True)
        assert real.interval[0] < alone.interval[0] < alone.interval[1] < real.interval[1]
    assert compare("", base, simulate(scenario(), replications=3), real=True).interval is None


FASTER = {
    "more bandwidth": {"network.bandwidth": "100 Gbit/s"},
    "less latency": {"network.latency": "1 us"},
    "faster hosts": {"hosts.0.speed": "3"},
    "both": {"network.bandwidth": "100 Gbit/s", "hosts.1.speed": "3"},
}


@pytest.mark.parametrize("change", FASTER)
def test_what_is_nowhere_slower_never_costs_throughput(change):
    """Nor is what is nowhere faster ever faster, nor sleeps; runs that happen to differ say nothing else."""
    base = scenario(cluster=TWO)
    faster = scenario(cluster=changes.with_values(TWO, FASTER[change]))
    assert paired.possible(base, faster) == (1.0, inf)
    assert paired.possible(faster, base) == (0.0, 1.0)
    free = faster.without_stragglers()
    assert paired.possible(base, free) == (1.0, inf)
    assert paired.possible(free, base) == (0.0, 1.0)
    one, other = (simulate(job, replications=2) for job in (base, faster))
    times = np.array([[0.7], [1.6]]) ** 0.5  # two pairs of runs, of which one is slower and one is faster
    apart = replace(other, outcome=replace(one.outcome, step_s=one.step_s * times))
    assert compare("", one, apart, real=True).interval[0] == pytest.approx(apart.samples_per_s / one.samples_per_s)
    assert compare("", apart, one, real=True).interval[1] == pytest.approx(one.samples_per_s / apart.samples_per_s)


@pytest.mark.parametrize(
    "change",
    [{"workers": 2}, {"batch": 7}, {"protocol": protocols.make("allreduce")}, {"stragglers": stragglers.read("cedar")}],
)
def test_any_other_change_may_have_any_ratio(change):
    base = scenario(cluster=TWO)
    assert paired.possible(base, replace(base, **change)) == (0.0, inf)
    mixed = changes.with_values(TWO, {"network.bandwidth": "100 Gbit/s", "network.latency": "1 s"})
    assert paired.possible(base, scenario(cluster=mixed)) == (0.0, inf)
    assert paired.possible(base, scenario(cluster=changes.with_values(TWO, {"hosts.0.cores": "3"}))) == (0.0, inf)


def test_the_error_of_a_profile_cancels_within_a_kind_of_job_alone():
    costs = workload.read("toy_fc").costs.model_copy(update={"error": 0.2})
    mine = TWO.model_copy(update={"costs": {"toy_fc": costs}})
    base, same, other = (
        paired.of(job, simulate(job, replications=2).outcome)
        for job in (scenario(cluster=mine), scenario(cluster=mine, seed=3), scenario(cluster=mine, workers=2))
    )
    assert paired.difference(base, same)[0] < 0.05
    assert paired.difference(base, other)[0] > 0.1


@pytest.mark.parametrize("workers", [2, 6])
def test_an_error_on_work_counts_as_much_as_a_step_shows(workers):
    """Six workers on two cores wait for one another: a third of a step is a worker's own computing, and all of it grows with the error."""
    costs = Costs(compute=Line(base_s=0.1), noise=LogNormal(cv=0.02), error=0.2)
    host = Host(count=1, cores=2, slots=workers + 1)
    mine = Cluster(hosts=(host,), local=Link(latency_s=1e-6), costs={"toy_fc": costs})
    job = Scenario(protocols.make("fmb"), workload.read("toy_fc"), workers, steps=10, cluster=mine)
    outcome = simulate(job, replications=2).outcome
    assert 0.75 * 1.645 * 0.2 < outcome.ends["all work"][0] <= 1.65 * 0.2
    assert (shares.of_computing(job, shares.mean_step_s(outcome)) < 0.5) == (workers > 2)


def test_the_change_that_shifted_a_rank_is_named(capsys):
    """Ranks are numbered as in traces: another protocol's master or servers come first."""
    line = ["--protocol", "allreduce", "--workers", "4", "--steps", "3"]
    line += ["--stragglers", "slow-ranks(rank=0, factor=1.3)"]
    line += ["--what-if", "batch=8", "--what-if", "protocol=fmb", "--what-if", "protocol=ps-sync, servers=2"]
    with pytest.raises(WrongSetting) as caught:
        run.main(line)
    said = "--what-if protocol=fmb: --stragglers: slow-ranks: rank: given 0; allowed: 1 to 4, the ranks of the workers: 0 is the master"
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("protocol", "servers", "allowed"),
    [
        ("allreduce", 1, "0 to 3, the ranks of the workers$"),
        ("ps-async", 1, "1 to 4, the ranks of the workers: 0 is the server$"),
        ("ps-async", 4, "4 to 7, the ranks of the workers: 0 to 3 are servers$"),
    ],
)
def test_who_has_which_rank_is_said(protocol, servers, allowed):
    line = ["--protocol", protocol, "--workers", "4", "--stragglers", "slow-ranks(rank=99, factor=1.3)"]
    with pytest.raises(WrongSetting, match=f"rank: given 99; allowed: {allowed}"):
        run.main([*line, *(["--servers", str(servers)] if servers > 1 else [])])


PRICED = Cluster(hosts=(Host(name="a", count=3, price_per_hour=4.0),), network=Link(latency_s=1e-3))


def test_a_change_with_a_price_pays_back(capsys):
    """Half the hosts' price of the same work is saved where twice as much is done in an hour."""
    base = simulate(scenario(cluster=PRICED, workers=2), replications=3)
    free = "network.latency=0 s"
    plain, priced = asking.what_if(base, free, f"{free}, price=1200")
    assert plain.payback is None
    assert "payback" not in plain.as_json()
    assert priced.ratio == plain.ratio
    found = priced.as_json()["payback"]
    assert found["hours"] == pytest.approx(1200 / (12 - 12 / priced.ratio))
    low, high = found["interval"]["hours"]
    assert low <= found["hours"]
    assert high is None or high >= found["hours"]
    what_if.show([plain, priced], base.answer())
    assert " ".join(capsys.readouterr().out.split()).count("saves its price") == 1
    (slower,) = asking.what_if(base, "network.latency=50 ms, price=3")
    assert slower.payback["hours"] is None
    assert what_if.payback_said("slower", slower.payback) == "slower: saves its price never"


@pytest.mark.parametrize("given", ["0", "-3", "much", "3 EUR", "nan"])
def test_a_price_is_a_number_of_dollars(given):
    with pytest.raises(WrongSetting, match=r"--what-if price: given .*; allowed: USD that the change costs once"):
        changes.price(f"workers=2, price={given}")


def test_a_price_needs_those_of_hosts():
    assert changes.price("workers=2, price=20000 USD") == 20_000
    with pytest.raises(WrongSetting, match=r"price: given .*; allowed: with hosts whose prices are known"):
        applied("workers=2, price=3")
    with pytest.raises(WrongSetting, match="--what-if price: given 'batch=2, price=3'"):
        learn.main(["--workload", "toy_fc", "--protocol", "fmb", "--what-if", "batch=2, price=3", "--workers", "2"])


def test_a_change_of_the_number_of_workers_says_which_ranks_stay_slow():
    """The last rank goes, and the slow one stays, which is not what dropping it would do."""
    slow = stragglers.read("slow-ranks(rank=1, factor=1.25)")
    base = simulate(
        Scenario(protocols.make("allreduce"), workload.read("toy_fc"), 3, stragglers=slow, steps=3), replications=1
    )
    fewer, without = asking.what_if(base, "workers=2", "workers=2, stragglers=none")
    (line,) = what_if.still_slow([fewer, without])
    assert line.startswith("workers=2: rank 1 is slow here too")
    assert without.ratio > fewer.ratio


@pytest.mark.parametrize(("workers", "there"), [(8, 16), (6, 6)])
def test_a_job_with_a_worker_in_every_slot_grows_with_its_hosts(workers, there):
    """As by the command line, where nobody says how many."""
    job = Scenario(
        protocols.make("allreduce"), workload.read("resnet50"), workers, cluster=cluster.read("p3.8xlarge*2")
    )
    assert changes.of_job("hosts=4", job).workers == there
    assert changes.of_job("hosts.0.count=4", job).workers == there
    assert changes.of_job("hosts=4, workers=5", job).workers == 5
