"""Files that calibration.fit reads, damaged in every way that is known: names, and functions that write them into a folder."""

from collections.abc import Iterator

from damage import logs, probes, rows, tests_of_links, timelines, torch_events, traces
from damage.base import Case


def cases() -> Iterator[Case]:
    """All of them, always in the same order."""
    for module in (rows, traces, probes, logs, timelines, tests_of_links, torch_events):
        yield from module.cases()
