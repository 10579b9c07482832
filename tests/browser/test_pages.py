"""Reports in a browser: they render, their scripts complain of nothing, and their numbers are those of the JSON."""

import json

import pytest
from plans import made_up

from sim import reports, run
from sim.reports.plan import plan_page

JOB = ("--protocol=amb", "--workers=3", "--steps=30", "--replications=4")
ASKED = ("--what-if=workers=4", "--what-if=protocol=fmb", "--why", "--failures=mtbf=30 d")


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    """The page of sim.run, and the JSON that it printed."""
    from contextlib import redirect_stdout
    from io import StringIO

    path, out = tmp_path_factory.mktemp("report") / "answer.html", StringIO()
    with redirect_stdout(out):
        run.main([*JOB, *ASKED, "--json", "--report", str(path)])
    return path, json.loads(out.getvalue())


def test_an_answer_is_drawn_and_its_numbers_are_those_of_the_json(answered, browser):
    page, answer = answered
    seen = browser(page)
    assert seen.said == []
    assert seen.drawn == seen.text.count("<figure") == 5
    speed = answer["samples_per_s"]
    interval = answer["interval"]["samples_per_s"]
    assert seen.values("throughput")[:4] == [speed, *interval, answer["failures"]["goodput"] * speed]
    assert seen.values("step_s") == list(answer["step_s"].values())
    assert seen.values("samples_per_step") == list(answer["samples_per_step"].values())
    speeds = [one["answer"]["samples_per_s"] for one in answer["what_if"]]
    changes = [
        (one["answer"]["step_s"]["mean"], one["throughput_ratio"], *one["interval"]["throughput_ratio"], changed)
        for one, changed in zip(answer["what_if"], speeds, strict=True)
    ]
    assert seen.values("what_if") == [answer["step_s"]["mean"], speed, *(x for row in changes for x in row)]
    assert seen.picture.stat().st_size > 20_000


def test_an_answer_fits_a_phone(answered, phone):
    wide, seen = phone(answered[0])
    assert wide == 390
    assert seen.said == []


def test_an_answer_can_be_printed(answered, printed):
    assert printed(answered[0]).startswith(b"%PDF")


def test_a_script_that_complains_is_seen_and_nothing_is_loaded_from_elsewhere(tmp_path, browser):
    """The page's own policy refuses what is on a network."""
    page = tmp_path / "wrong.html"
    wrong = "<script>nothing.here()</script><img src='http://127.0.0.1:9/x.png'>"
    page.write_text(reports.page("t", []).replace("</main>", f"{wrong}</main>"))
    said = "\n".join(browser(page).said)
    assert "nothing is not defined" in said
    assert "violates the following Content Security Policy" in said


@pytest.fixture(params=["speed", "deadline"])
def planned(request, tmp_path):
    """The page of a plan, and its JSON: with a target of samples/s, and with a deadline."""
    plan, path = made_up(timed=request.param == "deadline"), tmp_path / "plan.html"
    path.write_text(plan_page(plan))
    return path, plan


def test_a_plan_follows_its_sliders(planned, browser):
    page, plan = planned
    timed = plan["rows"][0]["hours"] is not None
    cost, need = ("usd", 2.0) if timed else ("usd_per_hour", 1500.0)
    budget = sorted(row[cost] for row in plan["rows"])[len(plan["rows"]) * 2 // 3] * (1 + 1e-9)  # that row is within it
    seen = browser(page, f"#need={need}&budget={budget}&probability=0.5")
    assert seen.said == []
    assert seen.drawn == 1

    def meets(row):
        fast = row["hours"] <= need if timed else row["samples_per_s"]["mid"] >= need  # with a probability of one half
        return fast and row[cost] <= budget

    meeting = sorted((row for row in plan["rows"] if meets(row)), key=lambda row: row[cost])
    assert 10 < len(meeting) < len(plan["rows"])
    keys = ("workers", "servers", "batch", "samples_per_s", "usd_per_hour", *(("hours", "usd") if timed else ()))
    shown = seen.values("meeting")
    each = len(shown) // 10
    for row, found in zip(meeting[:10], (shown[i : i + each] for i in range(0, len(shown), each)), strict=True):
        expected = [row["samples_per_s"][name] for name in ("mid", "low", "high")]
        assert found[:-1] == [x for key in keys for x in (expected if key == "samples_per_s" else [row[key]])]
    assert f"The cheapest of {len(meeting)} that meet it" in seen.words("chosen")
    assert seen.words("chosen-command") == meeting[0]["command"]


def test_a_plan_fits_a_phone(tmp_path, phone):
    page = tmp_path / "plan.html"
    page.write_text(plan_page(made_up()))
    wide, seen = phone(page)
    assert wide == 390
    assert seen.said == []


def test_a_need_that_nothing_meets_gets_the_best_that_can_be_had(tmp_path, browser):
    plan, page = made_up(), tmp_path / "plan.html"
    plan["question"]["samples_per_s"] = 1e9
    page.write_text(plan_page(plan))
    seen = browser(page)
    fastest = max(plan["rows"], key=lambda row: row["samples_per_s"]["mid"])
    assert seen.words("chosen").startswith(f"None of {len(plan['rows'])} meets it. The best within the budget: ")
    assert seen.words("chosen-command") == fastest["command"]
    assert seen.values("meeting") == []
