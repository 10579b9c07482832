"""Traces in files: what is written is read, in both formats, of every protocol; what was damaged or cannot be is refused."""

import json
from functools import cache

import event
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scenarios import ANYWHERE

from sim import laws, stragglers
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.model import workload
from sim.model.costs import Costs
from sim.protocols import make
from sim.recording import traces
from sim.recording.traces import Activity, Trace

SUFFIXES = (".parquet", ".jsonl")


def written(trace, folder, suffix):
    path = folder / f"t{suffix}"
    trace.write(path)
    return path


@cache
def run(name):
    tested = 0 if name == "hybrid" else 8
    job = {"workers": 3, "steps": 3, "warmup": 1, "batch": 64, "test_size": tested, "evaluate_every": 2}
    law = {"stragglers": stragglers.read("niagara*0.05"), "stragglers_name": "niagara*0.05"}
    return event.trace(Scenario(make(name), workload.NAMED["lstm_lm" if name == "hybrid" else "mlp"], **job, **law))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", ANYWHERE)
def test_a_trace_is_read_as_it_was_written(tmp_path, name, suffix):
    """Its rows are such as its header allows, whatever the order of messages: workers with sleeps make unequal steps."""
    trace = run(name)
    again = traces.read(written(trace, tmp_path, suffix))
    assert again.header == trace.header
    assert again.rows.equals(traces.typed(trace.rows))


def test_a_worker_may_make_many_steps_in_a_window_of_its_master(tmp_path):
    """Its master updates by the clock, and gradients take a tenth of that."""
    protocol = make("amb-dg", ["time_limit_s=1ms", "partitions=1", "window_s=0.2"])
    trace = event.trace(Scenario(protocol, workload.NAMED["mlp"], workers=1, steps=4, warmup=1, batch=8))
    assert trace.rows["step"].max() > 3 * 5
    assert traces.read(written(trace, tmp_path, ".parquet")).rows.equals(traces.typed(trace.rows))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_trace_without_rows(tmp_path, header, suffix):
    assert len(traces.read(written(Trace.of(header, []), tmp_path, suffix)).rows) == 0


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("of", "setting"),
    [
        (lambda head: Trace(head, pd.DataFrame({"a": [1]})), "rows"),
        (lambda head: Trace(head, 5), "rows"),
        (lambda head: Trace(head, np.zeros(3)), "rows"),
        (lambda head: Trace(head, Trace.of(head, [FIRST]).rows.assign(bytes="many")), "rows"),
        (lambda head: Trace("fmb", Trace.of(head, [FIRST]).rows), "header"),
    ],
)
def test_what_is_no_trace_is_not_written(tmp_path, header, suffix, of, setting):
    with pytest.raises(WrongSetting, match=f"^{setting}: given "):
        written(of(header), tmp_path, suffix)
    assert not list(tmp_path.iterdir())


def test_a_model_that_a_program_made_is_read_as_it_was(tmp_path):
    """Its laws are written with their kind, though nobody gave it."""
    own = workload.NAMED["mlp"].model_copy(update={"name": "own", "costs": Costs(noise=laws.LogNormal(cv=0.1))})
    trace = event.trace(Scenario(make("fmb"), own, workers=2, steps=3, warmup=0, batch=8))
    assert traces.read(written(trace, tmp_path, ".jsonl")).header == trace.header


FIRST = Activity(0.0, 1.0, 1, 0, "compute", samples=8)
IMPOSSIBLE = [
    *({name: value} for name in ("start_s", "end_s") for value in (float("nan"), float("inf"), 1e300, -1e300)),
    *({name: value} for name in ("rank", "step", "samples", "bytes", "peer", "version") for value in (-2, 10**18)),
    *({"rank": 2}, {"peer": 2}, {"step": 11}, {"end_s": -0.5}, {"activity": "nap"}, {"activity": ""}, {"samples": 9}),
]


@pytest.mark.parametrize("change", IMPOSSIBLE, ids=str)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_row_that_no_run_can_have_is_refused_by_its_column(tmp_path, header, suffix, change):
    """Of two ranks, three rounds and batches of 8; with a checksum that is right."""
    path = written(Trace.of(header, [FIRST, FIRST._replace(**change)]), tmp_path, suffix)
    with pytest.raises(WrongSetting, match=next(iter(change))) as refused:
        traces.read(path)
    assert "\n" not in str(refused.value)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_flipped_bit_is_seen_wherever_it_is(tmp_path, trace, suffix):
    """Or it says nothing: in the padding of a parquet file, or a name of who wrote it."""
    path = written(trace, tmp_path, suffix)
    whole, seen = path.read_bytes(), 0
    for at in range(0, len(whole), 31):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        try:
            found = traces.read(path)
        except WrongSetting as refused:
            seen += "\n" not in str(refused)
        else:
            assert found.header == trace.header
            assert found.rows.equals(traces.typed(trace.rows))
    assert seen > len(whole) / 31 / 4


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_was_cut_is_refused(tmp_path, trace, suffix):
    path = written(trace, tmp_path, suffix)
    whole = path.read_bytes()
    for end in range(0, len(whole) - 1, 53):
        path.write_bytes(whole[:end])
        with pytest.raises(WrongSetting):
            traces.read(path)


def lines(path, change):
    head, *rows = path.read_text().splitlines()
    path.write_text("\n".join([head, *change(rows)]) + "\n")


@pytest.mark.parametrize("change", [lambda rows: rows[1:], lambda rows: rows[::-1], lambda rows: [*rows, rows[-1]]])
def test_lines_that_were_lost_moved_or_doubled_are_seen(tmp_path, trace, change):
    path = written(trace, tmp_path, ".jsonl")
    lines(path, change)
    with pytest.raises(WrongSetting, match="damaged or edited"):
        traces.read(path)


@pytest.mark.parametrize("row", ["", "{}", "[0, 1]", f'[0.0, 1.0, 1, 0, "compute", {10**30}, 0, -1, 0]', "[" * 999])
def test_a_line_that_is_no_row_is_named(tmp_path, trace, row):
    path = written(trace, tmp_path, ".jsonl")
    lines(path, lambda rows: [rows[0], row, *rows[1:]])
    with pytest.raises(WrongSetting, match=r"t\.jsonl: line 3"):
        traces.read(path)


COLUMNS = {
    "missing": lambda table: table.drop_columns(["peer"]),
    "one more": lambda table: table.append_column("more", table["peer"]),
    "text": lambda table: retyped(table, "rank", pa.string()),
    "of 32 bits": lambda table: retyped(table, "rank", pa.int32()),
    "real": lambda table: retyped(table, "rank", pa.float64()),
    "nothing": lambda table: table.set_column(2, "rank", pa.nulls(len(table), pa.int64())),
    "no header": lambda table: table.replace_schema_metadata({}),
}


def retyped(table, name, kind):
    at = table.column_names.index(name)
    return table.set_column(at, name, table[name].cast(kind, safe=False))


@pytest.mark.parametrize("change", COLUMNS.values(), ids=list(COLUMNS))
def test_columns_that_are_no_trace_s(tmp_path, trace, change):
    path = written(trace, tmp_path, ".parquet")
    pq.write_table(change(pq.read_table(path)), path)
    with pytest.raises(WrongSetting, match=r"t\.parquet"):
        traces.read(path)


@pytest.mark.slow
def test_a_file_of_nothing_but_rows_is_no_bomb(tmp_path, header):
    """A column of equal values takes no space, and a thousand million of them would take all memory."""
    table = pa.table({name: pa.array([1], pa.int64()).take(pa.array([0] * 3_000_000)) for name in ("rank",)})
    columns = {name: table["rank"].cast(kind) for name, kind in traces.TYPES.items()}
    activity = pa.array(["wait"]).take(pa.array([0] * 3_000_000))
    whole = pa.table({name: columns.get(name, activity) for name in Activity._fields})
    path = tmp_path / "t.parquet"
    pq.write_table(whole.replace_schema_metadata({"header": header.text()}), path)
    assert path.stat().st_size < 200_000
    with pytest.raises(WrongSetting, match="no more than a file of this size holds"):
        traces.read(path)


def parts(folder, header, *rows):
    folder.mkdir()
    (folder / "header.json").write_text(header.text())
    traces.part_file(folder, 0).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_the_parts_of_a_growing_trace(tmp_path, header):
    """A row that a crash cut short is dropped; one that cannot be is refused by its part and line."""
    folder = parts(tmp_path / "a.parts", header, FIRST)
    with traces.part_file(folder, 1).open("w") as file:
        file.write(json.dumps(FIRST) + "\n[0.0, 1.")
    assert len(traces.read(folder).rows) == 2
    with pytest.raises(WrongSetting, match=r"rank-00000\.jsonl: line 2: rank"):
        traces.read(parts(tmp_path / "b.parts", header, FIRST, [0.0, 1.0, "x", 0, "wait", 0, 0, -1, 0]))
    with pytest.raises(WrongSetting, match="row 0: rank"):
        traces.read(parts(tmp_path / "c.parts", header, FIRST._replace(rank=5)))


def test_a_header_edited_by_hand_is_seen(tmp_path, trace):
    path = written(trace, tmp_path, ".jsonl")
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 1', 1))
    with pytest.raises(WrongSetting, match="damaged or edited"):
        traces.read(path)
