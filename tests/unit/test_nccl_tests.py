"""Texts of nccl-tests (calibration.fit --from nccl-tests): a planted link and algorithm are found, and simulated as they were measured."""

import gzip
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from nccl_texts import text

from calibration import fit, nccl_links
from calibration.importers import nccl_tests
from calibration.profiles import FREE
from sim import protocols
from sim.answers.sources import known_by_name
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.model import workload
from sim.model.costs import Costs
from sim.platform import catalogue, other_sizes
from sim.platform.cluster import ASSUMED, Link
from sim.simulation import simulate

LATENCY_S, BANDWIDTH = 10e-6, 12e9


def ring(ranks: int):
    """Patarasuk and Yuan (2009), and the sums: an A100 adds three accesses of its memory for each byte."""
    return lambda size: (ranks - 1) * (2 * LATENCY_S + size / ranks * (2 / BANDWIDTH + 3 / 1555e9))


def tree(ranks: int):
    return lambda size: 2 * math.ceil(math.log2(ranks)) * (LATENCY_S + size / BANDWIDTH)


def fitted(tmp_path, printed: str, ranks: int | None = None):
    path = tmp_path / "t.txt"
    path.write_text(printed)
    return nccl_links.profile([str(path)], "tested", ranks)


@pytest.mark.parametrize(("ranks", "hosts"), [(2, 2), (4, 4), (8, 1), (16, 2)])
def test_a_ring_that_was_planted_is_found(tmp_path, ranks, hosts):
    found = fitted(tmp_path, text(ring(ranks), ranks, hosts))
    link = found.network if hosts > 1 else found.local
    assert (link.latency_s, link.bandwidth_bytes_per_s) == pytest.approx((LATENCY_S, BANDWIDTH), rel=0.01)
    assert "algorithm=ring" in found.provenance.notes[1]
    assert (found.provenance.workers, found.provenance.hosts) == (ranks, hosts)
    assert (sum(h.count for h in found.hosts), found.hosts[0].gpus) == (hosts, ranks // hosts)
    assert found.hosts[0].gpu.name == "A100"


@pytest.mark.parametrize("seconds", [ring, tree])
@pytest.mark.parametrize("hosts", [8, 1])
def test_the_simulator_takes_what_was_measured(tmp_path, seconds, hosts):
    """Of gradients of a size that was not tested. With one number of ranks a tree is as good as a ring on another link."""
    found = fitted(tmp_path, text(seconds(8), 8, hosts))
    assert "algorithm=ring" in found.provenance.notes[1]
    free = workload.read("mlp").model_copy(update={"costs": Costs()})
    job = Scenario(protocols.make("allreduce", ["algorithm=ring"]), free, 8, 3, 1, cluster=found)
    assert simulate(job, replications=1).step_s.mean() == pytest.approx(seconds(8)(free.message_bytes), rel=0.02)


@pytest.mark.parametrize("starting", [True, False])
@pytest.mark.parametrize(
    ("collective", "seconds"),
    [
        ("all_gather", lambda size: 3 * (LATENCY_S + size / 4 / BANDWIDTH)),
        ("broadcast", lambda size: 3 * LATENCY_S + size / BANDWIDTH),
    ],
)
def test_other_collectives_are_known_by_their_bandwidths(tmp_path, collective, seconds, starting):
    found = fitted(tmp_path, text(seconds, collective=collective, starting=starting))
    assert found.provenance.notes[0].startswith(f"{collective} of 4 ranks")
    assert found.network.bandwidth_bytes_per_s == pytest.approx(BANDWIDTH, rel=0.01)


def test_small_messages_tell_little_of_the_bandwidth(tmp_path):
    small = fitted(tmp_path, text(ring(4), sizes=[8 * 2**power for power in range(12)]))
    assert any("hardly known" in note for note in small.provenance.notes)
    assert not any("hardly known" in note for note in fitted(tmp_path, WHOLE).provenance.notes)


def test_noise_moves_the_link_little(tmp_path):
    rng = np.random.default_rng(0)
    found = fitted(tmp_path, text(lambda size: ring(8)(size) * rng.lognormal(0, 0.05), 8, 8))
    assert found.network.bandwidth_bytes_per_s == pytest.approx(BANDWIDTH, rel=0.06)
    assert "off by 0.0%" not in found.provenance.notes[0]


# What a test measures, and what it does not


def stepped(found, workers, **more):
    """A job whose step was measured and whose gradients are 400 MB."""
    mine = workload.Workload(name="mine", parameters="100 M", layers=1, step={"time": "1 ms", "batch": 1})
    return Scenario(protocols.make("allreduce", ["algorithm=ring"]), mine, workers, 3, 1, cluster=found, **more)


@pytest.mark.parametrize(
    ("ranks", "hosts", "device", "inner"),
    [
        (2, 2, "NVIDIA A100-SXM4-40GB", "NVLink 3"),
        (4, 4, "Tesla V100-SXM2-16GB", "NVLink 2"),
        (2, 2, "AMD Instinct MI250X", None),
    ],
)
def test_tests_between_hosts_say_nothing_of_the_link_within(tmp_path, ranks, hosts, device, inner):
    found = fitted(tmp_path, text(ring(ranks), ranks, hosts, device=device))
    assert found.local == (catalogue.find("links", inner) if inner else FREE)
    assert (found.provenance.links_measured, found.provenance.local_measured) == (True, False)
    said = f"{inner}, by the GPU's name" if inner else "free"
    assert f"the link within hosts was not measured: taken as {said}" in found.provenance.notes


def test_several_ranks_of_hosts_bound_the_link_within_and_another_network_is_faster(tmp_path):
    found = fitted(tmp_path, text(ring(16), 16, 2))
    assert found.local.bandwidth_bytes_per_s == catalogue.find("links", "NVLink 3").bandwidth_bytes_per_s
    assert found.local.latency_s + 2 * found.local.overhead_s <= found.network.latency_s
    faster = found.model_copy(update={"network": Link(latency_s=0.0, overhead_s=0.0, bandwidth_bytes_per_s=100e9)})
    slow, fast = (simulate(stepped(one, 16), replications=1).step_s.mean() for one in (found, faster))
    assert fast < slow / 3


def test_tests_within_a_host_say_nothing_of_the_network(tmp_path):
    found = fitted(tmp_path, text(ring(8), 8, 1))
    assert found.network == ASSUMED
    assert (found.provenance.links_measured, found.provenance.local_measured) == (False, True)
    assert any("the link between hosts was not measured" in note for note in found.provenance.notes)
    assert not any(known_by_name(stepped(found, 8)))
    wide = other_sizes.on_hosts(found, 2)
    assert known_by_name(stepped(wide, 16))[0]


def test_tests_of_both_tell_both_links(tmp_path):
    def inside(size: float) -> float:
        return 3 * (2 * LATENCY_S / 5 + size / 4 * (2 / (10 * BANDWIDTH) + 3 / 1555e9))

    paths = [tmp_path / "one.txt", tmp_path / "two.txt"]
    for path, printed in zip(paths, (text(inside, 4, 1), text(ring(8), 8, 2)), strict=True):
        path.write_text(printed)
    found = nccl_links.profile([str(path) for path in paths], "tested")
    assert found.network.bandwidth_bytes_per_s == pytest.approx(BANDWIDTH, rel=0.02)
    assert found.local.bandwidth_bytes_per_s == pytest.approx(10 * BANDWIDTH, rel=0.02)
    assert (found.provenance.links_measured, found.provenance.local_measured) == (True, True)
    assert not any("was not measured" in note for note in found.provenance.notes)


def test_measured_links_are_no_links_by_name_up_to_the_hosts_that_were_tested(tmp_path):
    found = fitted(tmp_path, text(ring(4), 4, 4))
    known = simulate(stepped(found, 4), replications=2)
    assert not any(known_by_name(known.scenario))
    assert known.samples_per_s / known.interval[0] < 1.25
    wider = simulate(stepped(other_sizes.on_hosts(found, 16), 16), replications=2)
    assert not any(known_by_name(wider.scenario))
    assert known.samples_per_s / known.interval[0] < wider.samples_per_s / wider.interval[0] < 3
    another = other_sizes.on_network(found, "100 Gbit/s, 20 us")
    assert any(known_by_name(stepped(another, 4)))


@pytest.mark.parametrize("device", ["NVIDIA A100-SXM4-40GB", "AMD Instinct MI250X"])
def test_sums_are_in_the_times_and_are_not_charged_again(tmp_path, device):
    """Neither by the rate of a GPU's memory that is known, nor by one that is guessed."""
    fast = {"latency": 2e-6, "bandwidth": 250e9}

    def seconds(size: float) -> float:
        return 2 * 7 * (fast["latency"] + size / 8 / fast["bandwidth"])

    found = fitted(tmp_path, text(seconds, 8, 1, device=device))
    free = workload.Workload(name="free", parameters="100 M", layers=1, step={"time": "1 us", "batch": 1})
    job = Scenario(protocols.make("allreduce", ["algorithm=ring"]), free, 8, 3, 1, cluster=found)
    summed_s = simulate(job, replications=1).step_s.mean() - job.costs.pack(free.message_bytes)
    assert summed_s == pytest.approx(seconds(free.message_bytes), rel=0.03)


def test_a_link_that_fits_badly_widens_the_interval(tmp_path):
    def bad(size: float) -> float:
        return ring(4)(size) * (1.6 if math.log2(size) % 2 < 1 else 0.7)

    poor, good = (simulate(stepped(fitted(tmp_path, text(one, 4, 4)), 4), replications=2) for one in (bad, ring(4)))
    widths = [math.log(one.samples_per_s / one.interval[0]) for one in (poor, good)]
    assert widths[0] > 2 * widths[1]


WHOLE = text(ring(4))
ROWS = [line for line in WHOLE.splitlines() if not line.startswith("#")]


def changed(row: str, line: int = 15) -> str:
    return WHOLE.replace(ROWS[line], row)


def test_a_text_without_its_end_is_fitted_and_says_so(tmp_path):
    found = fitted(tmp_path, WHOLE[: WHOLE.index(ROWS[-1])])
    assert any("no end" in note for note in found.provenance.notes)


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("", "no heading"),
        ("[" * 200_000, "no heading"),  # one line, long beyond any test's: its search would take minutes
        (WHOLE[: WHOLE.index(ROWS[0])], "sizes"),
        (WHOLE[: WHOLE.index(ROWS[1]) + 40], "algbw"),
        (WHOLE.replace("  Rank  3 ", "  Rank  7 "), "each of them"),
        (changed(ROWS[15].replace(ROWS[15].split()[5], "nan")), "above 0"),
        (changed(ROWS[15].replace(ROWS[15].split()[5], "0.00")), "above 0"),
        (changed(ROWS[15].replace(ROWS[15].split()[5], "9999.99")), "algbw"),
        (WHOLE.replace("# Using", "# Collective test starting: gather_perf\n# Using"), "gather"),
        (WHOLE.replace("sum ", "sum sum "), "rows"),
        (text(lambda size: 1e-4), "no link fits"),
    ],
)
def test_what_is_no_such_text_is_one_line(tmp_path, printed, said, here):
    path, profile = tmp_path / "t.txt", tmp_path / "p.toml"
    path.write_text(printed)
    done = here("calibration.fit", path, "--from", "nccl-tests", "-o", profile)
    assert (done.returncode, done.stdout, profile.exists()) == (1 if "fits" in said else 2, "", False)
    assert done.stderr.count("\n") == 1
    assert said in done.stderr


def each_line(change):
    return "\n".join(change(line) for line in WHOLE.splitlines())


def between(line: str) -> str:
    """The line after every row."""
    return "\n".join(f"{one}\n{line}" if one in ROWS else one for one in WHOLE.splitlines())


INFO = "node0:2748:2801 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM"
STAMP = "2026-11-26T05:00:00.123456789Z"
LOGGED = {
    "mpirun --tag-output": each_line("[1,0]<stdout>:{}".format),
    "prterun --tag-output": each_line("[prterun-node0-17@1,0]<stdout>: {}".format),
    "srun -l": each_line("0: {}".format),
    "srun -l of many": each_line(" 00: {}".format),
    "mpiexec -prepend-rank": each_line("[0] {}".format),
    "torchrun": each_line("[default0]:{}".format),
    "kubectl --timestamps": each_line(f"{STAMP} {{}}".format),
    "kubectl --prefix": each_line("[pod/launcher-xk2/mpi] {}".format),
    "docker compose": each_line("launcher-1  | {}".format),
    "a container's JSON": each_line(lambda line: json.dumps({"log": line + "\n", "stream": "stdout", "time": STAMP})),
    "a time of day": each_line("2026-11-26 05:00:00,123 INFO {}".format),
    "colours": each_line("\x1b[36m0:\x1b[0m {}".format),
    "Windows' ends": each_line("{}\r".format),
    "stripped": each_line(str.strip),
    "rows in another order": WHOLE.replace("\n".join(ROWS), "\n".join(ROWS[::-1])),
    "NCCL_DEBUG=INFO": between(INFO),
    "NCCL_DEBUG=INFO, tagged": each_line("[1,0]<stdout>:{}".format) + f"\n[1,1]<stderr>:{INFO}\n[1,1]<stdout>:{INFO}",
    "a launcher's end": WHOLE + "srun: job 1 finished\nreal 0m3.2s\n10 20 things\n",
    "a command before it": "+ mpirun -np 4 ./build/all_reduce_perf -b 8 -e 128M -f 2 -g 1\n" + WHOLE,
    "the same again": WHOLE + WHOLE,
    "another collective beside it": WHOLE + text(lambda size: 1e-5 + size / 1e9, collective="broadcast", starting=True),
    "one that is not known": WHOLE + WHOLE.replace("# Using", "# Collective test starting: gather_perf\n# Using"),
    "ranks by NCCL's lines": "\n".join(
        [line for line in WHOLE.splitlines() if "Rank" not in line]
        + [
            f"node{rank}:5:7 [{rank}] NCCL INFO comm 0x1 rank {rank} nranks 4 cudaDev 0 - Init COMPLETE"
            for rank in range(4)
        ]
    ),
}


@pytest.mark.parametrize("logged", LOGGED)
def test_what_launchers_and_libraries_add_to_a_text_changes_nothing(tmp_path, logged):
    plain, found = fitted(tmp_path, WHOLE), fitted(tmp_path, LOGGED[logged])
    assert [host.count for host in found.hosts] == [host.count for host in plain.hosts]
    assert found.network.latency_s == pytest.approx(plain.network.latency_s)
    sums = 0.0 if found.hosts[0].gpu else 3 / 1555e9 / 2  # are part of the link where nothing says the GPU
    known = 1 / (1 / plain.network.bandwidth_bytes_per_s + sums)
    assert found.network.bandwidth_bytes_per_s == pytest.approx(known, rel=0.01)
    assert not any("no end" in note or "rows left" in note for note in found.provenance.notes)


@pytest.mark.parametrize("launched", ["{}", "{rank}: {}"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_programs_that_each_tested_alone_are_no_test_of_both(tmp_path, launched, ranks):
    """As nccl-tests that were built without MPI print under a launcher: the ranks of each begin at 0."""
    north, south = (
        [
            launched.format(line.replace("node0", host).replace("Pid   27", f"Pid   {pid}"), rank=number)
            for line in text(lambda size: 1e-5 + size / 1e9, ranks, 1).splitlines()
        ]
        for number, (host, pid) in enumerate((("north", 31), ("south", 42)))
    )
    mixed = "\n".join(line for both in zip(north, south, strict=True) for line in both)
    with pytest.raises(WrongSetting, match=r"rank 0: given 'listed 2 times, on north and south'.*MPI=1"):
        fitted(tmp_path, mixed)


def calls(bandwidths, each: int = 8, base_s: float = 2e-5):
    """Texts of hosts, where bus bandwidth is so many bytes a second on so many, and small messages take rounds of trees."""

    def of(hosts: int, bandwidth: float):
        ranks = hosts * each
        return lambda size: base_s + 2e-5 * math.log2(hosts) + 2 * (ranks - 1) / ranks * size / bandwidth

    sizes = tuple(2**power for power in range(12, 31, 2))
    return {
        hosts: text(of(hosts, bandwidth), hosts * each, hosts, device="NVIDIA H100 80GB HBM3", sizes=sizes)
        for hosts, bandwidth in bandwidths.items()
    }


def off(tmp_path, fitted_on: dict[int, str], asked: dict[int, str]) -> tuple[list[float], tuple[str, ...]]:
    """Simulated over measured, less 1, of the rows of other texts; and the notes of the profile."""
    paths = [tmp_path / f"{hosts}.txt" for hosts in (*fitted_on, *asked)]
    for path, one in zip(paths, (*fitted_on.values(), *asked.values()), strict=True):
        path.write_text(one)
    made = nccl_links.profile([str(path) for path in paths[: len(fitted_on)]], "tested")
    rows = []
    for path in paths[len(fitted_on) :]:
        (test,) = nccl_tests.read(path)
        measured_s, found_s = nccl_links.seconds_of(made, test, nccl_links.sum_s_per_byte(test))
        rows += (found_s / measured_s - 1).tolist()
    return rows, made.provenance.notes


@pytest.mark.slow
def test_a_bus_bandwidth_that_tests_show_as_constant_stays_so(tmp_path):
    texts = calls(dict.fromkeys((1, 2, 4, 8, 32), 90e9))
    beyond, notes = off(tmp_path, {hosts: texts[hosts] for hosts in (1, 2, 4, 8)}, {32: texts[32]})
    assert max(map(abs, beyond)) < 0.05
    assert any("rounds of trees" in note for note in notes)


@pytest.mark.slow
def test_a_profile_meets_the_texts_that_it_was_fitted_on(tmp_path):
    """Bandwidth falls with hosts."""
    texts = calls({2: 100e9, 3: 70e9, 4: 62e9, 5: 58e9}, base_s=0.0)
    again, notes = off(tmp_path, texts, texts)
    assert max(map(abs, again)) < 0.12
    assert any("bandwidth falls with hosts" in note for note in notes)


def test_a_packed_text_is_read(tmp_path):
    path = tmp_path / "t.txt.gz"
    path.write_bytes(gzip.compress(WHOLE.encode()))
    assert nccl_links.profile([str(path)], "tested").network == fitted(tmp_path, WHOLE).network


def test_what_is_left_out_of_a_text_is_said(tmp_path):
    cut = fitted(tmp_path, WHOLE[: WHOLE.index(ROWS[20]) + 40])
    assert "1 row left out" in " ".join(cut.provenance.notes)
    mixed = fitted(tmp_path, changed(ROWS[3].replace("float", f"float {INFO}")).replace(ROWS[9], ROWS[9] + INFO))
    assert "2 rows left out" in " ".join(mixed.provenance.notes)
    assert mixed.network.bandwidth_bytes_per_s == pytest.approx(BANDWIDTH, rel=0.01)
    others = fitted(tmp_path, LOGGED["another collective beside it"])
    assert "left out: broadcast of 4 ranks, 25 rows" in others.provenance.notes


def test_several_numbers_of_ranks_in_one_log_are_several_texts(tmp_path):
    found = fitted(tmp_path, "".join(text(ring(ranks), ranks, ranks) for ranks in (2, 4, 8)))
    assert found.provenance.workers == 8
    assert "with 2 texts of other ranks" in found.provenance.notes[0]


def test_an_old_all_to_all_has_no_operation(tmp_path):
    old = text(lambda size: 3 * (LATENCY_S + size / 4 / BANDWIDTH), collective="all_gather").replace("none", "    ")
    found = fitted(tmp_path, old)
    assert found.provenance.notes[0].startswith("alltoall of 4 ranks")
    assert found.network.bandwidth_bytes_per_s == pytest.approx(BANDWIDTH, rel=0.01)


def test_the_profile_says_how_far_its_own_rows_are_off(tmp_path):
    exact = fitted(tmp_path, WHOLE).provenance.notes[-1]
    assert exact.startswith("simulated with the profile, 5 of the rows are off by ")
    slow = text(lambda size: ring(4)(size) * (2.0 if size > 2**26 else 1.0))
    assert "%" in fitted(tmp_path, slow).provenance.notes[-1] != exact


def test_ranks_that_are_not_listed_are_asked_for(tmp_path):
    bare = "\n".join(line for line in WHOLE.splitlines() if "Rank" not in line)
    with pytest.raises(WrongSetting, match="--ranks"):
        fitted(tmp_path, bare)
    assert fitted(tmp_path, bare, 4).network.bandwidth_bytes_per_s == pytest.approx(BANDWIDTH, rel=0.02)
    with pytest.raises(WrongSetting, match="--ranks"):
        fitted(tmp_path, WHOLE, 5)
    with pytest.raises(WrongSetting, match="busbw"):
        fitted(tmp_path, bare, 64)
    two = nccl_links.profile([str(tmp_path / "t.txt")], "tested", 4, 2)
    assert (two.provenance.hosts, [(host.count, host.gpus) for host in two.hosts]) == (2, [(2, 2)])
    for printed, each in ((bare, 5), (bare, 0), (WHOLE, 2)):
        (tmp_path / "t.txt").write_text(printed)
        with pytest.raises(WrongSetting, match="--gpus-per-host"):
            nccl_links.profile([str(tmp_path / "t.txt")], "tested", 4, each)


def test_what_is_taken_as_sums_is_said(tmp_path):
    """Of a ring of A100s."""
    fast = fitted(tmp_path, text(lambda size: 2 * 15 * (10e-6 + size / 16 / 2e11), 16, 16))
    (said,) = (note for note in fast.provenance.notes if "taken as sums" in note)
    assert said.startswith("16% of the largest test's time")
    assert not any("taken as sums" in note for note in fitted(tmp_path, WHOLE).provenance.notes)


@pytest.mark.parametrize(("ranks", "hosts", "bandwidth"), [(8, 1, 840e9), (16, 2, 480e9), (4, 4, 5e9)])
def test_the_link_of_a_gpu_without_a_name_passes_what_the_test_passed(tmp_path, ranks, hosts, bandwidth):
    """Sums cannot be told from it, at whatever rate a memory is guessed to pass: they cost nothing besides, on the tested link alone."""

    def seconds(size: float) -> float:
        return 2 * (ranks - 1) * (2e-6 + size / ranks / bandwidth)

    found = fitted(tmp_path, text(seconds, ranks, hosts, device="NVIDIA X900"))
    link = found.network if hosts > 1 else found.local
    assert link.bandwidth_bytes_per_s == pytest.approx(bandwidth, rel=0.01)
    assert any("sums are part of the link's time" in note for note in found.provenance.notes)
    job = stepped(found, ranks)
    assert job.costs.reduce(1e9) == 0
    assert stepped(other_sizes.on_network(found, "100 Gbit/s"), ranks).costs.reduce(1e9) > 0
    served = replace(job, protocol=protocols.make("ps-sync", []), workers=ranks - 1, servers=1)
    assert served.costs.reduce(1e9) > 0


def test_a_huge_text_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(nccl_tests, "MOST_TEXT", 100)
    with pytest.raises(WrongSetting, match="at most"):
        fitted(tmp_path, WHOLE)


@pytest.mark.parametrize(
    "words", [["--link", "1 Gbit/s"], ["--probe", "p.json"], ["--batch", "3"], ["--workload", "mlp"], ["other.txt"]]
)
def test_options_that_it_has_no_use_for_are_refused(tmp_path, words):
    path = tmp_path / "t.txt"
    path.write_text(WHOLE)
    with pytest.raises(WrongSetting):
        fit.main([str(path), *words, "--from", "nccl-tests", "-o", str(tmp_path / "p.toml")])
