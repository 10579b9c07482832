"""The hybrid for real: it trains as an allreduce does, leaves the simulated record, and mixes what it says it mixes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from alike import ends_alike, record, simulated, trained

from real.data import Batches, data_for
from sim import protocols
from sim.job.scenario import Scenario
from sim.model import workload
from sim.model.sizes import HEADER_BYTES, ITEM_BYTES
from sim.platform.cluster import Cluster, Host
from sim.recording.traces import Trace, read

pytestmark = [pytest.mark.mpi, pytest.mark.tensorflow]
WORDS, WIDTH, UNITS, LENGTH = 60, 6, 5, 4  # of a language model that is small enough to be traced in a moment
SIZES = {
    "embedding": (WORDS, WIDTH),
    "lstm/kernel": (WIDTH + UNITS, 4 * UNITS),
    "lstm/bias": (4 * UNITS,),
    "softmax/kernel": (UNITS, WORDS),
    "softmax/bias": (WORDS,),
}
EMBEDDING_BYTES, ROW_BYTES = 4 * WORDS * WIDTH, 4 + 4 * WIDTH
STEPS, WARMUP, BATCH = 6, 2, 8  # in all, and of these before measuring
GATHERED = (1, 2, 3)  # workers
MLP = ["--workload", "mlp", "--batch", 16, "--test-size", 10, "--evaluate-every", 2]
# Sums in another order, at most 1e-6 apart as of the libraries' tests; and each update rounds the parameters, in both runs.
CLOSE = {"atol": 1e-6, "rtol": STEPS * 2.0**-23}
# Workers, servers, parts of the embedding, and whether hosts aggregate.
HYBRIDS = [(1, 1, 1, True), (2, 1, 3, False), (2, 2, 2, False), (2, 2, 5, True), (3, 1, 3, True)]


def model(words: int = WORDS, length: int = LENGTH) -> str:
    """The language model of the zoo with other sizes, as a TOML file."""
    shapes = {**SIZES, "embedding": (words, WIDTH), "softmax/kernel": (UNITS, words), "softmax/bias": (words,)}
    variables = [
        f'[[variables]]\nname = "{name}"\nshape = {list(shape)}\n'
        + (f"rows = {{ per_sample = {length} }}\n" if name == "embedding" else "")
        for name, shape in shapes.items()
    ]
    head = f'name = "lstm_lm"\ninputs = "words"\nsample_shape = [{length}]\nclasses = {words}\n'
    return head + "flops_per_sample = 1e3\n" + "".join(variables)


def options(workers: int, servers: int, parts: int, aggregates: bool) -> list:
    return [
        *("--protocol", "hybrid", "--workers", workers, "--servers", servers, "--variable-partitions", parts),
        *("--set", f"local_aggregation={aggregates}"),
    ]


def of(cell) -> str:
    return "-".join(map(str, cell))


@pytest.fixture(scope="module")
def folder(tmp_path_factory, campaign):
    """With parameters and traces of runs in one launch, and their models: `all`, of which every minibatch reads every word, and `few`."""
    folder = tmp_path_factory.mktemp("hybrid")
    (folder / "few.toml").write_text(model())
    (folder / "all.toml").write_text(model(words=4, length=8))
    job = ["--steps", STEPS - WARMUP, "--warmup", WARMUP, "--stragglers", "niagara*0.002", "--optimiser", "sgd"]
    few = [*job, "--workload", folder / "few.toml", "--batch", BATCH]
    cells = {f"allreduce-{w}": ["--protocol", "allreduce", "--workers", w, *few] for w in (1, 2, 3)}
    cells |= {f"few-{of(cell)}": [*options(*cell), *few] for cell in HYBRIDS}
    cells |= {
        f"all-{of(cell)}": [*options(*cell), *job, "--workload", folder / "all.toml", "--batch", 64] for cell in HYBRIDS
    }
    cells["a step more"] = [*options(2, 2, 5, True), "--steps", STEPS - WARMUP + 1, *few[2:]]
    cells["auto"] = [*options(2, 2, 5, True), *few, "--set", "algorithm=auto"]
    for name in ("hybrid", "allreduce"):
        plain = ["--protocol", name, "--workers", 2, *job]
        cells[f"dense {name}"] = [*plain, *MLP]
        cells[f"sparse {name}"] = [*plain, "--workload", "bigram"]
    cells["sparse hybrid"] += ["--set", "local_aggregation=False"]
    rows = ["--set", "sparse_as_dense=false", "--test-size", 8, "--evaluate-every", 2]
    for workers in GATHERED:
        gathered = ["--protocol", "allreduce", "--workers", workers, "--set", "algorithm=ring", *rows]
        cells[f"gathered few-{workers}"] = [*gathered, *few]
        cells[f"gathered all-{workers}"] = [*gathered, *job, "--workload", folder / "all.toml", "--batch", 64]
    cells["sparse gathered"] = [*cells["sparse allreduce"], *rows[:2]]
    return campaign(cells, parameters=True, folder=folder)


# ---- parameters


@pytest.mark.parametrize("cell", HYBRIDS, ids=of)
def test_it_ends_where_an_allreduce_of_everything_does(folder, cell):
    """Rows that no minibatch has touched for a while included: the weight decay that they missed is made up for."""
    expected = trained(folder, f"allreduce-{cell[0]}")
    np.testing.assert_allclose(trained(folder, f"few-{of(cell)}"), expected, **CLOSE)


def test_the_algorithm_that_open_mpi_takes_sums_the_same(folder):
    np.testing.assert_allclose(trained(folder, "auto"), trained(folder, "allreduce-2"), **CLOSE)


def test_the_tolerance_would_see_a_step_too_many(folder):
    more = np.abs(trained(folder, "a step more") - trained(folder, "allreduce-2"))
    embedding, dense = np.split(more, [WORDS * WIDTH])
    assert embedding.max() > 100 * CLOSE["atol"]
    assert dense.max() > 100 * CLOSE["atol"]


def test_without_sparse_variables_there_are_no_servers(folder):
    """Two ranks, both workers, as with an allreduce."""
    trace = read(folder / "dense hybrid.parquet")
    assert (trace.header.ranks, trace.header.servers) == (2, 0)
    assert ends_alike(trace)
    np.testing.assert_allclose(trained(folder, "dense hybrid"), trained(folder, "dense allreduce"), **CLOSE)


def test_without_dense_variables_servers_have_all(folder):
    held = read(folder / "sparse hybrid.parquet").header.details["parameters_crc32"]
    assert [bool(one) for one in held] == [True, False, False]
    np.testing.assert_allclose(trained(folder, "sparse hybrid"), trained(folder, "sparse allreduce"), **CLOSE)


# ---- records


def of_run(file, cell=(2, 1, 1, True), **sizes) -> Scenario:
    """Of a run on one host."""
    from sim import stragglers

    workers, servers, parts, aggregates = cell
    protocol = protocols.make("hybrid", [f"local_aggregation={aggregates}"])
    luck = {"steps": STEPS - WARMUP, "warmup": WARMUP, "stragglers": stragglers.read("niagara*0.002")}
    here = Cluster(hosts=[Host(slots=8)])
    placing = {"servers": servers, "variable_partitions": parts, "cluster": here}
    return Scenario(protocol, workload.read(str(file)), workers, **luck, **placing, **sizes)


@pytest.mark.parametrize("cell", HYBRIDS, ids=of)
def test_the_record_is_the_simulated_one(folder, cell):
    """Of a model of few words: every minibatch reads all of them, so that rows are certain, bytes and all."""
    real = read(folder / f"all-{of(cell)}.parquet")
    alike = simulated(of_run(folder / "all.toml", cell, batch=64))
    assert structure(real) == structure(alike)


def test_without_sparse_variables_the_record_is_the_simulated_one(folder):
    alike = simulated(of_run("mlp", batch=16, test_size=10, evaluate_every=2))
    assert record(read(folder / "dense hybrid.parquet")) == record(alike)


@pytest.mark.parametrize("cell", HYBRIDS, ids=of)
def test_bytes_are_those_of_the_rows_that_minibatches_read(folder, cell):
    """Of a model of more words: all but bytes is the simulated record, and bytes follow from the data."""
    real = read(folder / f"few-{of(cell)}.parquet")
    scenario = of_run(folder / "few.toml", cell, batch=BATCH)
    assert structure(real, bytes=0) == structure(simulated(scenario), bytes=0)
    workers, servers, parts, aggregates = cell
    data = data_for(scenario.workload, None, 0)
    batches = [Batches(data, BATCH, 0, 0, worker + 1) for worker in range(workers)]
    rows = real.rows
    for step in range(STEPS):
        read_by = [set(next(batch)[0].astype(int).ravel()) for batch in batches]
        added = [set.union(*read_by)] if aggregates else read_by
        here = rows[rows["step"] == step]
        packed = here[here["activity"] == "pack"].sort_values("rank")["bytes"]
        assert list(packed) == [scenario.workload.message_bytes - EMBEDDING_BYTES + ROW_BYTES * len(w) for w in read_by]
        for server in range(servers):
            mine = here[here["rank"] == server]
            held = [part for part in range(parts) if part % servers == server]

            def sizes(kind, several, held=held):
                # Of a row: its number, its numbers, both.
                each = {"request": 1, "answer": WIDTH, "gradient": 1 + WIDTH}[kind]
                counts = [sum(word % parts == part for word in words) for words in several for part in held]
                return sorted(HEADER_BYTES + ITEM_BYTES * each * count for count in counts)

            word_of_end = [HEADER_BYTES] * len(added)  # to those who have sent
            assert sorted(mine["bytes"][mine["activity"] == "send"]) == sorted(sizes("answer", read_by) + word_of_end)
            assert sorted(mine["bytes"][mine["activity"] == "reduce"]) == sizes("gradient", added)
            came = sorted(mine["bytes"][mine["activity"] == "receive"])
            assert came == sorted(sizes("request", read_by) + sizes("gradient", added))
            assert sorted(mine["bytes"][mine["activity"] == "update"]) == sizes("answer", [set.union(*read_by)])


def structure(trace, **columns) -> Counter:
    """The record of texts side by side, with other columns: without waits, and whose samples a sum has of several parts."""
    rows = trace.rows[trace.rows["activity"] != "wait"]
    rows = rows.assign(samples=rows["samples"].where(rows["activity"] != "reduce", 0))
    return record(Trace(trace.header, rows.assign(**columns)))


def test_without_dense_variables_workers_talk_to_servers_alone(folder):
    rows = read(folder / "sparse hybrid.parquet").rows
    assert set(rows["peer"][(rows["rank"] > 0) & rows["activity"].isin(["send", "receive"])]) == {0}


# ---- rows that all workers gather


@pytest.mark.parametrize("name", [*(f"gathered few-{workers}" for workers in GATHERED), "sparse gathered"])
def test_gathered_rows_end_where_dense_sums_do(folder, name):
    dense = "sparse allreduce" if name == "sparse gathered" else f"allreduce-{name[-1]}"
    assert ends_alike(read(folder / f"{name}.parquet"))
    np.testing.assert_allclose(trained(folder, name), trained(folder, dense), **CLOSE)


@pytest.mark.parametrize("workers", GATHERED)
def test_what_gathering_leaves_is_the_simulated_record(folder, workers):
    protocol = protocols.make("allreduce", ["algorithm=ring", "sparse_as_dense=false"])
    hybrid = of_run(folder / "all.toml", (workers, 1, 1, True), batch=64)
    alike = replace(hybrid, protocol=protocol, test_size=8, evaluate_every=2)
    assert record(read(folder / f"gathered all-{workers}.parquet")) == record(simulated(alike))
