"""Who runs a protocol for real, what is refused, and what of other people's runtimes can be told without them."""

import socket
import threading
from contextlib import suppress

import pytest

from calibration.servers import is_of_servers
from real import launch
from real.foreign.horovod_allreduce import Slot, environment, slots, tuned
from real.foreign.runtimes import library_of, runtime_of, served
from real.foreign.summed import waits_apart
from real.foreign.tasks import reachable
from real.options import scenario
from real.run import parse
from sim.errors import WrongSetting
from sim.traces import Activity, Header, Trace


@pytest.fixture
def with_horovod(monkeypatch):
    monkeypatch.setattr(launch, "found", lambda module: True)


@pytest.mark.usefixtures("with_horovod")
@pytest.mark.parametrize(
    ("options", "runtime", "library", "by_servers"),
    [
        ("allreduce", "mpi", None, False),
        ("allreduce --runtime tensorflow", "tensorflow", "tensorflow", False),
        ("allreduce --runtime horovod --set algorithm=ring", "horovod", "horovod", False),
        ("horovod", "horovod", "horovod", False),
        ("ps-sync", "tensorflow", None, True),
        ("ps-sync --runtime mpi", "mpi", None, False),
        ("ps-sync --set barrier=True", "mpi", None, False),
        ("ps-sync --set barrier=True --runtime tensorflow", "tensorflow", None, True),
        ("ps-async --job ps", "tensorflow", None, True),
        ("ps-async --servers 2 --test-size 5", "tensorflow", None, True),
        ("fmb", "mpi", None, False),
    ],
)
def test_who_runs_it(options, runtime, library, by_servers):
    given = parse(["--protocol", *options.split()])
    assert (runtime_of(given), library_of(given), served(given)) == (runtime, library, by_servers)


@pytest.mark.usefixtures("with_horovod")
@pytest.mark.parametrize(
    ("options", "setting"),
    [
        ("fmb --runtime horovod", "--runtime"),
        ("fmb --runtime tensorflow", "--runtime"),
        ("horovod --runtime tensorflow", "--runtime"),
        ("allreduce --runtime horovod --set algorithm=tree", "--set algorithm"),
        ("allreduce --runtime tensorflow --device gpu", "--device"),
        ("allreduce --job worker", "--job"),
        ("ps-backup --runtime tensorflow --set barrier=True", "--set barrier"),
        ("ps-layers --set local_aggregation=true", "--set local_aggregation"),
        ("ps-async --servers 2 --test-size 5 --runtime mpi", "--test-size"),
        ("allreduce --horovod-timeline t.json", "--horovod-timeline"),
    ],
)
def test_what_a_runtime_has_not_is_refused(options, setting):
    with pytest.raises(WrongSetting) as refused:
        runtime_of(parse(["--protocol", *options.split()]))
    assert refused.value.setting == setting


@pytest.mark.parametrize("options", ["allreduce --runtime horovod", "horovod --runtime horovod"])
def test_without_horovod_one_line_says_how_to_get_it(monkeypatch, options):
    monkeypatch.setattr(launch, "found", lambda module: module != "horovod")
    with pytest.raises(WrongSetting, match="make horovod"):
        runtime_of(parse(["--protocol", *options.split()]))


def test_horovod_is_told_only_what_it_would_not_do_untold():
    def told(*settings):
        return tuned(scenario(parse(["--protocol", "horovod", *(f"--set={setting}" for setting in settings)])))

    assert told() == told("cycle_s=0.001") == tuned(scenario(parse(["--protocol", "allreduce"]))) == {}
    assert told("fusion_bytes=0") == {"HOROVOD_FUSION_THRESHOLD": "0"}
    assert told("cycle_s=0.005") == {"HOROVOD_CYCLE_TIME": "5.0"}


def test_a_server_whose_port_is_busy_is_not_taken_for_dead():
    """While a queue is full the kernel drops SYNs, as a congested port does; a closed port refuses them."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        address = listener.getsockname()
        waiting = [socket.socket() for _ in range(2)]  # one fills the queue
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(address)

        def drain():
            with suppress(OSError):  # closed at the end
                while True:
                    listener.accept()[0].close()

        draining = threading.Timer(0.5, drain)
        draining.daemon = True
        draining.start()
        assert reachable(f"127.0.0.1:{address[1]}")
        listener.shutdown(socket.SHUT_RDWR)  # who accepts would keep it open
        draining.join()
    for one in waiting:
        one.close()
    assert not reachable(f"127.0.0.1:{address[1]}")


def test_slots_count_ranks_on_hosts_and_hosts_of_ranks():
    assert slots(["a", "a"]) == [Slot("a", 0, 2, 0, 2, 0, 1), Slot("a", 1, 2, 1, 2, 0, 1)]
    assert slots(["a", "b", "a"]) == [
        Slot("a", 0, 3, 0, 2, 0, 2),
        Slot("b", 1, 3, 0, 1, 1, 2),
        Slot("a", 2, 3, 1, 2, 0, 1),
    ]
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
