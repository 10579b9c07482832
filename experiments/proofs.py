"""Each text held against what is known of it: its steps against closed forms, what it trains against its definition, and real runs.

Steps are those of the event world and, where it is compiled, of the engine, whichever is further. Real runs are of a chain of dense layers
by NumPy over MPI on this machine, beside a prediction from runs of other texts (real.language.compare). What they train is what is trained
in simulated time, but where messages decide by when they come.
"""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.kit import pages
from experiments.proving.closed import CLOSED
from experiments.proving.definitions import DEFINED
from real.language.compare import PROGRAM, Beside
from sim.base.errors import RunFailed
from sim.base.home import installed
from sim.base.progress import each
from sim.texts import TEXTS

if TYPE_CHECKING:
    from rich.table import Table

MOST_LINES = 40  # of a text's file
EXACT = 1e-9  # seconds, and weights
SETTINGS = {"hierarchical": "group=2"}  # without which a text has no job of four ranks


def run(out: Path, seed: int = 0, *, workers: int = 0) -> None:
    """Print the tables.

    Args:
        workers: ranks of real runs, which take minutes; 0: none.

    Raises:
        RunFailed: a text is not what it should be.
    """
    wrong = []
    found = [proved(name) for name in each(sorted(TEXTS), "proving")]
    pages.show(of_proofs(found))
    for name, lines, _, step_s, _, weights in found:
        wrong += [f"{name}: {lines} lines"] * (lines > MOST_LINES)
        wrong += [f"{name}: {step_s:.1e} s, {weights:.1e}"] * (not max(step_s, weights) < EXACT)
    if wrong:
        raise RunFailed("; ".join(wrong))
    if workers:
        pages.show(of_real([one for name in each(sorted(TEXTS), "real runs") for one in real(name, workers)], workers))


def proved(name: str) -> tuple[str, int, int, float, int, float]:
    """A text, its lines, closed forms and the largest difference from them, definitions and the same."""
    lines = len(Path(inspect.getfile(TEXTS[name])).read_text().splitlines())
    steps_s = [one.worlds_error_s() for one in CLOSED if one.name == name]
    weights = [one.error() for one in DEFINED if one.name == name]
    return name, lines, len(steps_s), max(steps_s), len(weights), max(weights)


def of_proofs(found: list[tuple[str, int, int, float, int, float]]) -> Table:
    """A line for each text."""
    columns = (
        ("text", lambda one: one[0]),
        ("lines", lambda one: f"{one[1]}"),
        ("closed forms", lambda one: f"{one[2]}"),
        ("furthest step, s", lambda one: f"{one[3]:.0e}"),
        ("definitions", lambda one: f"{one[4]}"),
        ("furthest weight", lambda one: f"{one[5]:.0e}"),
    )
    return pages.listed("Texts beside closed forms and definitions", columns, found)


def real(name: str, ranks: int) -> Iterator[Beside]:
    """The real runs of a text.

    Raises:
        RunFailed: they fail.
    """
    more = ["--set", SETTINGS[name]] if name in SETTINGS else []
    line = [sys.executable, "-m", installed(PROGRAM), name, "--ranks", str(ranks), "--json", *more]
    done = subprocess.run(line, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise RunFailed(f"{name}: {done.stderr.strip()}")
    yield from (Beside(**json.loads(told)) for told in done.stdout.splitlines() if told.startswith("{"))


def of_real(found: list[Beside], ranks: int) -> Table:
    """A line for each text."""
    columns = (
        ("text", lambda one: one.text),
        ("measured, ms", lambda one: f"{one.measured_s * 1e3:.3g}"),
        ("floor", lambda one: f"{one.floor:.0%}"),
        ("predicted, ms", lambda one: f"{one.predicted_s * 1e3:.3g}"),
        ("error", lambda one: f"{one.predicted_s / one.measured_s - 1:+.0%}"),
        ("furthest weight", lambda one: f"{one.apart:.0e}"),
        ("samples", lambda one: f"{one.samples[0]:,.0f}"),
        ("simulated", lambda one: f"{one.samples[1]:,.0f}"),
    )
    return pages.listed(f"{ranks} ranks over MPI beside simulated ones", columns, found)
