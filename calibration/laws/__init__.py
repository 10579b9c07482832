"""Fit laws to measured seconds: `python -m calibration.laws steps.csv --by rank -o law.toml`."""

from __future__ import annotations

from sim import command


def parser() -> command.Parser:
    """The command line."""
    parser = command.Parser(
        prog="calibration.laws",
        description="Fit laws to measured seconds, rank them, and separate slow ranks and lasting stragglers from noise.",
    )
    parser.add_argument("file", metavar="FILE", help="a table, .csv or .parquet, or a trace")
    parser.add_argument(
        "--column",
        metavar="NAME",
        help="a column of the table (default: seconds), or an activity of the trace (default: compute)",
    )
    parser.add_argument("--by", metavar="NAME", help="the column with the rank of each value; traces have it")
    parser.add_argument(
        "--as",
        dest="unit",
        choices=("seconds", "factor"),
        help="write a law of sleeps, or of factors on computing (values over their median); default: seconds",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write the best law, .toml, for --stragglers")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run the command.

    Raises:
        WrongSetting: a file that cannot be read, or no law that can be fitted.
    """
    given = parser().parse_args(argv)
    from calibration.laws import report
    from sim.base.files import check_outputs

    check_outputs([("--output", given.output, (".toml",))], [given.file])
    report.run(given)
    return 0
