"""Progress: silent when quick, a line every few seconds with the time left, and never on stdout."""

from types import SimpleNamespace

import event
import pytest

import sim.run
from calibration.estimators.residuals import of_runs
from sim import protocols
from sim.base import progress
from sim.base.progress import EVERY_S, Progress
from sim.job.scenario import Scenario
from sim.model.workload import NAMED
from sim.platform.cluster import one_rank_a_host
from sim.studies.partition_search import searched


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes on by itself when told to: clock.now += 3."""
    found = SimpleNamespace(now=100.0)
    monkeypatch.setattr(progress, "EVERY_S", EVERY_S)  # which tests/conftest.py takes away
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: found.now))
    return found


def lines(capsys) -> list[str]:
    out, err = capsys.readouterr()
    assert out == ""
    return err.splitlines()


def test_what_is_quick_says_nothing(clock, capsys):
    for _ in progress.each(range(100), "counting"):
        clock.now += 0.04
    assert lines(capsys) == []


def test_a_line_every_few_seconds_says_what_is_done_and_what_is_left(clock, capsys):
    for _ in progress.each(range(60), "counting"):
        clock.now += 2
    said = lines(capsys)
    assert said[0] == "counting: 5%, about 2 min left (2)"
    assert said[-1] == "counting: 95%, about 6 s left (56)"
    assert len(said) == 19


def test_lines_get_rarer_the_longer_it_takes(clock, capsys):
    for _ in progress.each(range(3600), "counting"):
        clock.now += 1
    assert 60 < len(lines(capsys)) < 100


def test_work_of_which_the_total_is_unknown_says_what_has_gone_by(clock, capsys):
    with Progress("searching") as found:
        clock.now += 7
        found.advance(label="8 parts")
    assert lines(capsys) == ["searching: 7 s so far (8 parts)"]


def test_work_within_other_work_is_silent(clock, capsys):
    with Progress("outer", total=2) as outer:
        for _ in progress.each(range(3), "inner"):
            clock.now += 10
        outer.advance()
    assert lines(capsys) == ["outer: 50%"]


def test_a_first_step_that_is_longer_than_the_others_says_nothing_of_the_time_left(clock, capsys):
    for number in progress.each(range(100), "fitting"):
        clock.now += 1 if number else 60
    assert lines(capsys)[:3] == ["fitting: 1% (0)", "fitting: 6% (5)", "fitting: 11% (10)"]


def test_the_time_left_is_said_when_no_step_took_half_of_the_time(clock, capsys):
    for number in progress.each(range(100), "fitting"):
        clock.now += 1 if number else 20
    assert next(line for line in lines(capsys) if "left" in line) == "fitting: 21%, about 3 min left (20)"


def test_an_end_by_an_error_ends_it(clock, capsys):
    with pytest.raises(ZeroDivisionError), Progress("dividing", total=1):
        raise ZeroDivisionError
    with Progress("simulating", total=100):
        clock.now += 4
        progress.advance(work=40)
        clock.now += 4
        progress.advance(work=40)
    assert lines(capsys) == ["simulating: 80%, about 2 s left"]


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.4, "0 s"), (89, "89 s"), (100, "2 min"), (3600, "60 min"), (7380, "2 h 3 min")]
)
def test_durations(seconds, said):
    assert progress.duration(seconds) == said


@pytest.fixture
def talkative(monkeypatch):
    """A line at every step."""
    monkeypatch.setattr(progress, "EVERY_S", 0)
    monkeypatch.setattr(progress, "EVERY_SHARE", 0)


def test_a_simulation_of_many_runs_says_how_far_it_is(talkative, capsys):
    assert sim.run.main(["--protocol", "ps-async", "--steps", "5", "--replications", "4", "--json"]) == 0
    assert [line.split(",")[0] for line in capsys.readouterr().err.splitlines()] == [
        f"simulating: {share}%" for share in (25, 50, 75)
    ]


def test_an_answer_of_seconds_says_nothing(capsys):
    assert sim.run.main(["--protocol", "ps-async", "--steps", "5", "--json"]) == 0
    assert capsys.readouterr().err == ""


def test_a_search_for_partitions_says_what_it_tries(talkative, capsys):
    job = Scenario(protocols.make("ps-sync"), NAMED["mlp"], workers=2, servers=2, steps=3, warmup=1)
    found, said = searched(job), lines(capsys)
    assert len(said) == len(found.tried) > 1
    assert all("searching for variable partitions: " in line and "parts: " in line for line in said)


def test_a_fit_says_how_far_it_has_played_its_runs(talkative, capsys):
    job = Scenario(protocols.make("fmb"), NAMED["mlp"], workers=2, steps=5, warmup=1, cluster=one_rank_a_host(3))
    of_runs(job.cluster, [event.trace(job, replication) for replication in range(3)])
    assert [line.split("%")[0] for line in lines(capsys)] == [
        f"simulating the runs fitted: {share}" for share in (33, 67)
    ]
