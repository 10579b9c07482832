"""A run that is started again: its checkpoint, the trace of the whole, and what it lost."""

from dataclasses import replace

import numpy as np
import pytest

from real.launching import supervisor
from real.recording import growing_trace
from real.recording.attempts import Attempts, Checkpoint, shares
from sim.base.errors import WrongSetting
from sim.recording.traces import Activity, Trace, part_file


@pytest.fixture
def attempts(tmp_path):
    found = Attempts(tmp_path / "attempts")
    (tmp_path / "attempts").mkdir()
    found.begin(10)
    return found


def test_a_checkpoint_is_read_as_it_was_written(attempts):
    assert attempts.checkpoint() is None
    kept = Checkpoint(20, np.arange(3, dtype=np.float32), [np.array(20), np.ones(3)], [(9, 0.5, 0.9)])
    attempts.keep(kept)
    found = attempts.checkpoint()
    assert (found.step, found.evaluations, found.size_bytes) == (20, kept.evaluations, kept.size_bytes)
    np.testing.assert_array_equal(found.parameters, kept.parameters)
    assert [array.tolist() for array in found.optimiser] == [20, [1.0, 1.0, 1.0]]


def attempt(folder, header, rows):
    """The parts that an attempt has left when it died."""
    parts = growing_trace.folder(str(folder / "t.parquet"))
    growing_trace.begin(parts, replace(header, complete=False))
    for rank in range(2):
        lines = [str(list(row)).replace("'", '"') + "\n" for row in rows if row.rank == rank]
        part_file(parts, rank).write_text("".join(lines))
    return parts


def test_the_whole_trace_has_each_step_once_and_all_of_the_time(attempts, header, tmp_path):
    """Step 0 counts, step 1 was in vain; the second attempt died before it trained; the third does steps 1 and 2."""
    assert attempts.resumed(100.0, 0) == 100.0
    rows = [Activity(0.0, 2.0, r, 0, "update") for r in (0, 1)] + [Activity(2.0, 3.0, r, 1, "update") for r in (0, 1)]
    attempts.died(103.5, attempt(tmp_path, header, rows))
    attempts.died(105.0, tmp_path / "none")
    assert attempts.resumed(110.0, 1) == 100.0
    last = [Activity(10.0 + s, 11.0 + s, r, 1 + s, "update") for s in (0, 1) for r in (0, 1)]
    whole = attempts.whole(Trace.of(header, last))
    assert whole.header.details["restarts"] == 2
    for rank in (0, 1):
        mine = whole.rows[whole.rows["rank"] == rank].sort_values("start_s")
        found = list(mine[["activity", "step", "start_s", "end_s"]].itertuples(index=False, name=None))
        assert found == [
            ("update", 0, 0.0, 2.0),
            ("lost", 1, 2.0, 3.5),
            ("restart", 1, 3.5, 10.0),
            ("update", 1, 10.0, 11.0),
            ("update", 2, 11.0, 12.0),
        ]
    assert shares(whole) == pytest.approx({"checkpoint": 0, "lost": 1.5 / 12, "restart": 6.5 / 12})


def test_a_rank_that_dies_after_the_answer_does_no_harm(attempts):
    assert not attempts.ended
    attempts.end()
    assert attempts.ended


def test_failures_come_as_often_as_was_asked_for():
    """Each of three ranks once in 30 s: ten seconds between failures, whatever happens meanwhile."""
    failing, times = supervisor.Failing(0, 30.0, 3), []
    for _ in range(2000):
        times.append(failing.next_s)
        failing.past(failing.next_s + 1e-9)
    gaps = np.diff(times)
    assert gaps.mean() == pytest.approx(10, rel=0.1)  # five standard errors
    assert gaps.std() == pytest.approx(10, rel=0.15)


@pytest.mark.parametrize("text", ["restart=3 s", "mtbf=30 s, restart=9 s", "mtbf=0 s", "often"])
def test_failures_for_real_have_their_rate_alone(text):
    with pytest.raises(WrongSetting, match="--failures"):
        supervisor.mtbf_s(text)
    assert supervisor.mtbf_s("mtbf=2 min") == 120
