"""Compare two answers: `python -m sim.report a.json b.json`, each printed by `sim.run --json` or `real.run --json`."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING

from sim import command, reports
from sim.base.errors import printable
from sim.base.files import check_outputs
from sim.base.home import installed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from sim.answers.basis import Number
    from sim.studies.two_answers import Comparison


def parser() -> command.Parser:
    """The command line."""
    made = command.Parser(
        prog="sim.report",
        description="Compare two answers: settings that differ, the ratio of their throughputs, the numbers that each rests on.",
    )
    made.add_argument("base", metavar="A.json", help="an answer that sim.run --json or real.run --json printed")
    made.add_argument("changed", metavar="B.json", help="another one, whose throughput is divided by that of the first")
    made.add_argument("-o", "--output", metavar="FILE", help="write the comparison as a page for a browser, .html")
    made.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    return made


def main(argv: list[str] | None = None) -> int:
    """Run the command.

    Raises:
        WrongSetting: a file that cannot be read or is no answer, or a page that could not be written.
    """
    given = parser().parse_args(argv)
    check_outputs([("--output", given.output)], [given.base, given.changed])
    reports.check(given.output, "--output")
    from sim.studies.two_answers import compare

    found = compare(given.base, given.changed)
    if given.output:
        from sim.reports.two_answers import comparison_page

        asked = shlex.join(["python", "-m", installed("sim.report"), *(sys.argv[1:] if argv is None else argv)])
        reports.write(given.output, comparison_page(found, printable(asked)))
    if given.json:
        print(json.dumps(found.as_json(), allow_nan=False))
    else:
        show(found)
    return 0


def show(found: Comparison) -> None:
    """Print the ratio first, then both answers, settings that differ, numbers, and notes."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    console.print(Text(found.headline, "bold"))
    rows = [(name, base.text, changed.text) for name, base, changed in found.figures]
    console.print(_table(("", *found.names), rows))
    if found.settings:
        rows = [(one.path, *one.texts) for one in found.few_settings]
        console.print(_table(("settings that differ", *found.names), rows))
    else:
        console.print("no setting differs")
    if found.basis:
        rows = [(name, _rests(base), _rests(changed)) for name, base, changed in found.basis]
        console.print(_table(("rests on", *found.names), rows))
    for note in found.notes:
        console.print(Text(f"note: {note}", "yellow"))


def _rests(one: Number | None) -> str:
    return f"{one.share:.0%}; {one.limits}\n{one.value}{', ' * bool(one.value)}{one.source}" if one else ""


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for heading in headings:
        made.add_column(Text(heading), overflow="fold")
    for row in rows:
        made.add_row(*map(Text, row))
    return made


if __name__ == "__main__":
    command.run("sim.report", main)
