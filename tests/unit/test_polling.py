"""Polls of ranks that wait: how often the MPI world and the event world poll, what it takes, and what calibration finds."""

from dataclasses import replace

import event
import numpy as np
import pytest

from calibration.estimators import latency as messages
from calibration.estimators.polling import poll_s
from calibration.estimators.polling import tells as looks_tell
from calibration.evidence.core_seconds import core_seconds
from calibration.evidence.seats import Placement
from calibration.probes import Measured, Probe
from calibration.profiles import Source, make
from real.probing import links
from sim import protocols
from sim.job.scenario import Scenario
from sim.language.event import cores
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.platform import polling
from sim.platform.cluster import Cluster, Host, Link
from sim.platform.polling import polls
from sim.recording.traces import Trace

POLL_S, OVERSLEEP_S = 60e-6, 100e-6
NETWORK = Link(latency_s=0.4e-3, overhead_s=300e-6, bandwidth_bytes_per_s=1e8, fair=True, eager_bytes=65536)
WORK = Costs(compute=Line(base_s=5e-3), update=Line(base_s=2e-3))


def run(
    poll: float = POLL_S,
    cores: int | None = 2,
    model: str = "mlp",
    hosts: int = 2,
    network: Link = NETWORK,
    steps: int = 20,
    protocol: str = "fmb",
    workers: int = 1,
) -> Trace:
    """On hosts in one machine of so many cores, or of None for a machine each; or on one host."""
    host = Host(count=hosts + workers - 1) if hosts > 1 else Host(cores=cores, slots=2)
    cluster = Cluster(
        hosts=[host],
        network=network,
        costs={model: WORK},
        shared_cores=cores if hosts > 1 else None,
        oversleep_s=OVERSLEEP_S,
        poll_s=poll,
    )
    job = {"workers": workers, "steps": steps, "warmup": 0, "batch": 32, "cluster": cluster}
    name, *algorithm = protocol.split("-")
    text = protocols.make(name, [f"algorithm={one}" for one in algorithm])
    return event.trace(Scenario(text, workload.read(model), **job))


def as_real(trace: Trace, used_s: float, hosts: int = 2) -> Trace:
    """The trace, of a real run whose ranks used so much processor time."""
    names = (("host0", 2), (f"host{hosts - 1}", 2))
    return Trace(replace(trace.header, world="mpi", cpu_s={"0": used_s}, hosts=names), trace.rows)


class Used:
    """What a simulated machine's cores were used for, seconds: work, and polls of ranks that waited."""

    def __init__(self):
        self.work_s = self.looks_s = 0.0
        self._from_s = self._cores = 0.0

    @property
    def seconds(self) -> float:
        return self.work_s + self.looks_s

    def work(self, seconds: float) -> None:
        if seconds == POLL_S:  # the last of a wait
            self.looks_s += seconds
        else:
            self.work_s += seconds

    def take(self, now_s: float, cores: float) -> None:
        self.looks_s += self._cores * (now_s - self._from_s)
        self._from_s, self._cores = now_s, self._cores + cores


@pytest.fixture
def used(monkeypatch) -> Used:
    noted, work, poll = Used(), cores.InTurns.work, cores.Polled.poll

    def polled(self, stage, more):
        before = self._polls
        poll(self, stage, more)
        noted.take(self._world.time_s, self._polls - before)

    def worked(self, task, seconds):
        noted.work(seconds)
        return work(self, task, seconds)

    monkeypatch.setattr(cores.InTurns, "work", worked)
    monkeypatch.setattr(cores.Polled, "poll", polled)
    return noted


def length_s(trace: Trace, activity: str) -> float:
    rows = trace.rows[trace.rows["activity"] == activity]
    return float((rows["end_s"] - rows["start_s"]).median())


def test_the_event_world_looks_as_often(used):
    """In the waits of two ranks with a core each, but while they work at an end of a message."""
    rows = run().rows
    rows = rows[rows["activity"].isin(("wait", "receive", "send"))]
    waits_s = (rows["end_s"] - rows["start_s"]) - NETWORK.overhead_s * (rows["activity"] != "wait")
    assert used.looks_s == pytest.approx(POLL_S * polls(waits_s.to_numpy(), OVERSLEEP_S).sum(), rel=0.06)


def test_looks_take_the_core_from_who_computes():
    """On one core: a computation lasts for its own work and that of the master's polls, of which there are so many meanwhile."""
    lasts_s = length_s(run(cores=1), "compute")
    assert length_s(run(0.0, cores=1), "compute") == pytest.approx(5e-3)
    count = polls(np.array([lasts_s]), OVERSLEEP_S)[0]
    assert lasts_s == pytest.approx(5e-3 + count * POLL_S, rel=0.05)


PLAIN = Link(latency_s=3e-3, overhead_s=0.0, bandwidth_bytes_per_s=1e9)


def test_what_has_come_is_seen_at_the_next_look():
    """Somewhere in a pause, which is the longer the longer was waited: of the master's answers, for which the worker waits alike."""
    lasts_s = [
        (rows["end_s"] - rows["start_s"])[rows["activity"].isin(("wait", "receive")) & (rows["rank"] == 1)].to_numpy()
        for rows in (run(poll, None, network=PLAIN, steps=150).rows for poll in (0.0, 1e-9))
    ]
    prompt_s, late_s = (seconds.reshape(-1, 2).sum(axis=1)[1:] for seconds in lasts_s)
    longest_s = polling.pause_s(prompt_s[0]) + OVERSLEEP_S
    assert np.ptp(late_s) < 2.2 * longest_s
    sent_s = polling.late_s(0.0, OVERSLEEP_S)  # later it sees that its gradient has left, and begins to wait
    assert np.mean(late_s) - prompt_s[0] == pytest.approx(longest_s - sent_s, rel=0.05)  # half a pause at either end


def test_a_message_that_must_be_asked_for_is_seen_late_three_times():
    """Word of it, the word that asks for it, and its end: by ranks that have waited for two words' travel, or four."""
    shaped = PLAIN.model_copy(update={"fair": True, "eager_bytes": 1000})
    prompt_s, late_s = (messages.taken_s(run(poll, None, network=shaped, steps=80)).mean() for poll in (0.0, 1e-9))
    waited_s = (12e-3, 2 * PLAIN.latency_s, 2 * PLAIN.latency_s)
    assert late_s - prompt_s == pytest.approx(sum(polling.late_s(w, OVERSLEEP_S) for w in waited_s), rel=0.05)


def test_who_naps_may_look_before_it_was_asked():
    """Two ranks exchange messages, one earlier: it pauses while word of the other's comes and, soon after, the word that asks for its
    own. In some exchanges it polls in between, and both go at once; in the others one of two messages comes second."""
    shaped = PLAIN.model_copy(update={"latency_s": 10e-6, "overhead_s": 40e-6, "fair": True, "eager_bytes": 1000})
    trace = run(model="toy_fc", network=shaped, steps=120, protocol="allreduce-ring", workers=2)
    received_s = trace.rows[trace.rows["activity"] == "receive"].eval("end_s - start_s")
    second = received_s > 1.5 * shaped.occupancy_s(workload.read("toy_fc").message_bytes / 2)
    assert 0.3 < second.mean() < 0.5


def test_naps_are_no_time_of_a_probed_link():
    """Planted: a message takes so long; its receiver saw word of it, its sender that it was asked for, and the receiver its end, late."""
    for true_s in (2e-3, 35e-3):
        late_s = [polling.late_s(waited_s, OVERSLEEP_S) for waited_s in (links.SHORT_S, 0.0, true_s)]
        assert links._without_pauses(true_s + sum(late_s), True, OVERSLEEP_S) == pytest.approx(true_s, rel=0.01)
        assert links._without_pauses(true_s + late_s[2], False, OVERSLEEP_S) == pytest.approx(true_s, rel=0.01)


def test_a_profile_without_naps_has_their_time_in_its_links(used):
    """Where no run tells that ranks polled, messages are as late as the probe's were."""
    probed = Measured(latency_s=0.1e-3, late_s=0.2e-3)
    trace = as_real(run(hosts=1), used.seconds, hosts=1)
    silent = Trace(replace(trace.header, cpu_s={}), trace.rows)
    probe = Probe(cores=2, oversleep_s=OVERSLEEP_S, local=probed)
    polling_ranks, prompt = (make([Source("fmb", one)], "x", probe) for one in (trace, silent))
    assert polling_ranks.poll_s > 0 == prompt.poll_s
    assert [made.local.latency_s for made in (polling_ranks, prompt)] == pytest.approx([0.1e-3, 0.3e-3])


@pytest.mark.parametrize("hosts", [1, 2])
@pytest.mark.parametrize("model", ["mlp", "toy_fc"])
def test_planted_looks_are_found(model, hosts, used):
    """From what the simulated machine's cores did in all, which is what a real run's ranks say."""
    trace = as_real(run(model=model, hosts=hosts), used.seconds, hosts)
    assert looks_tell(trace)
    assert poll_s([trace], OVERSLEEP_S, NETWORK.overhead_s) == pytest.approx(POLL_S, rel=0.05)


def test_a_profile_has_them(used):
    source = Source("fmb", as_real(run(), used.seconds))
    probe = Probe(cores=2, oversleep_s=OVERSLEEP_S, network=Measured(**NETWORK.model_dump()))
    made = make([source], "x", probe, shared_cores=2)
    assert made.poll_s == pytest.approx(POLL_S, rel=0.05)
    assert any("a poll" in note for note in made.provenance.notes)


def test_costs_are_without_others_looks(used):
    """On the one core of both, the master's polls made the computation longer; a core's seconds of it are as planted."""
    trace = run(cores=1)
    place = Placement(("h",), (1,), (0, 0), poll_s=POLL_S, oversleep_s=OVERSLEEP_S)
    computes = (trace.rows["activity"] == "compute").to_numpy()
    assert np.median(core_seconds(trace.rows, place)[computes]) == pytest.approx(5e-3, rel=0.03)
    assert length_s(trace, "compute") > 5.5e-3


@pytest.mark.parametrize(
    "changed", [{"workers": 2}, {"world": "tensorflow"}, {"cpu_s": {}}, {"hosts": ()}, {"protocol": "amb-dg"}]
)
def test_other_runs_tell_nothing(changed):
    trace = as_real(run(), 1.0)
    assert not looks_tell(Trace(replace(trace.header, **changed), trace.rows))
