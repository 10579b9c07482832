"""Statistics and logs of the AMB repository with cells, columns and lines that do not belong."""

from collections.abc import Iterator
from pathlib import Path

from damage.base import Case, texts_of


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
                text = changed.get(which, _csv(CSV[which].split(","), *rows))
                (folder / f"x_{which}_stats.csv").write_text(text)
            return [str(folder / "x_worker_stats.csv"), "--from", "amb-csv"]

        return f"csv: {name}", write

    yield case("as it is", {})
    cells = ("", "x", "nan", "inf", "-1", "0", "0.5", "1e300", str(10**18), str(10**400), "True", "\0", '"', "1,2")
    for which, rows in tables.items():
        heads = CSV[which].split(",")
        for column, heading in enumerate(heads):
            for cell in cells:
                for lines in ([3], range(len(rows))):
                    new = [[*r[:column], cell, *r[column + 1 :]] if i in lines else r for i, r in enumerate(rows)]
                    yield case(f"{which} {heading} {cell!r:.20} in {len(lines)}", {which: _csv(heads, *new)})
            kept = ([*row[:column], *row[column + 1 :]] for row in (heads, *rows))
            yield case(f"{which} without {heading}", {which: _csv(*kept)})
        text = _csv(heads, *rows)
        texts = {"empty": "", "no rows": _csv(heads), "no head": _csv(*rows), "cut": text[:-7], "binary": "\0\1\2"}
        texts |= {"doubled": _csv(heads, *rows, *rows), "backwards": _csv(heads, *rows[::-1]), "quoted": '"' * 99}
        for name, changed in texts.items():
            yield case(f"{which} {name}", {which: changed})


def _csv(*rows: list) -> str:
    return "".join(",".join(map(str, row)) + "\n" for row in rows)


def _logs() -> Iterator[Case]:
    """Numbers and lines of the AMB repository's logs."""
    form = "21:30:05---|dstr.wk{}|Sending [{}] examples, sleep_time [{}], compute_time [{}], last_idle [{}], last_send [{}]"
    lines = [
        [rank, 8, 0.1, 1.2, -1 if step == 0 else 0.1, -1 if step == 0 else 0.2] for step in range(9) for rank in (1, 2)
    ]

    case = texts_of("log", "x.log", "--from", "amb-log")
    whole_text = "\n".join(form.format(*line) for line in lines)
    yield case("as it is", whole_text)
    odd = ("", "x", "nan", "inf", "-1", "0", "0.5", "1e300", "1e999", "9" * 18, "9" * 400, "1.2.3", "[")
    for column, name in enumerate(("rank", "samples", "sleep", "compute", "idle", "send")):
        for value in odd:
            for at in ([5], range(len(lines))):
                new = [[*one[:column], value, *one[column + 1 :]] if i in at else one for i, one in enumerate(lines)]
                yield case(f"{name} {value:.9} in {len(at)}", "\n".join(form.format(*line) for line in new))
    for name, text in {"empty": "", "binary": "\0\1", "cut": whole_text[:-30]}.items():
        yield case(name, text)
