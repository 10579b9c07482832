"""Timelines of Horovod whose events do not belong, and files that are none."""

import json
from collections.abc import Iterator
from functools import cache

from damage.base import ODD, Case, spoilt, texts_of
from sim.model import workload


@cache
def _events() -> tuple[dict, ...]:
    """Of a timeline of three ranks, which sum all variables of a model in each of four steps."""
    variables, events = workload.NAMED["mlp"].variables, []
    for step in range(4):
        for name, late_us in (("NEGOTIATE_ALLREDUCE", 0), ("ALLREDUCE", 300), ("GLOO_ALLREDUCE", 301)):
            for pid, _ in enumerate(variables, 1):
                event = {"pid": pid, "ts": 20_000 * step + late_us}
                events.append({"ph": "B", "name": name, **event})
                if name == "NEGOTIATE_ALLREDUCE":
                    events += [{"ph": "X", "name": str(rank), "dur": 0, **event} for rank in range(3)]
                    events.append({"ph": "E", "pid": pid, "ts": event["ts"] + 299})
        for args in ({}, {"dtype": "float32"}):
            for pid, one in enumerate(variables, 1):
                said = {"args": args | {"shape": str(list(one.shape))}} if args else {}
                events.append({"ph": "E", "pid": pid, "ts": 20_000 * step + 5_000, **said})
    return tuple(events)


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
