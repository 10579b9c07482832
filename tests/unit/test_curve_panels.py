"""Panels of accuracy and loss: what they draw, how runs are named, and what is refused."""

from dataclasses import replace

import pytest
from test_curves import evaluated

from sim import plot
from sim.base.errors import WrongSetting
from sim.recording import panels
from sim.recording.traces import Trace


@pytest.fixture
def learning(trace):
    """The fixture's trace with two evaluations, of a file that may have them."""
    trace = Trace(replace(trace.header, batch=18, test_size=8), trace.rows)
    return evaluated(trace, (0, 2.3, 0.1), (2, 0.4, 0.8))


def other(trace: Trace, **about) -> Trace:
    return Trace(replace(trace.header, **about), trace.rows)


@pytest.fixture
def drawn(monkeypatch):
    """The figures that would be written."""
    figures: list = []
    monkeypatch.setattr(panels, "save", lambda figure, path, told: figures.append(figure))
    return figures


X = {"time": [2.0, 9.0], "step": [1, 3], "samples": [16, 46]}
Y = {"accuracy": [0.1, 0.8], "loss": [2.3, 0.4]}


@pytest.mark.parametrize("name", plot.LEARNING)
def test_a_panel_draws_what_its_name_says(learning, drawn, name):
    panels.draw_curves(panels.curve_lines([("a", learning)]), [name], "x.png")
    (axes,) = drawn[0].axes
    (line,) = axes.lines
    measure, _, against = name.partition("_vs_")
    assert (line.get_xdata().tolist(), line.get_ydata().tolist()) == (X[against], Y[measure])
    assert axes.get_ylabel().startswith(measure)
    words = {"time": "seconds since the start of the run", "step": "updates so far", "samples": "samples so far"}
    assert axes.get_xlabel() == words[against]


def test_replications_share_a_style_and_a_line_of_the_legend(learning, drawn):
    """Ten lines in two styles: replications of a job count once."""
    runs = [("real", other(learning, world="mpi"))]
    runs += [(f"s{seed}", other(learning, seed=seed, details={"n": seed})) for seed in range(9)]
    panels.draw_curves(panels.curve_lines(runs), plot.LEARNING, "x.png")
    for axes in drawn[0].axes:
        styles = [(line.get_color(), line.get_linestyle(), line.get_linewidth()) for line in axes.lines]
        assert len(styles) == 10
        assert len(set(styles)) == 2
        assert len(set(styles[1:])) == 1
    (legend,) = drawn[0].legends
    assert [text.get_text() for text in legend.get_texts()] == ["fmb, real (mpi)", "fmb, simulated (event), 9 runs"]


def test_replications_that_end_after_different_steps_are_of_one_job(learning):
    runs = [("a", learning), ("b", other(learning, steps=3, warmup=0, seed=1))]
    assert list(panels.curve_lines(runs)) == ["fmb, simulated (event), 2 runs"]


def test_a_label_has_what_differs_between_jobs(learning):
    amb = {"protocol": "amb", "settings": {"time_limit_s": 0.06, "partitions": 16}}
    longer = {**amb, "settings": {"time_limit_s": 0.1, "partitions": 16}}
    jobs = [learning, other(learning, workers=2), other(learning, **amb), other(learning, **longer)]
    assert list(panels.curve_lines([(str(i), job) for i, job in enumerate(jobs)])) == [
        "fmb, simulated (event), workers=1",
        "fmb, simulated (event), workers=2",
        "amb, simulated (event), workers=1, time_limit_s=0.06",
        "amb, simulated (event), workers=1, time_limit_s=0.1",
    ]


def test_runs_on_two_clusters_are_two_jobs(learning):
    runs = [(name, other(learning, cluster=name)) for name in ("slow", "fast")]
    assert list(panels.curve_lines(runs)) == [f"fmb, simulated (event), cluster={name}" for name in ("slow", "fast")]


def test_a_file_names_what_no_setting_does(learning):
    """Two models of one name."""
    runs = [(f"{digest}.parquet", other(learning, digest=digest)) for digest in ("a", "b")]
    assert list(panels.curve_lines(runs)) == [f"fmb, simulated (event) ({name}.parquet)" for name in ("a", "b")]


def test_long_labels_are_wrapped_above_a_narrow_picture(learning, drawn):
    runs = [(str(n), other(learning, workload="w" * 30, stragglers="s" * 30 + str(n))) for n in range(2)]
    panels.draw_curves(panels.curve_lines(runs), ["loss_vs_time"], "x.png")
    assert all("\n" in text.get_text() for text in drawn[0].legends[0].get_texts())


def test_more_jobs_than_styles_are_refused(learning):
    jobs = [(str(batch), other(learning, batch=batch)) for batch in range(18, 27)]
    assert len(panels.curve_lines(jobs[:8])) == plot.MOST_TRACES == 8
    with pytest.raises(WrongSetting, match="given '9 jobs'; allowed: at most 8"):
        panels.curve_lines(jobs)


@pytest.fixture
def written(learning, trace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    learning.write("a.jsonl")
    other(learning, seed=1).write("b.jsonl")
    Trace(replace(trace.header, batch=18), trace.rows).write("without.jsonl")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["loss_vs_step", "accuracy_vs_time", "loss_vs_step"], ["loss_vs_step", "accuracy_vs_time"]),
        (["learning"], plot.LEARNING),
    ],
    ids=["some", "all"],
)
def test_panels_are_those_that_were_asked_for(written, monkeypatch, words, found):
    asked: list = []
    monkeypatch.setattr(panels, "draw_curves", lambda jobs, names, *_: asked.append((len(*jobs.values()), names)))
    many = ["a.jsonl"] * (plot.MOST_TRACES + 1)  # of one job
    assert plot.main([*many, "-o", "x.svg", "--panels", *words]) == 0
    assert asked == [(9, found)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["a.jsonl", "without.jsonl", "--panels", "learning"],
            "--panels: given 'without.jsonl, which has no evaluations'; allowed: traces of runs that evaluated, as `real.run",
        ),
        (
            ["a.jsonl", "--panels", "ranks", "loss_vs_time"],
            "--panels: given 'ranks loss_vs_time'; allowed: ranks, samples",
        ),
    ],
)
def test_what_is_refused_writes_nothing(written, words, said):
    with pytest.raises(WrongSetting) as refused:
        plot.main([*words, "-o", "x.svg"])
    assert said in str(refused.value)
    assert not (written / "x.svg").exists()


def test_a_panel_that_is_not_there_is_named(capsys):
    with pytest.raises(SystemExit) as ended:
        plot.main(["a.jsonl", "--panels", "accuracy_vs_tim", "-o", "x.svg"])
    assert ended.value.code == 2
    line = capsys.readouterr().err
    assert line.startswith(
        "sim.plot: --panels: given 'accuracy_vs_tim'; allowed: ranks, samples, learning, accuracy_vs_time, "
    )
    assert "did you mean accuracy_vs_time?" in line
