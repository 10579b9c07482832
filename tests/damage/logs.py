"""Statistics and logs of the AMB repository with cells, columns and lines that do not belong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from damage.base import Case


def cases() -> Iterator[Case]:
    """Statistics first."""
    yield from _statistics()
    yield from _logs()


CSV = {
    "worker": "time,step,rank,num_samples,compute_time,compute_time_master",
    "master": "time,loss,learning_rate,step,accuracy",
}


def _statistics() -> Iterator[Case]:
    """Cells, columns and lines of the AMB repository's statistics."""
    worker = [[0, step, rank, 8, round(1 + 0.01 * (step * rank % 5), 3), 0] for step in range(1, 9) for rank in (1, 2)]
    master = [[1.5 * step, 1, 1, step, 1] for step in range(1, 9)]
    tables = {"worker": worker, "master": master}

    def case(name: str, changed: dict[str, str]) -> Case:
        def write(folder: Path) -> list[str]:
            for which, rows in tables.items():
                text = "\n".join([CSV[which], *(",".join(map(str, row)) for row in rows)]) + "\n"
                (folder / f"x_{which}_stats.csv").write_text(changed.get(which, text))
            return [str(folder / "x_worker_stats.csv"), "--from", "amb-csv"]

        return f"csv: {name}", write

    yield case("as it is", {})
    cells = (
        "",
        "x",
        "nan",
        "inf",
        "-1",
        "0",
        "0.5",
        "1e300",
        str(10**18),
        str(10**400),
        "True",
        "\0",
        '"',
        "1,2",
        "999999999",
    )
    for which, rows in tables.items():
        for column, heading in enumerate(CSV[which].split(",")):
            for cell in cells:
                for lines in ([3], range(len(rows))):
                    new = [
                        [*row[:column], cell, *row[column + 1 :]] if i in lines else row for i, row in enumerate(rows)
                    ]
                    text = "\n".join([CSV[which], *(",".join(map(str, row)) for row in new)]) + "\n"
                    yield case(f"{which} {heading} {cell!r:.20} in {len(lines)}", {which: text})
            heads = CSV[which].split(",")
            kept = [[cell for i, cell in enumerate(row) if i != column] for row in (heads, *rows)]
            yield case(f"{which} without {heading}", {which: "\n".join(",".join(map(str, row)) for row in kept) + "\n"})
        body = [",".join(map(str, row)) for row in rows]
        texts = {
            "empty": "", "no rows": CSV[which] + "\n", "no head": "\n".join(body), "cut": "\n".join([CSV[which], *body])[:-7],
            "doubled": "\n".join([CSV[which], *body, *body]), "backwards": "\n".join([CSV[which], *body[::-1]]),
            "one row": "\n".join([CSV[which], body[0]]), "binary": "\0\1\2", "quoted": '"' * 99,
        }  # fmt: skip
        for name, text in texts.items():
            yield case(f"{which} {name}", {which: text})


def _logs() -> Iterator[Case]:
    """Numbers and lines of the AMB repository's logs."""
    form = "21:30:05---|dstr.wk{}|Sending [{}] examples, sleep_time [{}], compute_time [{}], last_idle [{}], last_send [{}]"
    lines = [
        [rank, 8, 0.1, 1.2, -1 if step == 0 else 0.1, -1 if step == 0 else 0.2] for step in range(9) for rank in (1, 2)
    ]

    def case(name: str, text: str) -> Case:
        def write(folder: Path) -> list[str]:
            (folder / "x.log").write_text(text)
            return [str(folder / "x.log"), "--from", "amb-log"]

        return f"log: {name}", write

    whole_text = "\n".join(form.format(*line) for line in lines)
    yield case("as it is", whole_text)
    odd = ("", "x", "nan", "inf", "-1", "-9", "0", "0.5", "1e300", "1e999", "9" * 18, "9" * 400, "1.2.3", "[", "5e")
    for column, name in enumerate(("rank", "samples", "sleep", "compute", "idle", "send")):
        for value in odd:
            for at in ([5], range(len(lines))):
                new = [
                    [*line[:column], value, *line[column + 1 :]] if i in at else line for i, line in enumerate(lines)
                ]
                yield case(f"{name} {value:.9} in {len(at)}", "\n".join(form.format(*line) for line in new))
    for name, text in {
        "empty": "",
        "one line": form.format(*lines[0]),
        "binary": "\0\1",
        "cut": whole_text[:-30],
    }.items():
        yield case(name, text)
