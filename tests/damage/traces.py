"""Headers, columns, bytes and parts of traces that were damaged."""

import json
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from damage.base import ODD, Case, Written, flipped, trace_file, whole
from sim.job.header import Header
from sim.recording.traces import Activity


def cases() -> Iterator[Case]:
    """Headers first."""
    yield from _headers()
    yield from _columns()
    yield from _bytes()
    yield from _parts()


def _headers() -> Iterator[Case]:
    """Each field with each odd value, another's, or without it."""
    head, rows = json.loads(whole("texts").header.text()), whole("texts").rows
    for name in (one.name for one in fields(Header)):
        yield f"header without {name}", trace_file({key: value for key, value in head.items() if key != name}, rows)
        for value in ODD:
            yield f"header: {name} {value!r:.20}", trace_file(head | {name: value}, rows)
    others = {
        **{"protocol": "amb", "world": "event", "workload": "toy_fc", "workers": 3, "steps": 10**6, "warmup": 10**6},
        **{"batch": 4096, "stragglers": "niagara", "servers": 2, "updates_per_step": 2, "sleep_in_compute": True},
        **{"communication_in_update": True, "settings": {"time_limit_s": 1e9}, "hosts": [["a", 1], ["b", 10**6]]},
        "law": {"kind": "constant", "value": 1e11},
    }
    for name, value in others.items():
        yield f"header: another {name}", trace_file(head | {name: value}, rows)
    for protocol in ("os:system", "this", ":", "a:", "sim.texts.fmb:FixedMinibatch", "json:loads"):
        yield f"header: protocol {protocol}", trace_file(head | {"protocol": protocol}, rows)
    for text in ("null", "[]", "3", '"x"', "", "{", "[" * 9999, json.dumps(head)[:-9]):
        yield f"header {text:.9}", _lines(lambda lines, text=text: [text, *lines[1:]])
    yield "header of the other kind", trace_file(json.loads(whole("servers").header.text()), rows)


def _lines(change: Callable[[list[str]], list[str]]) -> Written:
    def write(folder: Path) -> list[str]:
        path = folder / "t.jsonl"
        whole("texts").write(path)
        path.write_text("\n".join(change(path.read_text().split("\n"))))
        return [str(path)]

    return write


def _columns() -> Iterator[Case]:
    """Each column missing, renamed, of another type, of lists, of nothing."""

    def rewritten(change: Callable[[pa.Table], pa.Table]) -> Written:
        def write(folder: Path) -> list[str]:
            path = folder / "t.parquet"
            whole("texts").write(path)
            pq.write_table(change(pq.read_table(path)), path)
            return [str(path)]

        return write

    def replaced(table: pa.Table, name: str, values) -> pa.Table:
        return table.set_column(table.column_names.index(name), name, values)

    for name in Activity._fields:
        yield f"no column {name}", rewritten(lambda table, name=name: table.drop_columns([name]))
        yield f"column {name} renamed", rewritten(lambda table, name=name: table.rename_columns({name: "x"}))
        others = {
            "text": lambda table: pa.array(["x"] * len(table)),
            "lists": lambda table: pa.array([[1]] * len(table)),
            "nulls": lambda table: pa.nulls(len(table), pa.float64()),
            "a null": lambda table: pa.array([None] + [1] * (len(table) - 1)),
            "fractions": lambda table: pa.array([0.5] * len(table)),
            "small numbers": lambda table: pa.array([1] * len(table), pa.int8()),
            "bytes": lambda table: pa.array([b"\xff"] * len(table)),
        }
        for kind, values in others.items():
            changed = lambda table, name=name, values=values: replaced(table, name, values(table))  # noqa: E731
            yield f"column {name} of {kind}", rewritten(changed)
    yield "no columns", rewritten(lambda table: table.select([]))
    yield "no metadata", rewritten(lambda table: table.replace_schema_metadata({}))


def _bytes() -> Iterator[Case]:
    """Cut, flipped, and what is no trace at all."""

    def changed(suffix: str, change: Callable[[bytes], bytes]) -> Written:
        def write(folder: Path) -> list[str]:
            path = folder / f"t{suffix}"
            whole("texts").write(path)
            path.write_bytes(change(path.read_bytes()))
            return [str(path)]

        return write

    for suffix in (".parquet", ".jsonl"):
        for part in range(9):
            yield f"{suffix} cut at {part} / 9", changed(suffix, lambda b, part=part: b[: len(b) * part // 9])
        for part in range(24):
            flip = lambda b, part=part: flipped(b, len(b) * part // 24)  # noqa: E731
            yield f"{suffix} flipped at {part} / 24", changed(suffix, flip)
        for what in (b"", b"\0" * 99, b"PAR1", b"PAR1" * 9, b"text\n", b"\xff\xfe", b"[1]\n[2]\n", b"{}\n"):
            yield f"{suffix} is {what[:9]}", changed(suffix, lambda _, what=what: what)
    for suffix in ("", ".txt", ".csv"):
        yield f"a file called t{suffix}", _file(suffix)


def _file(suffix: str) -> Written:
    def write(folder: Path) -> list[str]:
        (folder / f"t{suffix}").write_text("x")
        return [str(folder / f"t{suffix}")]

    return write


def _parts() -> Iterator[Case]:
    """Folders of growing traces."""

    def folder_of(change: Callable[[Path], None]) -> Written:
        def write(folder: Path) -> list[str]:
            parts = folder / "t.parts"
            parts.mkdir()
            (parts / "header.json").write_text(whole("texts").header.text())
            for rank, rows in whole("texts").rows.groupby("rank"):
                lines = (json.dumps(row) + "\n" for row in rows.itertuples(index=False, name=None))
                (parts / f"rank-{rank:05d}.jsonl").write_text("".join(lines))
            change(parts)
            return [str(parts)]

        return write

    def one(change: Callable[[bytes], bytes]) -> Written:
        def of(parts: Path) -> None:
            path = parts / "rank-00001.jsonl"
            path.write_bytes(change(path.read_bytes()))

        return folder_of(of)

    yield "parts as they are", folder_of(lambda parts: None)
    yield "parts without a header", folder_of(lambda parts: (parts / "header.json").unlink())
    yield "parts of one rank", folder_of(lambda parts: (parts / "rank-00002.jsonl").unlink())
    yield "a part that is a folder", folder_of(lambda parts: (parts / "rank-00009.jsonl").mkdir())
    for value in ("null", "[]", "3", "{}", ""):
        headed = lambda parts, value=value: (parts / "header.json").write_text(value)  # noqa: E731
        yield f"parts with header {value}", folder_of(headed)
    for part in range(12):
        yield f"part flipped at {part} / 12", one(lambda b, part=part: flipped(b, len(b) * part // 12))
        yield f"part cut at {part} / 12", one(lambda b, part=part: b[: len(b) * part // 12])
    for what in (b"", b"\n", b"\0\n", b"[]\n", b"null\n", b'["x"]\n', b"[1e999,0,0,0,0,0,0,0,0]\n"):
        yield f"part is {what!r}", one(lambda _, what=what: what)
