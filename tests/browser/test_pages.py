"""Reports in a browser: they render, their scripts complain of nothing, and their numbers are those of the JSON."""

import json

import pytest

from sim import plan, reports, run

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
    assert seen.drawn == seen.text.count("<figure") == 4
    speed = answer["samples_per_s"]
    interval = answer["interval"]["samples_per_s"]
    assert seen.values("throughput")[:4] == [speed, *interval, answer["failures"]["goodput"] * speed]
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


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """The page of sim.plan."""
    path = tmp_path_factory.mktemp("plan") / "plan.html"
    asked = ("--workload=toy_fc", "--protocols=fmb,allreduce", "--hosts=p3.2xlarge", "--counts=1,2", "--processes=1")
    plan.main([*asked, "--samples-per-s=500", "--json", "--report", str(path)])
    return path


def test_a_plan_is_drawn(planned, browser):
    seen = browser(planned)
    assert seen.said == []
    assert seen.drawn == seen.text.count("<figure") == 1


def test_a_plan_fits_a_phone(planned, phone):
    wide, seen = phone(planned)
    assert wide == 390
    assert seen.said == []
