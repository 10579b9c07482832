"""The hybrid and sparse variables: equal to what it mixes, closed forms of bytes, and the law of touched rows."""

import event
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sim import protocols, stragglers
from sim.answers.outcome import of_trace
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.model.sizes import HEADER_BYTES, ITEM_BYTES
from sim.model.sparse_rows import Rows, distinct, draws_of
from sim.model.workload import Variable, Workload
from sim.platform.cluster import Cluster, Host, Link

LINK = Link(latency_s=1e-3, overhead_s=2e-4, gap_s=3e-5, bandwidth_bytes_per_s=1e8)
LOCAL = Link(latency_s=1e-5, overhead_s=1e-4, bandwidth_bytes_per_s=1e9)
COSTS = Costs(compute=Line(base_s=0.01), reduce=Line(base_s=1e-5, slope_s=1e-9), update=Line(base_s=1e-3, slope_s=1e-9))
ALPHA, ROWS, COLUMNS = 0.05, 7200, 16
DENSE = Variable(name="dense", shape=(7200,))  # can be cut in equal parts
SPARSE = Variable(name="sparse", shape=(ROWS, COLUMNS), rows=Rows(fraction=ALPHA))
LAW = stragglers.read("niagara*0.01")


def job(name: str, *assignments: str, variables=(DENSE, SPARSE), workers=4, hosts=None, costs=COSTS, **options):
    """Servers beside the workers, one worker a host unless `hosts` say otherwise."""
    model = Workload(name="model", variables=variables)
    cluster = Cluster(hosts=hosts or [Host(count=workers)], network=LINK, local=LOCAL, costs={"model": costs})
    options = {"servers_on": "workers", "steps": 3, "warmup": 1, "batch": 10, **options}
    return Scenario(protocols.make(name, list(assignments)), model, workers, cluster=cluster, **options)


def step_s(scenario: Scenario) -> np.ndarray:
    return of_trace(event.trace(scenario)).step_s[0]


def carried(scenario: Scenario, way: str = "receive") -> list[int]:
    """Bytes through each host's port in the second step, between hosts alone; notes are not recorded as sent."""
    rows, hosts = event.trace(scenario).rows, np.array(scenario.hosts)
    rows = rows[(rows["activity"] == way) & (rows["step"] == 1)]
    here, there = hosts[rows["rank"].to_numpy()], hosts[rows["peer"].to_numpy()]
    return [int(rows["bytes"][(here == host) & (there != host)].sum()) for host in sorted(set(hosts))]


@pytest.mark.parametrize("algorithm", ["ring", "auto"])
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_without_sparse_variables_it_is_allreduce(algorithm, workers):
    options = {"variables": (DENSE,), "workers": workers, "stragglers": LAW}
    allreduce, hybrid = (step_s(job(name, f"algorithm={algorithm}", **options)) for name in ("allreduce", "hybrid"))
    np.testing.assert_allclose(hybrid, allreduce, rtol=0, atol=1e-9)


@pytest.mark.parametrize("servers", [1, 3])
@pytest.mark.parametrize("servers_on", ["own", "workers"])
def test_without_dense_variables_it_is_the_synchronous_server(servers, servers_on):
    options = {"variables": (SPARSE,), "servers": servers, "variable_partitions": 6, "servers_on": servers_on}
    options |= {"stragglers": stragglers.read("niagara*0.01"), "hosts": [Host(count=7)]}
    served, hybrid = (step_s(job(*of, **options)) for of in (("ps-sync", "barrier=true"), ("hybrid",)))
    np.testing.assert_allclose(hybrid, served, rtol=0, atol=1e-9)


def test_a_mix_is_neither():
    """A negative control: the mix has a time of its own."""
    mixed = step_s(job("hybrid", servers=4, variable_partitions=4)).mean()
    others = (job("ps-sync", "barrier=true", servers=4, variable_partitions=4), job("allreduce", "algorithm=ring"))
    assert all(abs(step_s(other).mean() - mixed) > 1e-4 for other in others)


@pytest.mark.parametrize("workers", [2, 3, 4, 6])
def test_dense_variables_cost_a_port_what_a_ring_does(workers):
    """2 w (N - 1) / N each way."""
    dense_bytes = ITEM_BYTES * ROWS
    for way in ("send", "receive"):
        assert (
            carried(job("hybrid", variables=(DENSE,), workers=workers), way)
            == [2 * dense_bytes * (workers - 1) // workers] * workers
        )


@pytest.mark.parametrize("workers", [2, 3, 4, 6])
def test_sparse_variables_on_servers_cost_a_port_their_touched_rows_twice(workers):
    """2 alpha w (N - 1) / N each way: rows come as parameters and come as gradients, from and for the other hosts; the numbers
    of rows come twice, and three headers and an acknowledgement a part."""
    rows = round(ALPHA * ROWS / workers)
    of_part = 2 * ITEM_BYTES * COLUMNS * rows + 2 * ITEM_BYTES * rows + 4 * HEADER_BYTES
    scenario = job("hybrid", variables=(SPARSE,), workers=workers, servers=workers, variable_partitions=workers)
    assert carried(scenario) == [(workers - 1) * of_part] * workers
    alpha_w = ALPHA * ITEM_BYTES * ROWS * COLUMNS
    assert carried(scenario)[0] == pytest.approx(2 * alpha_w * (workers - 1) / workers, rel=0.1)


@pytest.mark.parametrize("workers", [2, 3, 4, 6])
def test_sparse_variables_gathered_grow_with_the_workers(workers):
    """alpha w (N - 1) each way, with the numbers of rows; and a number of samples is summed."""
    scenario = job("allreduce", "sparse_as_dense=false", variables=(SPARSE,), workers=workers)
    rows_bytes = ITEM_BYTES * round(ALPHA * ROWS) * (COLUMNS + 1)
    for way in ("send", "receive"):
        for port in carried(scenario, way):
            assert 0 <= port - (workers - 1) * rows_bytes <= 2 * (workers - 1) * ITEM_BYTES


def test_a_variable_summed_as_dense_costs_what_a_dense_one_does():
    sparse, dense = (
        step_s(job("allreduce", variables=(v,))) for v in (SPARSE, SPARSE.model_copy(update={"rows": None}))
    )
    np.testing.assert_array_equal(sparse, dense)


@pytest.mark.slow
@example({DENSE, SPARSE}, 4, 1, 1, 4, True, "workers")  # pieces of a ring reach a worker that still adds up gradients
@settings(max_examples=60, deadline=None)
@given(
    st.sets(st.sampled_from([DENSE, SPARSE, SPARSE.model_copy(update={"name": "other"})]), min_size=1),
    *(st.integers(1, 4) for _ in range(4)),
    st.booleans(),
    st.sampled_from(["own", "workers"]),
)
def test_every_run_ends_with_all_its_updates(variables, workers, servers, parts, cores, aggregated, servers_on):
    placing = {"servers": servers, "variable_partitions": max(servers, parts), "servers_on": servers_on}
    hosts = [Host(count=8, cores=cores)]
    assignment = f"local_aggregation={aggregated}"
    scenario = job(
        "hybrid", assignment, variables=tuple(variables), workers=workers, hosts=hosts, stragglers=LAW, **placing
    )
    trace = event.trace(scenario)
    assert scenario.servers == (0 if variables == {DENSE} else servers)
    assert of_trace(trace).samples.tolist() == [[10 * workers] * scenario.steps]
    assert set(trace.rows["rank"]) == set(range(scenario.ranks))


def test_local_aggregation_sends_a_row_once():
    """Two hosts of three workers and one server each: gradients of the other host's three touch 1 - (1 - alpha) ** 3 of a part."""
    options = {"variables": (SPARSE,), "workers": 6, "servers": 2, "variable_partitions": 2}
    options["hosts"] = [Host(count=2, cores=3)]
    apart, together = (carried(job("hybrid", f"local_aggregation={how}", **options)) for how in (False, True))
    of_one, of_three = (round(share * ROWS / 2) for share in (ALPHA, 1 - (1 - ALPHA) ** 3))
    row_bytes = ITEM_BYTES * (COLUMNS + 1)
    saved = (
        3 * of_one - of_three
    ) * row_bytes + 2 * 2 * HEADER_BYTES  # and two gradients' headers and acknowledgements
    assert apart[0] - together[0] == saved


def test_parts_are_copied_one_after_another_and_added_by_as_many_cores_as_there_are():
    """A server on eight cores: P parts are copied as fast as one, and added in 1 / P of its time, until cores run out; each has a base."""
    costs = Costs(reduce=Line(base_s=1e-4, slope_s=1e-7))
    for parts in (1, 2, 4, 7, 24):
        options = {"variables": (SPARSE,), "workers": 1, "variable_partitions": parts, "costs": costs}
        rows = event.trace(job("hybrid", hosts=[Host(cores=8)], **options)).rows
        first = rows[(rows["rank"] == 0) & (rows["step"] == 0)]
        added = first[first["activity"] == "reduce"]
        came = first[(first["activity"] == "receive") & first["bytes"].isin(added["bytes"])]
        size_bytes = round(ALPHA * ROWS / parts) * ITEM_BYTES * (COLUMNS + 1) + HEADER_BYTES
        copy_s, sum_s = LOCAL.overhead_s + LOCAL.occupancy_s(size_bytes), costs.reduce(size_bytes)
        took_s = added["end_s"].max() - came["start_s"].min()
        if parts < 8:
            assert took_s == pytest.approx(parts * copy_s + sum_s, rel=1e-9)
        else:
            assert parts * (copy_s + sum_s) / 8 < took_s < parts * (copy_s + sum_s / 8)


@pytest.mark.parametrize(("name", "assignment"), [("hybrid", "algorithm=ring"), ("allreduce", "sparse_as_dense=false")])
def test_rows_may_cost_more_to_add_than_numbers_do(name, assignment):
    """What is dense keeps its cost."""
    options = {"workers": 2, "servers": 2, "variable_partitions": 2, "servers_on": "own", "hosts": [Host(count=4)]}
    dearer = COSTS.model_copy(update={"reduce_rows": Line(base_s=1e-5, slope_s=1e-7)})
    added = []
    for costs in (COSTS, dearer):
        rows = event.trace(job(name, assignment, costs=costs, **options)).rows
        rows = rows[(rows["activity"] == "reduce") & (rows["step"] == 1)]
        added.append((rows["end_s"] - rows["start_s"]).to_numpy())
    assert added[1].sum() > 2 * added[0].sum()
    header_bytes = HEADER_BYTES if name == "hybrid" else 0
    for took_s in added:  # the two ranks' halves of the ring
        assert np.isclose(took_s, COSTS.reduce(ITEM_BYTES * ROWS / 2 + header_bytes), rtol=1e-9, atol=0).sum() == 2


def test_every_part_costs_an_overhead_at_each_message():
    """The server takes requests and answers them, one after another; gradients of one part leave while those of another are taken.
    What is left of the last part's messages when all others have come is shorter, the more parts there are."""
    two, four = (
        step_s(job("hybrid", variables=(SPARSE,), workers=1, variable_partitions=p, servers_on="own", hosts=[Host(count=2)],
                   costs=Costs(compute=Line(base_s=0.01)))).mean()
        for p in (2, 4)
    )  # fmt: skip
    last_bytes = [ITEM_BYTES * ALPHA * ROWS / parts * (1 + COLUMNS + COLUMNS + 1) for parts in (2, 4)]
    shorter_s = (last_bytes[0] - last_bytes[1]) / LINK.bandwidth_bytes_per_s
    assert four - two == pytest.approx(2 * 3 * LINK.overhead_s - shorter_s, abs=1e-9)


# ---- the law of touched rows


@pytest.mark.parametrize("zipf", [0.0, 1.0, 1.3])
@pytest.mark.parametrize("draws", [1, 30, 3000])
def test_expected_rows_are_those_of_draws(zipf, draws):
    """Against 400 minibatches, within 5 standard errors."""
    rows, rng = 500, np.random.default_rng(0)
    weights = np.arange(1, rows + 1) ** -zipf
    seen = [len(np.unique(rng.choice(rows, draws, p=weights / weights.sum()))) for _ in range(400)]
    assert distinct(draws, rows, zipf) == pytest.approx(np.mean(seen), abs=5 * np.std(seen) / 20 + 1e-9)


@pytest.mark.parametrize("zipf", [0.0, 1.0])
def test_draws_of_different_rows_hold_so_many(zipf):
    for different in (1, 64, 499):
        assert distinct(draws_of(different, 500, zipf), 500, zipf) == pytest.approx(different)


def test_the_share_grows_with_the_batch_ever_more_slowly():
    rows = Rows(per_sample=20)
    shares = [rows.share(10_000, batch) for batch in (1, 2, 4, 8, 16, 1024)]
    growth = np.diff(shares[:5]) / [1, 2, 4, 8]
    assert shares[0] == pytest.approx(20 / 10_000, rel=0.2)
    assert (np.diff(growth) < 0).all()
    assert shares[-1] < 1
    assert rows.share(10_000, 8) == pytest.approx(rows.share(10_000, 1, minibatches=8))


def test_parts_are_touched_alike():
    words = Variable(name="words", shape=(10_000, 8), rows=Rows(per_sample=20, per_minibatch=100))
    whole, parts = words.load(32).rows, [words.part(i, 2500).load(32).rows for i in range(4)]
    assert sum(parts) == pytest.approx(whole, abs=4)
    assert words.part(0, 2500).part(0, 1250).load(32).rows == pytest.approx(parts[0] / 2, abs=1)


def test_lm1b_has_its_known_shape():
    """813.3 M sparse and 9.45 M dense parameters; rows touched at most 0.32 % and 1.36 % (Parallax's code)."""
    lm1b = workload.read("lm1b")
    sparse = [v for v in lm1b.variables if v.rows]
    assert sum(v.size for v in sparse) == pytest.approx(813.3e6, rel=1e-4)
    assert lm1b.parameters - sum(v.size for v in sparse) == pytest.approx(9.45e6, rel=1e-3)
    embedding, softmax, _ = (v.load(lm1b.batch).rows / 793_470 for v in sparse)
    assert 0.001 < embedding < 0.0032
    assert 8192 / 793_470 < softmax < 0.0136


# ---- refusals


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: job("hybrid", "algorithm=rings"), "halving-doubling"),
        (lambda: job("hybrid", test_size=5), "no rank has all parameters"),
        (lambda: job("hybrid", servers=2), "--variable-partitions"),
        (lambda: job("hybrid", workers=0, hosts=[Host()]), "--workers"),
    ],
)
def test_wrong_settings(make, said):
    with pytest.raises(WrongSetting, match=said):
        make()


@pytest.mark.parametrize("given", [{}, {"fraction": 0.5, "per_sample": 1}, {"fraction": 0}, {"per_sample": -1}])
def test_rows_are_drawn_or_given(given):
    with pytest.raises(WrongSetting, match=r"^Rows: "):
        Rows(**given)


def test_candidates_are_fewer_than_rows():
    with pytest.raises(WrongSetting, match="per_minibatch must be below"):
        Variable(name="softmax", shape=(10, 2), rows=Rows(per_minibatch=10))
