"""Imported logs become traces with the seconds and samples that were logged; malformed ones are named by file and line."""

import gzip

import numpy as np
import pytest

from calibration.importers import amb_csv, amb_log
from calibration.importers.about import About
from sim.answers.outcome import of_trace
from sim.base.errors import WrongSetting

WORKER = "time,step,rank,num_samples,compute_time,compute_time_master\n"
MASTER = "time,loss,learning_rate,step,accuracy\n"


def write_pair(folder, workers, times_s, name="run"):
    rows = [f"0,{step},{rank},{samples},{busy_s},0" for step, rank, samples, busy_s in workers]
    (folder / f"{name}_worker_stats.csv").write_text(WORKER + "\n".join(rows) + "\n")
    (folder / f"{name}_master_stats.csv").write_text(
        MASTER + "\n".join(f"{t},1,1,{i},1" for i, t in enumerate(times_s, 1)) + "\n"
    )


FMB = [(1, 1, 8, 1.0), (1, 2, 8, 1.5), (2, 1, 8, 2.0), (2, 2, 8, 1.0), (3, 1, 8, 1.0), (3, 2, 8, 1.0)]


def csv(path):
    return amb_csv.read(path, About("cifar10", "niagara"))[0]


def log(path):
    return amb_log.read(path, About("cifar10", "niagara"))[0]


def test_csv_keeps_rounds_and_samples(tmp_path):
    write_pair(tmp_path, FMB, [100.0, 102.25, 103.5])
    (trace,) = csv(tmp_path)
    assert (trace.header.protocol, trace.header.workers, trace.header.batch) == ("fmb", 2, 8)
    outcome = of_trace(trace)
    assert outcome.step_s[0] == pytest.approx([2.25, 1.25])
    assert list(outcome.samples[0]) == [16, 16]


def test_csv_leaves_communication_to_the_master(tmp_path):
    write_pair(tmp_path, FMB, [100.0, 102.25, 103.5])
    rows = csv(tmp_path)[0].rows
    update = rows[(rows["activity"] == "update")].sort_values("step")
    assert (update["end_s"] - update["start_s"]).to_numpy() == pytest.approx([0, 0.25, 0.25])


def test_csv_of_unequal_counts_is_anytime(tmp_path):
    write_pair(tmp_path, [(1, 1, 6, 1.1), (1, 2, 9, 1.2), (2, 1, 12, 1.0), (2, 2, 9, 1.3)], [5.0, 7.0])
    header = csv(tmp_path)[0].header
    assert (header.protocol, header.batch, header.settings) == ("amb", 12, {"time_limit_s": 1.0, "partitions": 4})


def test_csv_by_either_file_of_the_pair(tmp_path):
    write_pair(tmp_path, FMB, [1.5, 4.0, 6.0], "a")
    write_pair(tmp_path, FMB, [1.5, 4.0, 6.0], "b")
    assert [t.header.cluster for t in csv(tmp_path)] == ["a", "b"]
    assert [t.header.cluster for t in csv(tmp_path / "b_master_stats.csv")] == ["b"]
    assert [t.header.cluster for t in csv(tmp_path / "b_worker_stats.csv")] == ["b"]


def test_workers_rows_past_the_masters_last_are_left_out(tmp_path):
    write_pair(tmp_path, FMB, [100.0, 102.25])
    assert csv(tmp_path)[0].rows["step"].max() == 1


@pytest.mark.parametrize(
    ("workers", "times_s", "said"),
    [
        ([(1, 1, 8, "x")], [1.0], "run_worker_stats.csv: row 1"),
        ([(1, 1, 8, 1.0), (1, 2, 8, -1.0)], [1.0], "run_worker_stats.csv: row 2"),
        (FMB, [1.0, "y"], "run_master_stats.csv: row 2"),
        (FMB, [3.0, 2.0], "rising times"),
        (FMB, [3.0, 4.0], "round 2"),  # the slowest worker alone took 2 s
        ([(1, 0, 8, 1.0), (1, 1, 8, 1.0)], [1.0], "ranks: given '0, 1'"),
        ([(1, 1, 8, 1.0), (1, 999999999, 8, 1.0)], [1.0], "ranks: given '1, 999999999'"),
        ([(1, 1, 8, 1.0), (1, 1, 8, 1.0)], [1.0], "lines: given '2, 1 of them different'"),
        ([(1, 1, 8, 1.0), (1, 2, 8, 1.0), (2, 1, 8, 1.0)], [1.0, 3.0], "lines: given '3, 3 of them different'"),
        ([(1, 1.5, 8, 1.0)], [1.0], "run_worker_stats.csv: row 1"),
        ([(1, 1, 8, 1e300)], [1.0], "run_worker_stats.csv: row 1"),
        ([(1, 1, 0, 1.0), (2, 1, 0, 1.0)], [1.0, 3.0], "run: batch: given 0"),
        ([], [1.0], "at least one complete round"),
    ],
)
def test_malformed_csv_is_named(tmp_path, workers, times_s, said):
    write_pair(tmp_path, workers, times_s)
    with pytest.raises(WrongSetting) as caught:
        csv(tmp_path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", WORKER + "1,2,3,4,5,6,7,8\n", '"'])
def test_no_such_columns(tmp_path, text):
    write_pair(tmp_path, FMB, [1.5])
    (tmp_path / "run_worker_stats.csv").write_text(text)
    with pytest.raises(WrongSetting, match=r"run_worker_stats\.csv"):
        csv(tmp_path)


def test_no_pair(tmp_path):
    with pytest.raises(WrongSetting, match="--from amb-csv"):
        csv(tmp_path)
    with pytest.raises(WrongSetting, match="--from amb-csv"):
        csv(tmp_path / "nothing.txt")
    (tmp_path / "run_worker_stats.csv").write_text(WORKER)
    with pytest.raises(WrongSetting, match=r"run_master_stats\.csv.*No such file"):
        csv(tmp_path)


PLAIN = "Sending [256] examples, compute_time [{}], last_idle [{}], last_send [{}]"
SLEPT = (
    "21:29:53---|dstr.wk{}|Sending [242] examples, sleep_time [{}], compute_time [{}], last_idle [{}], last_send [{}]"
)


def test_log_in_the_repositorys_form(tmp_path):
    """The form of the AMB repository; a round is computation and what the next line says of it."""
    path = tmp_path / "worker.log"
    path.write_text(
        "\n".join(["hello", PLAIN.format("5.0", -1, -1), PLAIN.format("5.63961", "0.267534", "0.244859"), ""])
    )
    (trace,) = log(path)
    assert (trace.header.workers, trace.header.batch, trace.header.sleep_in_compute) == (1, 256, True)
    assert trace.rows["end_s"].max() == pytest.approx(5.0 + 0.267534 + 0.244859)


def test_log_with_sleeps_and_ranks(tmp_path):
    lines = [(1, 0, 5, -1, -1), (2, 2, 7, -1, -1), (2, 1, 6, 0.3, 0.2), (1, 0, 5, 0.3, 2.2), (1, 0, 5, 0.3, 1.2)]
    lines.append((2, 0, 5, 0.3, 0.2))
    path = tmp_path / "run.log"
    path.write_text("\n".join(SLEPT.format(*line) for line in lines))
    (trace,) = log(path)
    rows = trace.rows[trace.rows["rank"] == 2]
    assert not trace.header.sleep_in_compute
    assert of_trace(trace).step_s[0] == pytest.approx([6.5])
    length_s = (rows["end_s"] - rows["start_s"]).groupby([rows["step"], rows["activity"]]).sum()
    assert length_s[0, "sleep"] == pytest.approx(2)
    assert length_s[1, "compute"] == pytest.approx(5)


def test_what_launchers_add_to_a_log_changes_nothing(tmp_path):
    lines = [PLAIN.format(5, -1, -1), PLAIN.format(5, 0.3, 0.2), PLAIN.format(6, 0.3, 0.2)]
    (tmp_path / "plain").write_text("\n".join(lines) + "\n")
    plain = log(tmp_path / "plain")[0].rows
    (tmp_path / "tagged").write_text("".join(f"[1,0]<stdout>:{line}\r\n" for line in lines))
    (tmp_path / "packed.gz").write_bytes(gzip.compress("".join(f"0: {line}\n" for line in lines).encode()))
    (tmp_path / "cut").write_text("\n".join([*lines, lines[2][:40]]))
    for name in ("tagged", "packed.gz", "cut"):
        assert log(tmp_path / name)[0].rows.equals(plain)
    assert amb_log.read(tmp_path / "plain", About())[1][1:] == ["the last round is left out: its end is not logged"]
    assert amb_log.read(tmp_path / "cut", About())[1][2:] == ["1 last line left out: cut"]


def test_rows_that_are_left_out_are_counted(tmp_path):
    write_pair(tmp_path, FMB, [100.0, 102.25])
    assert amb_csv.read(tmp_path, About())[1][1:] == [
        "run_worker_stats.csv: 2 rows left out, of rounds past the last one of the master"
    ]


def test_log_folder_is_a_file_a_worker(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text("\n".join([PLAIN.format(5, -1, -1), PLAIN.format(5, 0.3, 0.2)]))
    assert log(tmp_path)[0].header.workers == 2


@pytest.mark.parametrize(
    "line", ["Sending [256] examples", "Sending [x] examples, compute_time [1]", PLAIN.format("1.2.3", 1, 1)]
)
def test_malformed_log_line_is_named(tmp_path, line):
    path = tmp_path / "run.log"
    path.write_text(PLAIN.format(5, -1, -1) + "\n" + line + "\n")
    with pytest.raises(WrongSetting, match=r"run\.log: line 2"):
        log(path)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (PLAIN.format(5, -1, 0.2), "both -1 at first"),
        (PLAIN.format(5, -1, -1), "last_idle .-1. after the first round"),
        (PLAIN.format("-5", 0.3, 0.2), "from 0 to 1e"),
        (SLEPT.format(1, 0, 5, 0.3, 0.2), "rank: given 'missing in 1 of 2 lines'"),
        (SLEPT.format(1, 9, 5, 0.3, 0.2), "a sleep_time that is in the compute_time"),
    ],
)
def test_log_lines_that_cannot_be(tmp_path, line, words):
    path = tmp_path / "run.log"
    path.write_text(PLAIN.format(5, -1, -1) + "\n" + line + "\n" + PLAIN.format(5, 0.3, 0.2) * (words[0] == "l") + "\n")
    with pytest.raises(WrongSetting, match=words):
        log(path)


def test_log_without_rounds(tmp_path):
    path = tmp_path / "run.log"
    path.write_text("nothing here\n")
    with pytest.raises(WrongSetting, match="at least two"):
        log(path)
    with pytest.raises(WrongSetting, match="No such file"):
        log(tmp_path / "missing.log")


def test_rows_are_of_the_record(tmp_path):
    """What was imported is written and read as any other trace."""
    from sim.recording import traces

    write_pair(tmp_path, FMB, [100.0, 102.25, 103.5])
    (trace,) = csv(tmp_path)
    trace.write(tmp_path / "t.jsonl")
    again = traces.read(tmp_path / "t.jsonl")
    assert again.header == trace.header
    assert np.allclose(again.rows["end_s"], trace.rows["end_s"])
