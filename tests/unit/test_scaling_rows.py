"""Tables of steps with servers, real data, accumulated minibatches and rows that contradict one another: what was planted is found."""

from dataclasses import replace

import numpy as np
import pytest
from scaling_tables import BYTES, LIKE, MODEL, notes, off, profile, table, written

from calibration.scaling import noticed, profiled, replay, steps
from calibration.scaling.fitting import fit
from calibration.scaling.steps import Scaling
from calibration.scaling.table import Table, read
from sim import protocols
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.model.costs import Costs, Line
from sim.platform.cluster import FREE, Cluster, Host
from sim.simulation import simulate

BASE_S, SAMPLE_S, BYTE_S, LOCAL_S = 0.05, 0.004, 2e-9, 0.3e-9
SETTINGS = {one: profiled.settings_of(one) for one in profiled.PROTOCOLS}
PLACES = [(h, g, b) for h, g in ((1, 1), (2, 1), (4, 1), (1, 2), (2, 2)) for b in (32, 64)]


def planted(of: Table, protocol: str, **costs) -> Table:
    """With the steps that the event world has on known links."""
    network, local = (FREE.model_copy(update={"bandwidth_bytes_per_s": 1 / byte_s}) for byte_s in (BYTE_S, LOCAL_S))
    known = Costs(compute=Line(base_s=BASE_S, slope_s=SAMPLE_S), several=0.05, **costs)
    place = Cluster(name="x", hosts=(Host(gpus=1),), network=network, local=local, costs={MODEL.name: known})
    return of._replace(step_s=np.array(replay.steps_s(place, MODEL, protocol, SETTINGS.get(protocol, ()), of)))


def simulated_s(made: Cluster, model, workers: int, batch: int) -> float:
    text = protocols.make("allreduce", ["algorithm=ring"])
    job = Scenario(text, model, workers, 2, 1, batch=batch, cluster=made).without_stragglers()
    return float(simulate(job, replications=1).step_s.mean())


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "beside"), [("ps-sync", 0.0), ("ps-sync", 1.0), ("ps-async", 0.0)])
def test_servers_are_found_and_larger_sizes_predicted(tmp_path, protocol, beside):
    """Two servers of their own, into which more bytes come with each worker; or as many as hosts, on these."""
    seen, more = (
        table(
            places, servers=np.array([h if beside else 2.0 for h, _, _ in places]), beside=np.full(len(places), beside)
        )
        for places in (PLACES, [(8, 1, 32), (4, 4, 64)])
    )
    made = profile(tmp_path, planted(seen, protocol), protocol)
    assert 1 / made.network.bandwidth_bytes_per_s == pytest.approx(BYTE_S, rel=0.1)
    assert np.abs(off(made, protocol, planted(more, protocol))).max() < 0.08
    on, servers = ("workers", 4) if beside else ("own", 2)
    assert f"simulate it with --protocol {protocol} --servers {servers} --servers-on {on}" in notes(made)
    assert made.provenance.servers_on == on
    assert made.hosts[0].count == (4 if beside else 2)


@pytest.mark.slow
def test_of_servers_without_a_protocol_the_better_one_is_taken(tmp_path):
    several = {"servers": np.full(len(PLACES), 2.0), "beside": np.zeros(len(PLACES))}
    made = profile(tmp_path, planted(table(PLACES, **several), "ps-async"))
    assert "ps-async meets the table better than ps-sync" in notes(made)


@pytest.mark.parametrize(
    ("column", "value", "protocol", "said"),
    [
        ("servers_on", "elsewhere", None, "servers_on: given 'elsewhere'; allowed: own or workers"),
        ("data", "fast", None, "data: given 'fast'; allowed: synthetic or real"),
        ("servers", "0", None, "row 1"),
        ("servers", "2", "ddp", "--protocol: given 'ddp'; allowed: ps-sync, ps-async, ps-layers"),
    ],
)
def test_columns_that_cannot_be_are_refused(tmp_path, column, value, protocol, said):
    path = tmp_path / "x.csv"
    lines = [f"{h},{g},{b},0.1,{value}" for h, g, b in PLACES]
    path.write_text("\n".join([f"hosts,gpus_per_host,batch,step_s,{column}", *lines]))
    with pytest.raises(WrongSetting) as raised:
        profiled.profile(str(path), "x", "resnet50", protocol)
    assert said in str(raised.value)


READS = 300.0  # samples/s of a host
ONE_HOST = [(1, g, b) for g in (1, 2, 4, 8) for b in (32, 64)]


def on_real_data(of: Table) -> Table:
    """The same rows where a host's input binds."""
    return of._replace(step_s=np.maximum(of.step_s, of.most * of.batch / READS))


def test_a_rate_that_stops_growing_in_a_host_is_said_and_taken_as_its_input(tmp_path):
    alone = planted(table(ONE_HOST), "allreduce")
    said = "the total rate of a host stops growing at 2 GPUs (300 samples/s): input?"
    assert said in notes(profile(tmp_path, on_real_data(alone), "allreduce"))
    assert "input?" not in notes(profile(tmp_path, alone, "allreduce"))


@pytest.mark.parametrize(
    ("gpus", "rates", "real", "ceiling"),
    [
        ((1, 2), (4.6, 2.3), None, None),
        ((1, 2), (4.6, 4.6), 1.0, 1),
        ((1, 2, 4), (4.6, 2.3, 4.1), None, None),
        ((1, 2, 4), (4.6, 4.7, 4.8), None, 2),
    ],
)
def test_a_rate_that_stops_with_the_second_gpu_may_be_its_link_s(gpus, rates, real, ceiling):
    """Unless the table says that data are real, or the rate stays from there on, which that of a link does not."""
    of = table([(1, each, 8) for each in gpus])
    of = of._replace(step_s=8 * of.gpus / rates, real=None if real is None else np.full(of.size, real))
    found = noticed.ceiling(of)
    assert (found and found.gpus) == ceiling


def test_real_and_synthetic_rows_tell_the_ceiling_of_input(tmp_path):
    """What users get of the profile alone is real data, at the ceiling; of the model by name, synthetic ones."""
    alone = planted(table(ONE_HOST), "allreduce")
    both = Table(*(np.concatenate(columns) for columns in zip(alone[:6], on_real_data(alone)[:6], strict=True)))
    made = profile(tmp_path, both._replace(real=np.repeat([0.0, 1.0], alone.size)), "allreduce")
    found = made.fitted()
    assert found.reading == pytest.approx(READS, rel=0.02)
    assert "samples/s of real data; without reading in the model, data are synthetic" in notes(made)
    for model, step_s in ((found, 64 * 8 / READS), (MODEL, alone.step_s[-1])):
        assert simulated_s(made, model, 8, 64) == pytest.approx(step_s, rel=0.05)


@pytest.mark.slow
def test_accumulated_minibatches_are_simulated(tmp_path):
    """Planted: steps of 4 minibatches. As one minibatch of all samples they would hide the link: the control."""
    places = [(h, 1, 4 * b) for h in (1, 2, 4) for b in (8, 16)]
    four = planted(table(places, minibatches=np.full(6, 4.0)), "ddp")
    whole = four._replace(minibatches=np.ones(6))
    made = profile(tmp_path, four, "ddp")
    assert 1 / made.network.bandwidth_bytes_per_s == pytest.approx(BYTE_S, rel=0.15)
    assert "6 of 6 rows accumulate gradients of up to 4 minibatches" in notes(made)
    assert "--set accumulate=N" in notes(made)
    more = planted(table([(8, 1, 64)], minibatches=np.full(1, 4.0)), "ddp")
    assert np.abs(off(made, "ddp", more)).max() < 0.06
    assert fit(whole, LIKE).between_s > 1.3 * BYTE_S
    path = written(tmp_path, four)
    path.write_text(path.read_text().replace("minibatches", "accumulation"))
    assert (read(path).minibatches == 4).all()


FLAT = Scaling(BYTES, BASE_S, SAMPLE_S, 0.4e-9, within_s=0.01e-9, round_s=3e-5)
BATCHES = [(h, 1, b) for h in (1, 2, 4) for b in (16, 32, 64, 128)]


def test_a_batch_that_is_no_line_is_predicted_on_its_own(tmp_path):
    """Planted: 64 samples take twice the line on every size. The others keep their line, and the simulator has both."""
    of = table(BATCHES)
    made = profile(tmp_path, of._replace(step_s=replace(FLAT, alone=((64, 0.6),)).step_s(of)), "allreduce")
    assert "batch 64 is no line with the others: it takes 0.6 s alone, and their line says 0.30" in notes(made)
    assert made.costs[MODEL.name].compute.slope_s == pytest.approx(SAMPLE_S, rel=0.05)
    for batch, seconds in ((64, 0.6), (128, BASE_S + 128 * SAMPLE_S)):
        assert simulated_s(made, MODEL, 1, batch) == pytest.approx(seconds, rel=0.05)


def contradicted(place: tuple[int, int], batch: int, step_s: float | None) -> Table:
    """BATCHES, and another row, whose step is as its neighbours' if it is not given."""
    of = table([*BATCHES, (*place, batch)])
    steps_s = FLAT.step_s(of)
    return of._replace(step_s=np.array([*steps_s[:-1], step_s or steps_s[-1]]))


@pytest.mark.parametrize(
    ("place", "batch", "step_s", "said"),
    [
        ((2, 1), 64, 0.6, "row 7 (batch 64: 0.3"),
        ((4, 1), 256, 0.45, "row 12 (batch 128: 0.6"),
        ((2, 1), 64, None, None),
    ],
)
def test_rows_that_contradict_one_another_are_named_with_what_the_fit_says(tmp_path, place, batch, step_s, said):
    found = notes(profile(tmp_path, contradicted(place, batch, step_s), "allreduce"))
    assert ("contradict one another" in found) == (said is not None)
    assert (said or "") in found


def test_a_table_that_is_refused_names_them(tmp_path):
    with pytest.raises(WrongSetting, match=r"on 4 x 1, row 12 \(batch 128: .* and row 13 .* contradict one another"):
        profile(tmp_path, contradicted((4, 1), 256, 0.1), "allreduce")


def test_steps_that_fall_with_more_gpus_are_named(tmp_path):
    """Those of one global batch, given as if each GPU had it; not those of a batch that is shared out."""
    of = table([(1, 4, 64), (2, 4, 64), (4, 4, 64)], step_s=np.array([0.30, 0.20, 0.15]))
    assert "steps fall from 0.3 s (row 1) to 0.15 s (row 3) with more GPUs" in notes(profile(tmp_path, of))
    assert "steps fall" not in notes(profile(tmp_path, of._replace(batch=64 / of.hosts)))


def test_computing_that_a_hosts_input_hides_in_all_rows_is_not_known():
    """Each sample takes the host 10 ms to read, whatever its GPUs compute: rows say nothing of the constant part of computing."""
    of = table([(1, 1, 32), (1, 2, 32), (1, 1, 64), (1, 2, 64)])
    of = of._replace(step_s=0.01 * of.gpus * of.batch * (1.0, 1.3, 1.0, 0.85), real=np.ones(4))
    found = fit(of, LIKE)
    assert found.misses(of) < 0.2
    spread = dict(zip(steps.CONSTANTS, np.sqrt(np.diag(found.covariance)), strict=True))
    assert spread["base_s"] >= 0.9 * found.base_s > 0


@pytest.mark.slow
def test_rounds_of_256_gpus_are_as_long_as_in_the_fit(monkeypatch):
    """Planted: rounds of 20 us on 64 hosts of 4 GPUs take a twentieth of a step; without them the profile is faster: the control."""
    for module in (steps, profiled):
        monkeypatch.setattr(module, "TREE_S", 3e-3)
    of, slow = table([(64, 4, 16)]), replace(FLAT, round_s=20e-6)
    of = of._replace(step_s=slow.step_s(of))
    made = [profiled._made(one, of, MODEL, "x", None) for one in (slow, replace(slow, round_s=0.0))]
    found, without = (off(one, "allreduce", of)[0] for one in made)
    assert abs(found) < 0.03
    assert without < -0.04
