"""The folder in which the ranks of a run write their parts of a growing trace: TRACE.parts, gone once the trace is whole."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sim.base.errors import WrongSetting
from sim.base.files import write_text
from sim.command import called
from sim.recording import traces
from sim.recording.traces import HEADER_FILE, Header, Trace


def folder(trace: str) -> Path:
    """Their folder."""
    return Path(f"{trace}.parts")


def of(trace: str | None, replication: int) -> Path | None:
    """Their folder in a replication: the first one is kept, if a trace was asked for."""
    return folder(trace) if trace and replication == 0 else None


def begin(parts: Path, header: Header) -> None:
    """Make the folder of a growing trace, with its header and nothing of an earlier run."""
    shutil.rmtree(parts, ignore_errors=True)
    parts.mkdir()
    write_text(parts / HEADER_FILE, header.text())


def remove(trace: str | None) -> None:
    """Take the folder away, if a trace was asked for."""
    if trace:
        shutil.rmtree(folder(trace), ignore_errors=True)


@contextmanager
def kept(trace: str | None, finished: Callable[[Trace], Trace] = lambda trace: trace) -> Iterator[None]:
    """If what is done inside ends early, put what the ranks have written in the trace file.

    Args:
        trace: the file; None if none was asked for.
        finished: what is still to be done to parts that were put together.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt):
        _keep(trace, finished)
        raise


def _keep(trace: str | None, finished: Callable[[Trace], Trace]) -> None:
    if not trace or not (folder(trace) / HEADER_FILE).exists():
        return
    try:
        found = finished(traces.read_parts(folder(trace)))
    except WrongSetting as error:  # the error that ended the run must be reported, and not this one alone
        print(f"{called('real.run')}: {error}", file=sys.stderr)
        return
    found.write(trace)
    remove(trace)
    print(f"{called('real.run')}: the trace so far, {len(found.rows)} activities, is in {trace}", file=sys.stderr)
