"""real.calibrate: what it plans to run, and what it refuses before anything is measured."""

from dataclasses import replace

import event
import pytest
from test_commands import refused

from real import calibrate, campaign
from real import calibration_plan as plan
from real.calibration_plan import Asked
from real.cells import Cell, refusal
from sim.answers import notes, outcome
from sim.platform.cluster import one_rank_a_host
from sim.protocols import PROTOCOLS
from sim.recording import traces

SPECIAL = ("hybrid", "pipeline", "hierarchical", "gradient-coding")  # of special models, or numbers of workers
OVER_MPI = sorted(name for name, protocol in PROTOCOLS.items() if not protocol().overlaps and name not in SPECIAL)


def asked(**further) -> Asked:
    given = {"workload": "mlp", "workers": 2, "protocols": ("fmb", "amb"), "batch": 128, "steps": 10, "repeats": 2}
    return Asked(**{**given, "seed": 0, **further})


def job(cell: Cell) -> Cell:
    """What is run, whatever it is called and whoever runs it."""
    return replace(cell, runtime=None, called=None)


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("batch", [8, 100, 1024])
def test_no_run_that_is_checked_is_fitted(workers, batch):
    """Neither the job nor its minibatch, nor the random numbers of its sleeps."""
    every = asked(workers=workers, batch=batch, protocols=tuple(OVER_MPI))
    fitted, checked = plan.fitted(every, 0.1), plan.checked(every, 0.1)
    assert not {job(c) for c in fitted} & {job(c) for c in checked}
    for field in ("batch", "seed"):
        assert not {getattr(c, field) for c in fitted} & {getattr(c, field) for c in checked}


def test_all_sizes_are_fitted_and_the_largest_is_checked():
    every = asked(workers=8)
    assert {cell.workers for cell in plan.fitted(every, 0.1)} == {1, 2, 8}
    assert {cell.workers for cell in plan.checked(every, 0.1)} == {8}
    assert {cell.workers for cell in plan.fitted(asked(workers=1), 0.1)} == {1}


def test_evaluations_of_two_sizes_are_fitted():
    cells = [cell for cell in plan.fitted(asked(), 0.1) if cell.test_size]
    assert {(cell.workers, cell.test_size) for cell in cells} == {(1, 128), (1, 1024)}
    assert all(cell.evaluate_every < cell.steps for cell in cells)


@pytest.mark.parametrize("there_are", [5000, 297])
def test_an_evaluation_of_all_samples_that_there_are_says_so(there_are):
    job = replace(plan.fitted(asked(), 0.1)[-1], test_size=5000).scenario(one_rank_a_host(2))
    trace = event.trace(job)
    trace.rows.loc[trace.rows["activity"] == "evaluate", "samples"] = there_are
    found = notes.notes(job, outcome.of_trace(trace), "mpi", trace)
    assert any("evaluations are of 297 samples" in one for one in found) == (there_are < 5000)


def test_every_protocol_over_mpi_can_be_asked_for_and_real_run_would_run_it():
    every = asked(protocols=tuple(OVER_MPI))
    assert {cell.protocol for cell in plan.checked(every, 0.1)} == set(OVER_MPI)
    assert not any(refusal(cell) for _, cell, _ in plan.named(every, 0.1))


def test_partitions_are_fitted_only_where_a_protocol_has_them():
    assert {cell.protocol for cell in plan.fitted(asked(protocols=("fmb", "allreduce")), 0.1)} == {"fmb"}
    assert {cell.protocol for cell in plan.fitted(asked(protocols=("amb-dg",)), 0.1)} == {"fmb", "amb", "amb-dg"}


WRONG = {
    "protocol": (["--protocol", "abm"], ["abm", "amb"]),
    "overlaps": (["--protocol", "horovod"], ["--protocol", "horovod", "not fitted"]),
    "workers": (["--workers", "0"], ["--workers", "0"]),
    "batch": (["--batch", "4"], ["--batch", "4", "from 8"]),
    "repeats": (["--repeats", "0"], ["--repeats", "0"]),
    "tolerance": (["--tolerance", "nan"], ["--tolerance", "nan"]),
    "model": (["--workload", "resnet50"], ["--workload", "resnet50", "can be trained"]),
    "runs": (["--runs", "file"], ["--runs", "file", "folder"]),
    "no folder": (["--runs", "no/where"], ["--runs", "no/where", "folder"]),
}


@pytest.mark.parametrize("what", WRONG)
def test_it_refuses_in_one_line_before_anything_is_measured(what, tmp_path, monkeypatch, here):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    words, said = WRONG[what]
    line = [*([] if "--workload" in words else ["--workload", "mlp"]), *words, "-o", "profile.toml"]
    err = refused(here("real.calibrate", *line))
    assert all(word in err for word in said), err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_fit_and_the_check_are_given_runs_of_their_own(tmp_path, monkeypatch, capsys):
    """By name; and a check that fails is the exit code."""
    called: list[tuple[str, tuple[str, ...]]] = []

    def run(module: str, *words: str) -> int:
        called.append((module, words))
        return int(module == "calibration.check")

    monkeypatch.setattr(calibrate, "_run", run)
    given = calibrate.parser().parse_args(["--workload", "mlp", "-o", str(tmp_path / "p.toml")])
    assert calibrate.concluded(given, calibrate.asked_of(given, 2)) == 1
    (fit, fitted), (check, checked) = called
    assert (fit, check) == ("calibration.fit", "calibration.check")
    first, second = ({word for word in words if word.endswith(".parquet")} for words in (fitted, checked))
    assert first
    assert second
    assert not first & second
    assert "check-0: fmb, 2 workers, batch 75, stragglers none\n" in capsys.readouterr().out


def test_runs_that_are_done_are_left_out_by_their_job():
    """The plan is the same each time, or --resume would know none of them."""
    first, again = ([campaign.header_of(cell) for cell in calibrate.parsed(asked(), None, 0.1)] for _ in range(2))
    assert all(one.job == other.job for one, other in zip(first, again, strict=True))


def test_what_is_whole_is_not_launched_again(tmp_path):
    """Until a run, or the probe, is gone; simulated pilots stand for real ones."""
    small = asked(protocols=("fmb",), steps=2, repeats=1)
    (tmp_path / calibrate.PROBE).touch()
    assert calibrate.unfinished(small, tmp_path)
    for number, cell in enumerate(plan.pilots(small)):
        rows = event.trace(cell.scenario(one_rank_a_host(2))).rows
        path = tmp_path / f"pilot-{number}.parquet"
        traces.Trace(campaign.header_of(calibrate._parsed(cell, path)), rows).write(path)
    compute_s = plan.computing_s(small, calibrate.pilot_steps_s(small, tmp_path))
    assert calibrate.unfinished(small, tmp_path)
    for run in calibrate.parsed(small, tmp_path, compute_s):
        traces.Trace.of(campaign.header_of(run), []).write(run.trace)
    assert not calibrate.unfinished(small, tmp_path)
    (tmp_path / "fit-0-0.parquet").unlink()
    assert calibrate.unfinished(small, tmp_path)
