"""What damaged files are made of: whole ones, and values that do not belong."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import event
import pandas as pd

from sim import protocols, stragglers
from sim.job.scenario import Scenario
from sim.model import workload
from sim.platform.cluster import Cluster, Host
from sim.recording import traces
from sim.recording.traces import Trace

Written = Callable[[Path], list[str]]  # writes files into a folder; the arguments of calibration.fit for them
Case = tuple[str, Written]

NAN, INF = float("nan"), float("inf")
ODD = (None, True, "", "../../etc/passwd", [], {}, [1], -5, 0, 0.5, 10**9, 10**18, 10**400, 1e300, NAN, INF)
ODD_SECONDS = (NAN, INF, -INF, -1.0, -1e9, 0.0, 1e-300, 1e11, 1e300)
ODD_COUNTS = (-2, -1, 0, 1, 999, 10**9, 10**15, 10**18)


@cache
def whole(kind: str) -> Trace:
    """A trace of a small job: of our texts, of TensorFlow's servers or of a library that sums."""
    name, servers = {"texts": ("fmb", 1), "servers": ("ps-async", 1), "library": ("allreduce", 0)}[kind]
    world = {"texts": "mpi", "servers": "tensorflow", "library": "horovod"}[kind]
    workers = 2 if kind == "texts" else 1
    where = Cluster(hosts=[Host(cores=4, slots=9)])
    law = {"stragglers": stragglers.read("none")}
    job = Scenario(
        protocols.make(name), workload.NAMED["mlp"], workers=workers, steps=8, warmup=2, batch=16, cluster=where, **law
    )
    made = event.trace(job)
    ranks = servers + workers
    cpu_s = {str(rank): 0.05 for rank in range(ranks)}
    return Trace(replace(made.header, world=world, hosts=(("here", 4),) * ranks, cpu_s=cpu_s), made.rows)


KINDS = ("texts", "servers", "library")


def trace_file(head: dict, rows: pd.DataFrame, suffix: str = ".parquet") -> Written:
    """A file whose checksum is right, whatever it says."""

    def write(folder: Path) -> list[str]:
        path = folder / f"t{suffix}"
        (traces.write_parquet if suffix == ".parquet" else traces.write_jsonl)(head, rows, path)
        return [str(path)]

    return write


def flipped(content: bytes, at: int) -> bytes:
    """With a bit of one byte the other way."""
    return content[:at] + bytes([content[at] ^ 16]) + content[at + 1 :]


def texts_of(kind: str, file: str, *options: str) -> Callable[..., Case]:
    """What makes cases of one text: of its name, the text, and options besides."""

    def case(name: str, text: str, *more: str) -> Case:
        def write(folder: Path) -> list[str]:
            (folder / file).write_text(text)
            return [str(folder / file), *options, *more]

        return f"{kind}: {name}", write

    return case


def spoilt(text: str) -> Iterator[tuple[str, str]]:
    """Cut, and with a bit the other way, here and there."""
    for part in range(0, 12, 2):
        at = len(text) * part // 12
        yield f"cut at {part} / 12", text[:at]
        yield f"flipped at {part} / 12", flipped(text.encode(), at).decode(errors="replace")
