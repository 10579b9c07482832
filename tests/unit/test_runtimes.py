"""Who runs a protocol for real, what is refused, and what of other people's runtimes can be told without them."""

import pytest
from scenarios import ANYWHERE

from calibration.servers import is_of_servers
from real.libraries.horovod_allreduce import Slot, environment, slots, tuned
from real.libraries.summed import waits_apart
from real.options import scenario
from real.run import parse
from real.runtimes import RUNTIMES, WORLDS, runtime_of
from sim import protocols
from sim.base.errors import WrongSetting
from sim.job.header import checked
from sim.job.scenario import Scenario
from sim.model import workload
from sim.recording.traces import Activity, Header, Trace


@pytest.fixture
def with_horovod(monkeypatch):
    monkeypatch.setattr("real.libraries.entries.find_spec", lambda module: True)


@pytest.mark.usefixtures("with_horovod")
@pytest.mark.parametrize(
    ("options", "name"),
    [
        ("allreduce", "mpi"),
        ("allreduce --runtime tensorflow", "tensorflow collectives"),
        ("allreduce --runtime horovod --set algorithm=ring", "horovod"),
        ("horovod", "horovod"),
        ("ps-sync", "tensorflow servers"),
        ("ps-sync --runtime mpi", "mpi"),
        ("ps-sync --set barrier=True", "mpi"),
        ("ps-sync --set barrier=True --runtime tensorflow", "tensorflow servers"),
        ("ps-async --servers 2 --test-size 5", "tensorflow servers"),
        ("fmb", "mpi"),
    ],
)
def test_who_runs_it(options, name):
    assert runtime_of(parse(["--protocol", *options.split()])) is RUNTIMES[name]


def scenario_of(name: str) -> Scenario:
    """A small job by a protocol's own settings."""
    return Scenario(protocols.make(name), workload.read("mlp"), workers=2, servers=1)


@pytest.fixture(params=RUNTIMES)
def runtime(request):
    return RUNTIMES[request.param]


def has(runtime) -> list[str]:
    """The protocols that a runtime has."""
    return [name for name in ANYWHERE if runtime.has(protocols.make(name))]


@pytest.mark.usefixtures("with_horovod")
def test_a_runtime_runs_what_it_has_when_it_is_asked_for(runtime):
    for name in has(runtime):
        assert runtime_of(parse(["--protocol", name, "--runtime", runtime.world])) is runtime


@pytest.mark.usefixtures("with_horovod")
@pytest.mark.parametrize("world", WORLDS)
def test_a_runtime_refuses_what_it_has_not(world):
    of_world = [name for runtime in RUNTIMES.values() if runtime.world == world for name in has(runtime)]
    for name in set(ANYWHERE) - set(of_world):
        with pytest.raises(WrongSetting) as refused:
            runtime_of(parse(["--protocol", name, "--runtime", world]))
        assert (refused.value.setting, refused.value.given) == ("--runtime", world)


def test_a_protocol_comes_from_one_runtime_at_most():
    for name in protocols.PROTOCOLS:
        homes = [one for one in RUNTIMES.values() if one.is_home_of(protocols.make(name))]
        assert len(homes) <= 1
        assert all(one.has(protocols.make(name)) for one in homes)


def test_what_two_runtimes_of_one_word_have_is_apart():
    for world in WORLDS:
        of_world = [set(has(one)) for one in RUNTIMES.values() if one.world == world]
        assert sum(map(len, of_world)) == len(set().union(*of_world))


def test_a_launch_of_a_runtime_has_a_rank_for_everybody(runtime):
    jobs = [scenario_of(name) for name in has(runtime)]
    assert runtime.ranks(jobs) >= max(job.ranks for job in jobs)
    assert runtime.ranks([]) == 0


def test_a_header_takes_the_world_of_every_runtime(runtime):
    header = scenario_of(has(runtime)[0]).header(runtime.world)
    assert checked(header.text(), "here").world == runtime.world
    assert header.measured


@pytest.mark.usefixtures("with_horovod")
@pytest.mark.parametrize(
    ("options", "setting"),
    [
        ("fmb --runtime horovod", "--runtime"),
        ("fmb --runtime tensorflow", "--runtime"),
        ("horovod --runtime tensorflow", "--runtime"),
        ("allreduce --runtime horovod --set algorithm=tree", "--set algorithm"),
        ("allreduce --runtime tensorflow --device gpu", "--device"),
        ("ps-backup --runtime tensorflow --set barrier=True", "--set barrier"),
        ("ps-layers --set local_aggregation=true", "--set local_aggregation"),
        ("ps-layers --runtime tensorflow", "--runtime"),
        ("ps-async --servers 2 --test-size 5 --runtime mpi", "--test-size"),
    ],
)
def test_what_a_runtime_has_not_is_refused(options, setting):
    with pytest.raises(WrongSetting) as refused:
        runtime_of(parse(["--protocol", *options.split()]))
    assert refused.value.setting == setting


@pytest.mark.parametrize("options", ["allreduce --runtime horovod", "horovod --runtime horovod"])
def test_without_horovod_one_line_says_how_to_get_it(monkeypatch, options):
    monkeypatch.setattr("real.libraries.entries.find_spec", lambda module: None)
    with pytest.raises(WrongSetting, match="make horovod"):
        runtime_of(parse(["--protocol", *options.split()]))


def test_horovod_is_told_only_what_it_would_not_do_untold():
    def told(*settings):
        return tuned(scenario(parse(["--protocol", "horovod", *(f"--set={setting}" for setting in settings)])))

    assert told() == told("cycle_s=0.001") == tuned(scenario(parse(["--protocol", "allreduce"]))) == {}
    assert told("fusion_bytes=0") == {"HOROVOD_FUSION_THRESHOLD": "0"}
    assert told("cycle_s=0.005") == {"HOROVOD_CYCLE_TIME": "5.0"}


def test_slots_count_ranks_on_hosts_and_hosts_of_ranks():
    assert slots(["a", "a"]) == [Slot("a", 0, 2, 0, 2, 0, 1), Slot("a", 1, 2, 1, 2, 0, 1)]
    of_three = [Slot("a", 0, 3, 0, 2, 0, 2), Slot("b", 1, 3, 0, 1, 1, 2), Slot("a", 2, 3, 1, 2, 0, 1)]
    assert slots(["a", "b", "a"]) == of_three
    told = environment(slots(["a", "b", "a"])[2], "127.0.0.1", 4000, "lo")
    assert (told["HOROVOD_LOCAL_RANK"], told["HOROVOD_CROSS_SIZE"], told["HOROVOD_GLOO_IFACE"]) == ("1", "1", "lo")


def test_waiting_ends_when_the_last_rank_has_its_gradients():
    def rows(step, rank, computed_s, summed_s):
        return [
            Activity(step, computed_s, rank, step, "compute", 8),
            Activity(computed_s, summed_s, rank, step, "receive", bytes=40),
        ]

    found = waits_apart(rows(0, 0, 0.2, 0.9) + rows(0, 1, 0.5, 1.0) + rows(1, 0, 1.4, 2.0) + rows(1, 1, 1.1, 1.3))
    spans = {(row.step, row.rank, row.activity): (row.start_s, row.end_s) for row in found}
    assert spans[0, 0, "wait"] == (0.2, 0.5)
    assert spans[0, 0, "receive"] == (0.5, 0.9)
    assert spans[0, 1, "wait"] == (0.5, 0.5)
    assert spans[0, 1, "receive"] == (0.5, 1.0)
    assert spans[1, 1, "wait"] == (1.1, 1.3)  # clocks may differ a little: never past its own end
    assert {row.bytes for row in found if row.activity == "wait"} == {0}
    assert len(found) == 12


@pytest.mark.parametrize(("servers", "of_servers"), [(1, True), (0, False)])
def test_a_trace_of_tensorflow_s_collectives_is_not_of_its_servers(servers, of_servers):
    about = {"workload": "mlp", "workers": 1, "steps": 1, "warmup": 0, "batch": 8, "seed": 0, "settings": {}}
    trace = Trace.of(Header(protocol="x", world="tensorflow", servers=servers, **about), [])
    assert is_of_servers(trace) == of_servers
