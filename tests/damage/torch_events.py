"""Traces of torch.profiler whose events do not belong, and files that are none."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from damage.base import ODD, Case, spoilt, texts_of

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from torch_traces_of import trace

PARAMETERS = 784 * 100 + 100 + 100 * 10 + 10  # of mlp


def cases() -> Iterator[Case]:
    """Of one rank of two, of mlp."""

    case = texts_of("torch", "t.json", "--from", "torch", "--workload", "mlp")
    whole = trace(0, 2, [PARAMETERS], steps=4)
    events = whole["traceEvents"]
    yield case("as it is", json.dumps(whole))
    for key in ("deviceProperties", "distributedInfo", "traceEvents"):
        for value in ODD:
            yield case(f"{key} {value!r:.20}", json.dumps(whole | {key: value}))
    for kind in ("user_annotation", "kernel", "cuda_runtime"):
        at = [number for number, one in enumerate(events) if one.get("cat") == kind][1]
        for key in ("ph", "cat", "name", "ts", "dur", "args"):
            for number, value in enumerate(ODD):
                every = number % 2 == 1
                changed = [
                    one | {key: value} if (every and one.get("cat") == kind) or one is events[at] else one
                    for one in events
                ]
                which = "all" if every else "one"
                yield case(f"{which} {kind} {key} {value!r:.20}", json.dumps(whole | {"traceEvents": changed}))
    for key in ("correlation", "In msg nelems", "dtype", "Group size"):
        for value in ODD[::2]:
            every = [one | {"args": one.get("args", {}) | {key: value}} for one in events]
            yield case(f"all args {key} {value!r:.20}", json.dumps(whole | {"traceEvents": every}))
    others = {"shuffled": events[::-1], "doubled": events * 2, "of numbers": [1, 2], "none": []}
    of_events = ((name, json.dumps(whole | {"traceEvents": changed})) for name, changed in others.items())
    for name, changed in (*spoilt(json.dumps(whole)), *of_events):
        yield case(name, changed)
    for other in ("null", "3", "{}", "[" * 9999, "\0"):
        yield case(other[:20], other)
