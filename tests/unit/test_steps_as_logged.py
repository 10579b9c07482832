"""Tables of steps as people have them: decimal commas, times since the start, resumed runs, a column for each rank, blank cells."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.importers import steps, table_names
from calibration.importers.about import About
from calibration.importers.logged_steps import Steps
from sim.base import tables
from sim.base.errors import WrongSetting
from sim.efficiency import law as until

TRUTH_S = 0.25 + 0.01 * np.sin(np.arange(40))  # of 40 steps


def read(tmp_path, text: str, name: str = "steps.csv", columns: str | None = None, **said) -> Steps:
    (tmp_path / name).write_text(text)
    return steps.logged(tmp_path / name, About("mlp", names=table_names.names_of(columns, None), **said))


def of_ranks(heading: str, row: str, ranks: int = 2, lengths_s=TRUTH_S) -> str:
    """A row for each rank and step, from a template."""
    rows = [
        row.format(step=step, rank=rank, s=length_s) for step, length_s in enumerate(lengths_s) for rank in range(ranks)
    ]
    return "\n".join([heading, *rows]) + "\n"


@pytest.mark.parametrize("mark", [";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_comma_is_the_decimal_mark_where_columns_are_apart_otherwise(tmp_path, mark, encoding):
    text = of_ranks(mark.join(("step", "rank", "seconds")), mark.join(("{step}", "{rank}", "{s:.4f}"))).replace(
        ".", ","
    )
    (tmp_path / "steps.csv").write_bytes(text.encode(encoding))
    found = steps.logged(tmp_path / "steps.csv", About("mlp"))
    assert found.ranks == 2
    assert found.length_s == pytest.approx(TRUTH_S, abs=1e-4)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a;b\n1;1.234,5\n2;0,5\n", [1234.5, 0.5]),
        ('a,b\n1,"1,234.5"\n2,0.5\n', [1234.5, 0.5]),
        ("a;b\n1;1,250\n2;1,251\n", [1.25, 1.251]),
        ("a\tb\n0,5\t1,250\n0,25\t1,251\n", [1.25, 1.251]),  # by the other column
        ("a;b\n0,5;1.250\n0,5;1.251\n", [1250, 1251]),  # likewise
        ("a;b\n1;0.25\n2;1.250\n", [0.25, 1.25]),
        ("sep=;\na;b\n1;1 250,5\n2;1\u00a0250,5\n", [1250.5, 1250.5]),
        ("a;b\n1;-0,5\n2;1,5e-3\n", [-0.5, 0.0015]),
        ("a,b\n1,1.5,\n2,\n", [1.5, np.nan]),
    ],
)
def test_numbers_are_read_as_their_country_writes_them(text, values):
    assert tables.parsed(text.splitlines(keepends=True), "t.csv")["b"].tolist() == pytest.approx(values, nan_ok=True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "step,rank,seconds\n0,0,0,250\n1,0,0,251\n",
            "line 2: given '0,0,0,250'; allowed: 3 cells, as in the heading; numbers with a point",
        ),
        ("step\trank\tseconds\n0\t0\t1,250\n1\t0\t1,251\n", "with a decimal point"),
        ("step;rank;seconds\n0;0;0,250\n1;0;0.251\n", "with a decimal point"),
    ],
)
def test_a_number_that_may_be_either_is_refused(tmp_path, text, said):
    with pytest.raises(WrongSetting, match=said):
        read(tmp_path, text)


def test_a_column_is_there_once(tmp_path):
    (tmp_path / "u.csv").write_text("batch,steps,steps\n8,100,50\n16,60,30\n")
    with pytest.raises(WrongSetting, match="columns: given 'steps'; allowed: each of them once"):
        until.read(str(tmp_path / "u.csv"))


SINCE_S = np.cumsum(TRUTH_S)


@pytest.mark.parametrize(
    ("heading", "row", "unit"),
    [
        ("step,rank,time", "{step},{rank},{s:.4f}", 1.0),
        ("step,rank,train_time_ms", "{step},{rank},{s:.4f}", 1e3),
        ("step,rank,elapsed_s", "{step},{rank},{s:.4f}", 1.0),
        ("_step,rank,_runtime,lr", "{step},{rank},{s:.4f},0.1", 1.0),
        ("_step,rank,_timestamp", "{step},{rank},{s:.4f}", 1.0),
    ],
)
def test_times_since_the_start_are_read_as_differences(tmp_path, heading, row, unit):
    found = read(tmp_path, of_ranks(heading, row, lengths_s=unit * SINCE_S))
    assert found.length_s == pytest.approx(TRUTH_S, abs=2e-4)
    assert any("times since the start" in note for note in found.notes)


def test_a_first_row_that_has_more_than_a_step_is_left_out(tmp_path):
    found = read(tmp_path, of_ranks("_step,rank,_runtime", "{step},{rank},{s:.4f}", lengths_s=1000 + SINCE_S))
    assert found.length_s == pytest.approx(TRUTH_S[1:], abs=2e-4)
    assert any("when its step began is not known (it has 1000 s)" in note for note in found.notes)


@pytest.mark.parametrize("write", ["{:.4f}".format, lambda at: str(np.datetime64(round(at * 1e3), "ms"))])
def test_times_of_a_clock_are_times_since_a_start(tmp_path, write):
    rows = ["step,timestamp,lr", *(f"{step},{write(1.75e9 + at)},0.1" for step, at in enumerate(SINCE_S))]
    assert read(tmp_path, "\n".join(rows)).length_s == pytest.approx(TRUTH_S[1:], abs=2e-3)


def test_a_time_may_begin_at_nothing(tmp_path):
    text = of_ranks("step,train_time_ms", "{step},{s:.1f}", 1, 1e3 * (SINCE_S - SINCE_S[0]))
    assert read(tmp_path, text).length_s == pytest.approx(TRUTH_S[1:], abs=2e-4)


def test_times_that_begin_anew_in_each_epoch_are_read_so_too(tmp_path):
    text = of_ranks("step,seconds", "{step},{s:.4f}", 1, [*np.cumsum(TRUTH_S[:20]), *np.cumsum(TRUTH_S[20:])])
    assert read(tmp_path, text).length_s == pytest.approx(TRUTH_S, abs=2e-4)
    anew = ["epoch,step,seconds", *(f"{e},{s},{SINCE_S[s]:.4f}" for e in range(2) for s in range(20))]
    assert read(tmp_path, "\n".join(anew)).length_s == pytest.approx([*TRUTH_S[:20]] * 2, abs=2e-4)


def test_times_of_each_tenth_step_are_of_ten_steps(tmp_path):
    rows = ["step,elapsed_s", *(f"{step},{5 + SINCE_S[step]:.4f}" for step in range(0, 40, 10))]
    assert read(tmp_path, "\n".join(rows)).length_s == pytest.approx(np.diff(SINCE_S[::10]) / 10, abs=1e-4)


def test_steps_that_grow_longer_are_no_times_since_the_start_and_are_asked_of(tmp_path):
    text = of_ranks("step,rank,seconds", "{step},{rank},{s:.4f}", lengths_s=np.linspace(0.25, 0.3, 40))
    with pytest.raises(WrongSetting, match="--columns seconds=NAME says that they are"):
        read(tmp_path, text)
    assert read(tmp_path, text, columns="seconds=seconds").length_s[-1] == pytest.approx(0.3)
    assert read(tmp_path, text, columns="elapsed=seconds").length_s[-1] == pytest.approx(0.05 / 39, abs=1e-4)
    unsteady = of_ranks("step,rank,seconds", "{step},{rank},{s:.4f}")
    assert read(tmp_path, unsteady).length_s == pytest.approx(TRUTH_S, abs=1e-4)


def test_a_resumed_run_has_all_its_steps(tmp_path):
    rows = [f"{step},{rank},0.25" for step in (*range(30), *range(20, 50)) for rank in range(2)]
    found = read(tmp_path, "\n".join(["step,rank,seconds", *rows, ""]))
    assert (len(found.length_s), found.ranks) == (60, 2)
    assert any("back to 20 at row 61" in note and "20 of them again" in note for note in found.notes)
    killed = [*rows[:59], *rows[60:]]  # before the second rank has logged
    found = read(tmp_path, "\n".join(["step,rank,seconds", *killed, ""]))
    assert len(found.length_s) == 59
    assert any("last step before a new start left out: 1 of 2 ranks" in note for note in found.notes)


@pytest.mark.parametrize(("epoch", "step"), [("epoch,", "step"), ("", "step"), ("epoch,", "batch")])
def test_steps_that_each_epoch_counts_anew_are_all_steps(tmp_path, epoch, step):
    rows = [f"{e},{s},{r},0.25" if epoch else f"{s},{r},0.25" for e in range(3) for s in range(20) for r in range(2)]
    assert len(read(tmp_path, "\n".join([f"{epoch}{step},rank,seconds", *rows, ""])).length_s) == 60


def test_a_step_that_a_rank_has_twice_is_named(tmp_path):
    rows = [f"{step},{who},0.25" for step in range(5) for who in "ab"]
    with pytest.raises(WrongSetting, match=r"row 2: given 'step 0 of rank 0 again'.*--columns rank=NAME"):
        read(tmp_path, "\n".join(["step,who,seconds", *rows, ""]))


def test_ranks_are_told_by_host_and_local_rank(tmp_path):
    rows = [f"{step},{host},{local},0.25" for step in range(30) for host in ("n0", "n1") for local in range(2)]
    found = read(tmp_path, "\n".join(["step,host,local_rank,seconds", *rows, ""]))
    assert (len(found.length_s), found.ranks) == (30, 4)


WANDB = '"Step","rank-0 - perf/step_time","rank-0 - perf/step_time__MIN","rank-1 - perf/step_time"\n'


@pytest.mark.parametrize("columns", [None, "seconds=rank-* - perf/step_time"])
def test_a_column_for_each_rank_is_read(tmp_path, columns):
    text = WANDB + "".join(f'"{step}","{s}","0.1","{s + 0.02}"\n' for step, s in enumerate(TRUTH_S))
    found = read(tmp_path, text, columns=columns)
    assert found.ranks == 2
    assert found.length_s == pytest.approx(TRUTH_S + 0.01)
    assert any("__MIN" in note for note in found.notes)


@pytest.mark.parametrize(
    "heading", ["step,rank0,rank1", "step,rank_0,rank_1", "step,rank0_step_s,rank1_step_s", "step,worker 0,worker 1"]
)
def test_a_column_for_each_rank_may_be_called_by_it_alone(tmp_path, heading):
    text = f"{heading}\n" + "".join(f"{step},{s},{s + 0.02}\n" for step, s in enumerate(TRUTH_S))
    found = read(tmp_path, text)
    assert (found.ranks, found.length_s.tolist()) == (2, pytest.approx((TRUTH_S + 0.01).tolist()))


def test_columns_that_say_no_rank_are_named_by_the_user(tmp_path):
    text = "step,node7/step_time,node9/step_time\n" + "".join(f"{step},{s},{s}\n" for step, s in enumerate(TRUTH_S))
    with pytest.raises(WrongSetting, match=r"step, node7/step_time, node9/step_time.*'seconds=rank-\*"):
        read(tmp_path, text)


def test_steps_with_a_blank_cell_are_left_out_and_counted(tmp_path):
    text = WANDB + "".join(f"{step},{s},0.1,{s if step % 10 else ''}\n" for step, s in enumerate(TRUTH_S, 1))
    found = read(tmp_path, text)
    assert len(found.length_s) == 36
    assert any("4 of 40 steps left out: a rank's time is blank" in note for note in found.notes)
