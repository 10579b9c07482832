"""python -m calibration.fit TRACE... -o profile.toml: what a cluster's ranks cost, learned from traces."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sim.errors import WrongSetting

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Format(StrEnum):
    """What the files are."""

    trace = "trace"
    amb_csv = "amb-csv"
    amb_log = "amb-log"


@app.command()
def fit(
    traces: Annotated[list[str], typer.Argument(metavar="TRACE...", help="Traces; or other logs, with --from.")],
    output: Annotated[str, typer.Option("-o", "--output", help="The profile to write, TOML.")],
    probe: Annotated[str | None, typer.Option(help="JSON of real.probe: cores, links, oversleep.")] = None,
    source: Annotated[Format, typer.Option("--from", help="What TRACE... are.")] = Format.trace,
    name: Annotated[str | None, typer.Option(help="Name of the cluster; else the output's.")] = None,
    workload: Annotated[str, typer.Option(help="Of imported logs, which do not say.")] = "cifar10",
    stragglers: Annotated[str, typer.Option(help="Sleeps induced in imported logs, which do not say.")] = "none",
) -> None:
    """Learn from TRACE... what computing, taking up and adding cost, and write a profile for `sim.run --cluster`."""
    try:
        _fit(traces, output, probe, source, name or Path(output).stem, workload, stragglers)
    except WrongSetting as error:
        print(error, file=sys.stderr)
        raise typer.Exit(2) from error


def _fit(paths, output, probe, source, name, workload, stragglers) -> None:
    from calibration import profile

    sources = [s for path in paths for s in read(path, source, workload, stragglers)]
    made = profile.make(sources, name, profile.read_probe(probe) if probe else None)
    profile.write(made, output)
    print(f"{output}: {', '.join(made.costs)} from {len(sources)} trace{'s' * (len(sources) > 1)}")
    for note in made.provenance.notes:
        print(f"  {note}")


def read(path: str, source: str = "trace", workload: str = "cifar10", stragglers: str = "none") -> list:
    """The calibration.profile.Source's in a file or folder.

    Raises:
        WrongSetting: what the reader of that format says.
    """
    from calibration.importers import IMPORTERS
    from calibration.profile import Source
    from sim import stragglers as laws
    from sim import traces

    if source == "trace":
        return [Source(Path(path).name, traces.read(path))]
    laws.read(stragglers)  # a wrong name is said now, not in the middle of the fit
    imported = IMPORTERS[source](path, workload, stragglers)
    return [Source(f"{Path(path).name}:{t.header.cluster}", t) for t in imported]


if __name__ == "__main__":
    app()
