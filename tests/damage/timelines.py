"""Timelines of Horovod whose events do not belong, and files that are none."""

import json
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from damage.base import ODD, Case, spoilt, texts_of
from sim import event, protocols
from sim.job.scenario import Scenario
from sim.model import workload
from sim.recording.horovod_timeline import Timeline


@cache
def _events() -> tuple[dict, ...]:
    """Of a timeline of three ranks."""
    job = Scenario(protocols.make("horovod"), workload.NAMED["mlp"], workers=3, steps=4, warmup=0, batch=16)
    timeline = Timeline(job)
    event.trace(job, timeline=timeline)
    with tempfile.TemporaryDirectory() as folder:
        timeline.write(f"{folder}/t.json")
        return tuple(json.loads(Path(folder, "t.json").read_text()))


def cases() -> Iterator[Case]:
    """Events of a Horovod timeline, and what is none."""

    case = texts_of("timeline", "t.json", "--from", "horovod-timeline", "--workload", "mlp")
    events = list(_events())
    text = json.dumps(events)
    yield case("as it is", text)
    middle = len(events) // 2
    for at in sorted({next(i for i in range(middle, len(events)) if events[i]["ph"] == phase) for phase in "BE"}):
        for key in {**events[at], "args": None}:
            for value in ODD:
                changed = [*events[:at], events[at] | {key: value}, *events[at + 1 :]]
                yield case(f"{events[at]['ph']} {key} {value!r:.20}", json.dumps(changed))
            without = [*events[:at], {k: v for k, v in events[at].items() if k != key}, *events[at + 1 :]]
            yield case(f"{events[at]['ph']} without {key}", json.dumps(without))
    for key in ("ts", "pid", "ph", "name"):
        for value in ODD:
            yield case(f"all {key} {value!r:.20}", json.dumps([one | {key: value} for one in events]))
    others = {"shuffled": events[::-1], "doubled": events * 2, "of numbers": [1, 2], "of nulls": [None], "none": []}
    for name, changed in (*spoilt(text), *((name, json.dumps(changed)) for name, changed in others.items())):
        yield case(name, changed)
    for other in ("null", "3", "{}", '{"traceEvents": []}', "[" * 9999, "\0"):
        yield case(other[:20], other)
    for option in ("--ranks", "--batch"):
        for value in ("-1", "0", "1", str(10**9), str(10**18), str(10**400)):
            yield case(f"{option} {value:.20}", text, option, value)
