"""Probes of which a key is missing, or says what no probe measures."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from damage.base import ODD, Case, trace_file, whole

LINKS = {"latency_s": 1e-5, "overhead_s": 1e-4, "bandwidth_bytes_per_s": 2e9}


def cases() -> Iterator[Case]:
    """Each key of a probe with each odd value, or without it."""
    link = LINKS | {"fair": True, "unfairness": 0.1, "burst_bytes": 1e4, "late_s": 1e-5}
    probe = {"schema": "probe/2", "cores": 4, "oversleep_s": 1e-4, "local": LINKS, "network": link, "library": LINKS}
    probe["further_server"] = {"asynchronous": {"serial_s": 1e-4, "processor_s": 2e-4}}

    def case(name: str, text: str, kind: str = "texts") -> Case:
        def write(folder: Path) -> list[str]:
            (folder / "probe.json").write_text(text)
            trace = trace_file(asdict(whole(kind).header), whole(kind).rows)(folder)
            return [*trace, "--probe", str(folder / "probe.json")]

        return f"probe: {name}", write

    yield case("as it is", json.dumps(probe))
    for name in probe:
        yield case(f"no {name}", json.dumps({key: value for key, value in probe.items() if key != name}))
        for value in ODD:
            yield case(f"{name} {value!r:.20}", json.dumps(probe | {name: value}))
    for where in ("local", "network"):
        for name in link:
            for value in ODD:
                yield case(f"{where}.{name} {value!r:.20}", json.dumps(probe | {where: probe[where] | {name: value}}))
    for name in ("serial_s", "processor_s"):
        for value in ODD:
            server = {"asynchronous": probe["further_server"]["asynchronous"] | {name: value}}
            yield case(f"{name} {value!r:.20}", json.dumps(probe | {"further_server": server}), "servers")
    for text in ("", "null", "[]", "3", "{", "[" * 9999, "\0", json.dumps(probe)[:50]):
        yield case(f"{text:.9}", text)
