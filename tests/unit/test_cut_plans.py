"""A plan whose time was over: its list, its front and its page name one winner, and all say that it was cut short."""

import shlex
from dataclasses import replace
from types import SimpleNamespace

import pytest

from sim.plans import plan, question, search, show
from sim.plans.candidates import WHOLE, Figures
from sim.plans.configurations import Room
from sim.studies import failures

ASKED = {"samples_per_s": 1000, "workload": "toy_fc", "protocols": ["fmb"], "hosts": ["p3.2xlarge"], "counts": [1]}
ASKED["keep"] = 3
OVER = SimpleNamespace(left_s=0.0)


def asked(**further) -> question.Question:
    return question.read(None, ASKED | further)


def some(*known, job=None):
    """Candidates of (USD an hour, samples a second, effort), each known to a factor 1.1."""
    (first, *_), _ = search.screened(Room(job or asked()))
    return [
        replace(
            first,
            configuration=replace(first.configuration, usd_per_hour=price),
            effort=effort,
            figures=Figures(speed / 1.1, speed, 1.1 * speed, world="event", steps=3, runs=1),
        )
        for price, speed, effort in known
    ]


def cut(*known, job=None) -> plan.Plan:
    """The plan of candidates for which there is no more time."""
    job, candidates = job or asked(), some(*known, job=job)
    front = search.front(candidates, plan._axes, OVER, plan.FRONT_EFFORT)
    best, met = plan._ranked(job.keep, candidates, [one for one in candidates if one.effort == WHOLE], True)
    return plan.Plan(job, Room(job), best, met, front, candidates, search.Counter(), [], whole=False)


def test_list_and_front_name_one_winner_whatever_each_was_simulated_with():
    """The cheapest was looked at briefly; the list began with what was simulated most, and the front left out what a bound beat."""
    found = cut((3.0, 3000.0, WHOLE), (1.0, 1500.0, 1), (2.0, 1800.0, 2), (0.5, 800.0, 1))
    assert [one.usd_per_hour for one in found.best] == [1.0, 2.0, 3.0]
    assert [one.usd_per_hour for one in found.front] == [0.5, 1.0, 2.0, 3.0]


def test_the_page_says_that_a_plan_was_cut_short_and_so_does_its_json():
    found = cut((3.0, 3000.0, WHOLE))
    assert found.as_json()["notes"] == show.notes(found)
    assert plan.CUT in show.notes(found)
    whole = replace(found, whole=True)
    assert plan.CUT not in whole.as_json()["notes"]


@pytest.mark.parametrize("run", ["", ", run=2 d"])
def test_the_first_again_fails_as_often_as_in_the_plan(run):
    """With its failures, in a run as long as the training."""
    job = asked(samples="36 M", samples_per_s=None, deadline="24 h", failures=f"mtbf=30 d{run}")
    (one,) = some((3.0, 1000.0, WHOLE), job=job)
    one.figures = replace(one.figures, mid=900.0, goodput=0.9)
    found = plan.Plan(job, Room(job), [one], True, [one], [one], search.Counter())
    words = shlex.split(found.row(one)["command"])
    assert failures.read(words[words.index("--failures") + 1]).run_s == pytest.approx(36_000)
