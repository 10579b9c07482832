"""Texts of nccl-tests (calibration.fit --from nccl-tests): a planted link and algorithm are found, and simulated as they were measured."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from nccl_texts import text

from calibration import fit, nccl_links
from calibration.importers import nccl_tests
from sim import command, protocols, simulate
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.model import workload
from sim.model.costs import Costs
from sim.platform import cluster

LATENCY_S, BANDWIDTH = 10e-6, 12e9


def ring(ranks: int):
    """Patarasuk and Yuan (2009)."""
    return lambda size: 2 * (ranks - 1) * (LATENCY_S + size / ranks / BANDWIDTH)


def tree(ranks: int):
    return lambda size: 2 * math.ceil(math.log2(ranks)) * (LATENCY_S + size / BANDWIDTH)


def fitted(tmp_path, printed: str, ranks: int | None = None):
    path = tmp_path / "t.txt"
    path.write_text(printed)
    return nccl_links.profile([str(path)], "tested", ranks)


@pytest.mark.parametrize(("ranks", "hosts"), [(2, 2), (4, 4), (8, 1), (16, 2)])
def test_a_ring_that_was_planted_is_found(tmp_path, ranks, hosts):
    found = fitted(tmp_path, text(ring(ranks), ranks, hosts))
    assert (found.network.latency_s, found.network.bandwidth_bytes_per_s) == pytest.approx(
        (LATENCY_S, BANDWIDTH), rel=0.01
    )
    assert "algorithm=ring" in found.provenance.notes[1]
    assert (found.provenance.workers, found.provenance.hosts) == (ranks, hosts)
    assert (sum(h.count for h in found.hosts), found.hosts[0].gpus, found.hosts[0].gpu.name) == (
        hosts,
        ranks // hosts,
        "A100",
    )


def test_the_algorithm_is_found_by_size(tmp_path):
    both = text(lambda size: min(ring(16)(size), tree(16)(size)), ranks=16, hosts=16)
    found = fitted(tmp_path, both)
    assert found.network.latency_s == pytest.approx(LATENCY_S, rel=0.02)
    assert "up to 2.62e+05 bytes tree explains the times best, beyond ring" in found.provenance.notes[1]


@pytest.mark.parametrize("seconds", [ring, tree])
@pytest.mark.parametrize("hosts", [8, 1])
def test_the_simulator_takes_what_was_measured(tmp_path, seconds, hosts):
    """Of gradients of a size that was not tested. With one number of ranks a tree is as good as a ring on another link."""
    found = fitted(tmp_path, text(seconds(8), 8, hosts))
    assert "does not determine the algorithm" in found.provenance.notes[1]
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


WHOLE = text(ring(4))
ROWS = [line for line in WHOLE.splitlines() if not line.startswith("#")]


def changed(row: str, line: int = 15) -> str:
    return WHOLE.replace(ROWS[line], row)


def test_rows_in_any_order_are_the_same(tmp_path):
    shuffled = WHOLE.replace("\n".join(ROWS), "\n".join(ROWS[::-1]))
    assert shuffled != WHOLE
    first, second = (fitted(tmp_path, one) for one in (WHOLE, shuffled))
    assert first.network == second.network


def test_a_text_without_its_end_is_fitted_and_says_so(tmp_path):
    found = fitted(tmp_path, WHOLE[: WHOLE.index(ROWS[-1])])
    assert any("no end" in note for note in found.provenance.notes)


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("", "no heading"),
        ("{}", "no heading"),
        (WHOLE[: WHOLE.index(ROWS[0])], "sizes"),
        (WHOLE[: WHOLE.index(ROWS[5]) + 40], "13 cells"),
        (WHOLE + WHOLE, "2 tables"),
        (WHOLE.replace("  Rank  3 ", "  Rank  7 "), "each of them"),
        (changed(ROWS[15].replace("float", "float float")), "cells"),
        (changed(ROWS[15].replace(ROWS[15].split()[5], "nan")), "above 0"),
        (changed(ROWS[15].replace(ROWS[15].split()[5], "0.00")), "above 0"),
        (changed(ROWS[15].replace(ROWS[15].split()[5], "-3.0")), "above 0"),
        (changed(ROWS[15].replace(ROWS[15].split()[5], "9999.99")), "algbw"),
        (WHOLE.replace("# Using", "# Collective test starting: gather_perf\n# Using"), "gather"),
        (text(lambda size: 1e-4), "no link fits"),
    ],
)
def test_what_is_no_such_text_is_one_line(tmp_path, printed, said, capsys):
    path, profile = tmp_path / "t.txt", tmp_path / "p.toml"
    path.write_text(printed)
    with pytest.raises(SystemExit) as ended:
        command.run("calibration.fit", lambda: fit.main([str(path), "--from", "nccl-tests", "-o", str(profile)]))
    out, err = capsys.readouterr()
    assert (ended.value.code, out, err.count("\n"), profile.exists()) == (1 if "fits" in said else 2, "", 1, False)
    assert said in err


def test_ranks_that_are_not_listed_are_asked_for(tmp_path):
    bare = "\n".join(line for line in WHOLE.splitlines() if "Rank" not in line)
    with pytest.raises(WrongSetting, match="--ranks"):
        fitted(tmp_path, bare)
    assert fitted(tmp_path, bare, 4).network.bandwidth_bytes_per_s == pytest.approx(BANDWIDTH, rel=0.01)
    with pytest.raises(WrongSetting, match="--ranks"):
        fitted(tmp_path, WHOLE, 5)
    with pytest.raises(WrongSetting, match="busbw"):
        fitted(tmp_path, bare, 64)


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


def test_the_profile_is_put_on_more_hosts(tmp_path, capsys):
    path, profile = tmp_path / "t.txt", tmp_path / "p.toml"
    path.write_text(WHOLE)
    assert fit.main([str(path), "--from", "nccl-tests", "--hosts", "16", "-o", str(profile)]) == 0
    assert "wrote" in capsys.readouterr().out
    found = cluster.read(str(profile))
    assert found.hosts[0].count == 16
    many = Scenario(protocols.make("allreduce"), workload.read("resnet50"), 16, 3, 1, cluster=found)
    assert 0 < simulate(many, replications=1).step_s.mean() < math.inf
    assert replace(many, workers=4).cluster == found
