"""A link's latency as training finds it: learned from the messages of one worker and its master, where a probe found less."""

from dataclasses import replace

import event
import numpy as np
import pytest

from calibration.estimators import latency as messages
from calibration.probes import Measured, Probe
from calibration.profiles import Source, make
from sim import protocols
from sim.job.scenario import Scenario
from sim.laws import LogNormal
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.platform.cluster import ASSUMED, Cluster, Host, Link
from sim.recording.traces import Trace

SHAPED = Link(
    latency_s=0.4e-3, overhead_s=40e-6, bandwidth_bytes_per_s=1.2e8, fair=True, burst_bytes=8e4, eager_bytes=65536
)
PLAIN = Link(latency_s=0.4e-3, bandwidth_bytes_per_s=1e9)
WORK = Costs(compute=Line(base_s=3e-3), update=Line(base_s=2e-3), noise=LogNormal(cv=0.05))
COSTS = {"mlp": WORK, "toy_fc": WORK}
PROBED_S, LIBRARY_S = 0.1e-3, 0.05e-3


def run(network: Link, protocol: str = "fmb", workers: int = 1, model: str = "mlp", seed: int = 0) -> Source:
    """Recorded on hosts of one rank each."""
    hosts = Host(count=workers + (protocol != "allreduce"))
    where = Cluster(hosts=[hosts], network=network, costs=COSTS)
    settings = ["algorithm=ring"] if protocol == "allreduce" else []
    job = {"workers": workers, "steps": 30, "warmup": 2, "batch": 32, "seed": seed, "cluster": where}
    trace = event.trace(Scenario(protocols.make(protocol, settings), workload.read(model), **job))
    hosts = tuple((f"host{rank}", 1) for rank in range(trace.header.ranks))
    return Source(f"{protocol}-{model}-{seed}", Trace(replace(trace.header, hosts=hosts), trace.rows))


def probe(network: Link) -> Probe:
    """Of the links, which it takes for faster than training finds them."""
    network, library = (
        Measured(**network.model_copy(update={"latency_s": latency_s}).model_dump())
        for latency_s in (PROBED_S, LIBRARY_S)
    )
    return Probe(cores=1, network=network, library=library)


@pytest.mark.slow
@pytest.mark.parametrize("network", [PLAIN, SHAPED], ids=["plain", "shaped"])
def test_planted_latency_is_found(network):
    """Once in a message, or three times where a rank asks and is answered before it sends."""
    made = make([run(network, model=model) for model in COSTS], "x", probe(network))
    assert made.network.latency_s == pytest.approx(network.latency_s, rel=0.02)
    assert made.library.latency_s == pytest.approx(LIBRARY_S + network.latency_s - PROBED_S, rel=0.02)
    assert made.network.model_copy(update={"latency_s": 0}) == network.model_copy(update={"latency_s": 0})
    assert any("+300 us" in note for note in made.provenance.notes)


def test_a_link_that_is_faster_than_probed():
    made = make([run(PLAIN.model_copy(update={"latency_s": 20e-6}))], "x", probe(PLAIN))
    assert made.network.latency_s == pytest.approx(20e-6, rel=0.1)


@pytest.mark.parametrize(("protocol", "workers"), [("allreduce", 2), ("fmb", 2)])
def test_messages_that_others_may_hold_up_say_nothing(protocol, workers):
    made = make([run(PLAIN, protocol, workers)], "x", probe(PLAIN))
    assert made.network.latency_s == PROBED_S
    assert made.library.latency_s == LIBRARY_S


def test_without_a_probe_links_are_assumed():
    assert make([run(PLAIN)], "x").network == ASSUMED


def test_a_large_message_gone_astray_counts_little():
    """Ten milliseconds in the messages of 4 MB are less than the noise of the network that they took."""
    large = run(SHAPED, model="toy_fc")
    rows = large.trace.rows
    came = rows["activity"] == "receive"
    late = Source(large.name, Trace(large.trace.header, rows.assign(end_s=rows["end_s"] + 10e-3 * came)))
    made = make([run(SHAPED), run(SHAPED, seed=1), late], "x", probe(SHAPED))
    assert made.network.latency_s == pytest.approx(SHAPED.latency_s, rel=0.1)


def test_a_message_lasts_from_its_send_to_its_receive():
    """By hand: 318,072 bytes at 1 GB/s, latency and the overheads of both ends; the warm-up's left out."""
    taken_s = messages.taken_s(run(PLAIN).trace)
    assert len(taken_s) == 2 * 30
    expected_s = PLAIN.latency_s + 2 * PLAIN.overhead_s + PLAIN.occupancy_s(318_072)
    assert np.median(taken_s) == pytest.approx(expected_s, rel=0.01)
