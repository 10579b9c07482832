"""Gradients that travel while others compute: over MPI they leave what the simulator does, where texts fix it.

When gradients are ready is the engine's business, so that Horovod's number of fused buffers and the waits differ from run to run.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from alike import ends_alike, record, trained
from alike import simulated as alike_of

from sim import protocols
from sim.job.scenario import Scenario
from sim.model import workload
from sim.platform.cluster import Cluster, Host
from sim.recording.traces import NOBODY, Trace, read

pytestmark = pytest.mark.mpi
STEPS, WARMUP, BATCH = 3, 1, 16
ROUNDS = STEPS + WARMUP
CLOSE = {"atol": 1e-6, "rtol": ROUNDS * 2.0**-23}  # as in test_real_hybrid
REQUEST_BYTES = 20  # of a control message, at most: an item for each of four gradients
WORKERS = (2, 3, 4)
RING = ["algorithm=ring"]
# Of small buffers, and of gradients that a simulation has ready at the end.
SMALL = [
    (2, [*RING, "order=end"]),
    (3, ["algorithm=tree", "order=end", "fusion_bytes=5000"]),
    (4, ["algorithm=halving-doubling", "order=end", "fusion_bytes=0"]),
]
OVERLAPPED = [(workers, RING) for workers in WORKERS] + [(3, [*RING, "fusion_bytes=0", "order=uniform"])]
# Workers, servers, and parts of each variable.
SERVED = [(1, 1, 1), (2, 1, 1), (2, 2, 1), (2, 2, 3), (1, 3, 1)]


def settled(trace: Trace, fuses: bool) -> Counter:
    """The record of a run whose messages travel while ranks compute, without the parts that depend on timing.

    These parts are waits, and the pieces into which they cut a rank's computing: its samples count once a step.

    Args:
        fuses: whether ranks sum whatever is ready. Messages, sums and copies are then cut by time too, and left out.
    """
    by_time = ("wait", "compute", *(("send", "receive", "reduce", "pack") if fuses else ()))
    rows = trace.rows
    computed = rows[rows["activity"] == "compute"].groupby(["rank", "step"])["samples"].sum()
    left = record(Trace(trace.header, rows[~rows["activity"].isin(by_time)]))
    return left + Counter((rank, step, "compute", samples, 0, NOBODY) for (rank, step), samples in computed.items())


def of(name: str, *cell) -> str:
    return "-".join([name, *map(str, cell)]).replace("=", "_").replace("'", "")


def cells() -> dict[str, list]:
    """Options of real.run by name."""
    job = f"--engine numpy --steps {STEPS} --warmup {WARMUP} --optimiser sgd --stragglers niagara*0.002".split()
    dense = [*job, "--batch", BATCH, "--workload", "mlp", "--test-size", 10, "--evaluate-every", 2]
    found = {of("dense", w): ["--protocol", "allreduce", "--workers", w, *dense] for w in (1, *WORKERS)}
    for workers, settings in SMALL + OVERLAPPED + [(2, [])]:
        asked = [f"--set={setting}" for setting in settings]
        horovod = ["--protocol", "horovod", "--runtime", "mpi", "--workers", workers]
        found[of("horovod", workers, settings)] = [*horovod, *asked, *dense]
    for cell in SERVED:
        workers, servers, parts = cell
        asked = ["--workers", workers, "--servers", servers, "--variable-partitions", parts]
        served = dense if servers == 1 else dense[:-4]  # several cannot evaluate
        found[of("served", *cell)] = ["--protocol", "ps-layers", *asked, *served]
    return found


@pytest.fixture(scope="module")
def folder(campaign):
    """With traces and parameters of runs in one launch, by name."""
    return campaign(cells(), parameters=True)


def simulated(protocol: str, settings, workers: int, **sizes):
    """The same run on one host, simulated."""
    from sim import stragglers

    here, luck = Cluster(hosts=[Host(slots=8)]), stragglers.read("niagara*0.002")
    job = {"steps": STEPS, "warmup": WARMUP, "batch": BATCH, "test_size": 10, "evaluate_every": 2} | sizes
    made = protocols.make(protocol, settings)
    return alike_of(Scenario(made, workload.read("mlp"), workers, cluster=here, stragglers=luck, **job))


# ---- Horovod


@pytest.mark.parametrize(("workers", "settings"), SMALL + OVERLAPPED + [(2, [])], ids=str)
def test_horovod_ends_where_an_allreduce_does(folder, workers, settings):
    name = of("horovod", workers, settings)
    assert ends_alike(read(folder / f"{name}.parquet"))
    np.testing.assert_allclose(trained(folder, name), trained(folder, of("dense", workers)), **CLOSE)


@pytest.mark.parametrize("world", ["mpi", "event"])
@pytest.mark.parametrize(("workers", "settings"), OVERLAPPED, ids=str)
def test_every_gradient_is_summed_once_a_step(folder, workers, settings, world):
    """However they are fused: so many bytes travel and are added in rings. What happens besides is the simulated record."""
    alike = simulated("horovod", settings, workers)
    trace = read(folder / f"{of('horovod', workers, settings)}.parquet") if world == "mpi" else alike
    assert settled(trace, fuses=True) == settled(alike, fuses=True)
    rows, items = trace.rows, workload.read("mlp").parameters
    for activity, times in {"send": 2 * (workers - 1), "receive": 2 * (workers - 1), "reduce": workers - 1}.items():
        moved = rows[rows["activity"] == activity].groupby("step")["bytes"].sum()
        control = moved - 4 * items * times  # bytes of agreements
        assert list(moved.index) == list(range(ROUNDS))
        assert control.min() >= 0
        assert control.max() <= (0 if activity == "reduce" else 4 * 2 * workers * REQUEST_BYTES)


# ---- variables one by one to servers


@pytest.mark.parametrize("cell", SERVED, ids=str)
def test_servers_of_variables_end_where_an_allreduce_does(folder, cell):
    np.testing.assert_allclose(trained(folder, of("served", *cell)), trained(folder, of("dense", cell[0])), **CLOSE)


@pytest.mark.parametrize("cell", SERVED, ids=str)
def test_what_variables_leave_is_the_simulated_record(folder, cell):
    """But for waits, which cut computing in pieces."""
    workers, servers, parts = cell
    sizes = {"servers": servers, "variable_partitions": parts} | ({} if servers == 1 else {"test_size": 0})
    alike = simulated("ps-layers", [], workers, **sizes)
    real = read(folder / f"{of('served', *cell)}.parquet")
    assert settled(summed(real), fuses=False) == settled(summed(alike), fuses=False)


def summed(trace) -> Trace:
    """Without what depends on when: steps of texts beside the main one, samples of their sums, and weights, the last of which come late."""
    rows, head = trace.rows, trace.header
    last = rows["activity"].isin(["send", "receive", "update"]) & (
        (rows["rank"] < head.servers) == (rows["activity"] == "send")
    )
    rows = rows[~last]
    return Trace(head, rows.assign(step=0, samples=rows["samples"].where(rows["activity"] != "reduce", 0)))
