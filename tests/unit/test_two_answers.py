"""Two answers of files beside each other: `sim.report a.json b.json`."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace

import pytest

from sim import Scenario, command, protocols, read_cluster, read_stragglers, read_workload, report, simulate
from sim.base.errors import WrongSetting
from sim.studies import what_if
from sim.studies.two_answers import MOST_SETTINGS, compare

LAW = "niagara*0.01"


def job(workers=3, **further) -> Scenario:
    law = {"stragglers": read_stragglers(LAW), "stragglers_name": LAW}
    return Scenario(protocols.make("fmb"), read_workload("mlp"), workers, steps=8, warmup=2, **law | further)


@pytest.fixture(scope="module")
def base():
    return simulate(job(), replications=4)


@pytest.fixture
def kept(tmp_path):
    """Writes answers into files, and compares them."""

    def write(*answers: dict):
        paths = [tmp_path / f"{name}.json" for name, _ in zip("ab", answers, strict=True)]
        for path, one in zip(paths, answers, strict=True):
            path.write_text(json.dumps(one))
        return compare(*paths)

    return write


CHANGES = {
    "workers": lambda: job(5),
    "protocol": lambda: replace(job(), protocol=protocols.make("amb")),
    "hosts": lambda: job(cluster=read_cluster("p3.8xlarge*4")),
    "no sleeps": lambda: job().without_stragglers(),
    "nothing": job,
}


@pytest.mark.parametrize("name", CHANGES)
def test_two_files_say_what_a_what_if_says(name, base, kept):
    changed = simulate(CHANGES[name](), replications=4)
    asked = what_if.compare(name, base, changed, real=True)
    found = kept(base.answer(), changed.answer())
    assert found.unpaired == ""
    assert found.ratio == (asked.ratio, asked.interval, asked.pairs)
    assert found.ratio.spread == asked.spread
    assert found.as_json()["throughput_ratio"] == asked.ratio


def changed(answer: dict, *path: str, to: object) -> dict:
    """A copy with another value at a path."""
    whole = copy.deepcopy(answer)
    inside = whole
    for name in path[:-1]:
        inside = inside[name]
    inside[path[-1]] = to
    return whole


@pytest.mark.parametrize(
    ("path", "to", "said"),
    [
        (("scenario", "seed"), 7, "random seeds are 0 and 7"),
        (("scenario", "steps"), 9, "8 and 9 steps"),
        (("scenario", "sleeps_of"), 2, "sleeps are those of runs None and 2"),
        (("version",), "9.9", "may draw other random numbers"),
        (("pairing",), None, "does not have each run's throughput"),
        (("pairing", "first"), 4, "first runs are 0 and 4"),
        (("pairing", "samples_per_s"), [1.0, None], "summed nothing"),
        (("done", "steps"), 3, "8 and 3 steps were simulated"),
        (("world",), "mpi", "one of them was run for real"),
    ],
)
def test_what_has_other_random_numbers_is_unpaired_and_as_wide_as_both_intervals(path, to, said, base, kept):
    answer = base.answer()
    found = kept(answer, changed(answer, *path, to=to))
    assert said in found.unpaired
    assert any(said in note and "does not cancel" in note for note in found.notes)
    low, high = answer["interval"]["samples_per_s"]
    assert found.ratio.pairs == 0
    assert found.ratio.value == 1
    assert found.ratio.interval[1] == pytest.approx(1 / found.ratio.interval[0])  # as the two intervals are one
    assert high / answer["samples_per_s"] < found.ratio.interval[1] < high / low
    assert "unpaired" in found.headline


@pytest.mark.parametrize(("speed", "said"), [(1.0, "outside"), (None, None)])
def test_a_real_run_is_inside_the_predicted_interval_or_not(speed, said, base, kept):
    answer = base.answer()
    real = changed(changed(answer, "world", to="mpi"), "samples_per_s", to=speed or answer["samples_per_s"])
    found = kept(answer, {name: value for name, value in real.items() if name not in ("basis", "pairing")})
    assert any(f"are {said or 'inside'} the predicted interval" in note for note in found.notes)
    assert found.as_json()["basis"][0]["changed"] is None


def test_settings_that_differ_are_listed_and_no_others(base, kept):
    answer = base.answer()
    other = simulate(job(5, batch=64), replications=3).answer()
    found = kept(answer, other)
    assert {one.path: one[1:] for one in found.settings} == {
        "workers": ("3", "5"),
        "batch": ("100", "64"),
        "cluster.hosts.0.count": ("4", "6"),
        "done.runs": ("4", "3"),
    }
    assert found.ratio.pairs == 3
    many = kept(answer, changed(answer, "scenario", "cluster", to={"x": list(range(1000))}))
    paths = [one.path for one in many.few_settings]
    assert len(paths) == MOST_SETTINGS + 1
    assert paths[-1] == f"cluster: {len(many.settings) - MOST_SETTINGS:,} more"


def test_what_was_cut_short_and_what_both_say_is_noted_once(base, kept):
    answer = base.answer()
    found = kept(answer, changed(answer, "asked", "runs", to=20))
    assert found.notes[0].startswith("both: compute times are nominal")
    (cut,) = (note for note in found.notes if "time ran out" in note)
    assert cut.startswith("b.json: 4 of 20 runs")


@pytest.mark.parametrize("speed", [None, 0.0])
def test_a_figure_that_is_not_known_makes_no_ratio(speed, base, kept, tmp_path, capsys):
    unknown = changed(changed(base.answer(), "samples_per_s", to=speed), "interval", "samples_per_s", to=None)
    unknown["pairing"]["samples_per_s"] = [speed] * 4
    found = kept(unknown, base.answer())
    assert found.ratio is None
    assert found.headline.endswith("unknown")
    assert "a.json summed nothing" in " ".join(found.notes)
    assert report.main([str(tmp_path / "a.json"), str(tmp_path / "b.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["throughput_ratio"] is None
    back = kept(base.answer(), unknown)
    assert (back.ratio and back.ratio.value) == speed


def test_the_page_has_the_numbers_of_the_json_and_no_tags_of_names(base, tmp_path, capsys):
    from plotly.graph_objects import Figure

    odd = "<img src=x>\x1b[31m"
    other = changed(simulate(job(5), replications=4).answer(), "scenario", "workload", to=odd)
    other["notes"].append(odd)
    other["basis"][0]["source"] = odd
    paths = [tmp_path / "a.json", tmp_path / "<b>b.json"]
    for path, one in zip(paths, (base.answer(), other), strict=True):
        path.write_text(json.dumps(one))
    page = tmp_path / "page.html"
    page.write_text("what was there")
    assert report.main([*map(str, paths), "-o", str(page)]) == 0
    said, text = capsys.readouterr().out, page.read_text()
    assert "\x1b[31m" not in said + text
    assert "<img" not in text
    assert "<b>b" not in text
    data = json.loads(re.findall(r'<script type="application/json" id="report">(.*?)</script>', text, re.S)[0])
    (table,) = re.findall(r'<table id="throughput">(.*?)</table>', text, re.S)
    shown = [float(value) for value in re.findall(r'data-value="([^"]*)"', table)]
    assert shown[:2] == [one["samples_per_s"] for one in data["answers"]]
    assert shown[2:6:2] == data["answers"][0]["interval"]["samples_per_s"]
    (figure,) = re.findall(r'<figure id="throughputs">\s*<script type="application/json">(.*?)</script>', text, re.S)
    Figure(**json.loads(figure))
    assert said.splitlines()[0].startswith("throughput of <b>b.json over a.json: ")


def test_one_file_twice_is_all_equal(base, kept, tmp_path):
    kept(base.answer(), base.answer())
    found = compare(tmp_path / "a.json", tmp_path / "a.json")
    assert found.names[0] != found.names[1]
    assert found.settings == []
    assert found.headline.endswith("+0.0% (all equal)")


BROKEN = {
    "empty": (lambda _: "", "answer: given"),
    "no JSON": (lambda _: "{", "answer: given"),
    "no object": (lambda _: "[1]", "an object"),
    "binary": (lambda _: "\udcff\0", "answer: given"),
    "NaN": (lambda answer: json.dumps(answer | {"samples_per_s": float("nan")}), "NaN is no number of JSON"),
    "huge": (
        lambda answer: json.dumps(answer).replace('"samples_per_s": ', '"samples_per_s": 1e999, "_": '),
        "samples_per_s",
    ),
    "many digits": (
        lambda answer: json.dumps(answer | {"x": 0}).replace('"x": 0', f'"x": {"9" * 5000}'),
        "answer: given",
    ),
    "deep": (
        lambda answer: json.dumps(answer | {"x": 0}).replace('"x": 0', f'"x": {"[" * 400}{"]" * 400}'),
        "too deeply",
    ),
    "a plan": (lambda _: json.dumps({"schema": "plan/1", "rows": []}), "schema: given 'plan/1'; allowed: answer/1"),
    "no schema": (lambda _: "{}", "schema: missing; needed: answer/1"),
    "a key less": (lambda answer: json.dumps({k: v for k, v in answer.items() if k != "step_s"}), "step_s: missing"),
    "text": (lambda answer: json.dumps(answer | {"samples_per_s": "fast"}), "samples_per_s: given 'fast'"),
    "ends": (lambda answer: json.dumps(changed(answer, "interval", "samples_per_s", to=[2, 1])), "the low end first"),
    "limits": (lambda answer: json.dumps(changed(answer, "basis", 0, "throughput_ratio", "low", to=0)), "basis.0"),
    "no runs": (lambda answer: json.dumps(changed(answer, "pairing", "samples_per_s", to=[])), "pairing"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_answer_is_refused_in_one_line(name, base, tmp_path, capsys):
    write, said = BROKEN[name]
    broken, good = tmp_path / "broken.json", tmp_path / "good.json"
    broken.write_bytes(write(base.answer()).encode(errors="surrogateescape"))
    good.write_text(base.to_json())
    for pair in ((broken, good), (good, broken)):
        with pytest.raises(SystemExit) as ended:
            command.run("sim.report", lambda pair=pair: report.main([*map(str, pair), "-o", str(tmp_path / "x.html")]))
        line = capsys.readouterr().err
        assert ended.value.code == 2
        assert said in line
        assert line.count("\n") == 1
    assert not (tmp_path / "x.html").exists()


@pytest.mark.parametrize("output", ["x.pdf", "no/where.html", "a.html", "."])
def test_a_page_that_cannot_be_written_is_refused(output, base, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.html").write_text(base.to_json())  # an input may have any name
    with pytest.raises(WrongSetting, match="--output"):
        report.main(["a.html", "a.html", "-o", output])
    assert (tmp_path / "a.html").read_text() == base.to_json()
