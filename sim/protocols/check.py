"""Check a protocol: `python -m sim.protocols.check module:Class` runs it in every world that can, and compares them.

Each job is small. The first mistake ends the command with one line and exit 1.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim import command, protocols
from sim.base import ranges
from sim.base.deadline import within
from sim.base.errors import RunFailed, WrongSetting
from sim.base.home import installed

if TYPE_CHECKING:
    from sim.job.scenario import Scenario
    from sim.recording.traces import Trace

PROGRAM = "sim.protocols.check"
WORKERS, SERVERS, SLEEPS = (1, 2, 3, 4), (1, 2), ("none", "niagara*0.01")
MOST_RANKS = WORKERS[-1] + SERVERS[-1]
JOB = {"batch": 32, "steps": 6, "warmup": 2}
REAL_WORKERS = (2, 3, 4)  # of real runs
LIMIT_S = 20.0  # of the processor, for a simulated job
REAL_TIMES = 30  # as long, for all real runs
LEAST_S, MOST_S = 0.01, 86400
ENDING_S = 30.0  # that processes have to end when they are told to
EXACT_S = 1e-9  # times of the engine and of the event world may differ by so much
ALIKE = 1e-9  # weights may, as a share of the largest: sums are made in another order
DROPPING = "a text that drops some on purpose says so: by_arrival = True"
NEEDED = (installed("real"), "mpi4py", "tensorflow")  # for a real run


def parser() -> command.Parser:
    """The command line."""
    parser = command.Parser(prog=PROGRAM, description="Check a protocol of your own in every world that can run it.")
    parser.add_argument("protocol", metavar="MODULE:CLASS", help="your class; or the name of one of ours")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the protocol")
    parser.add_argument(
        "--workload", default="mlp", metavar="NAME|FILE", help="the model; bigram has a sparse variable"
    )
    parser.add_argument(
        "--time-limit",
        type=float,
        default=LIMIT_S,
        metavar="SECONDS",
        help=f"of the processor for each simulated job; {REAL_TIMES} times as long for all real runs (default: {LIMIT_S:g})",
    )
    parser.add_argument("--simulate-only", action="store_true", help="no real runs, which take a minute")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    given = parser().parse_args(argv)
    ranges.check("--time-limit", given.time_limit, LEAST_S, MOST_S, "seconds")
    jobs = jobs_of(given)
    of = f"{min(job.workers for job in jobs)} to {max(job.workers for job in jobs)} workers"
    counted = [gradients(job, simulated(job, given.time_limit)) for job in jobs]
    lines = [("simulated", f"{len(jobs)} jobs of {of}; none deadlocks, and each repeats itself")]
    lines.append(("gradients", in_all(counted)))
    lines.append(("messages", messages(jobs)))
    lines.append(("trained", trained(jobs[-1], given.time_limit)))
    lines.append(("engine", by_engine(jobs, given.time_limit)))
    lines += [("real run", "not asked for")] if given.simulate_only else by_mpi(given, real_jobs(jobs))
    print(protocols.name_of(jobs[0].protocol))
    print(*(f"{label:13} {said}" for label, said in lines), sep="\n")
    return 0


def jobs_of(given: argparse.Namespace) -> list[Scenario]:
    """Small jobs of one to four workers, each rank on a host of its own, two ranks a host, and all on one.

    Raises:
        WrongSetting: the protocol, its settings or the workload are wrong, or no job fits them.
    """
    from sim import stragglers
    from sim.job.scenario import LATER, Scenario
    from sim.model import workload
    from sim.platform.cluster import Cluster, Host

    protocol, model = protocols.make(given.protocol, given.set), workload.read(given.workload)
    pairs = Cluster(name="two ranks a host", hosts=(Host(count=4, cores=2),))
    one = Cluster(name="one host", hosts=(Host(cores=2 * MOST_RANKS, slots=MOST_RANKS),))
    servers = SERVERS if protocol.has_servers else (1,)
    jobs, refused = [], WrongSetting("--protocol", given.protocol, "one that some job fits")
    for cluster, workers, count, law in product((LATER, pairs, one), WORKERS, servers, SLEEPS):
        ranks: dict[str, Any] = {"workers": workers, "servers": count, **JOB}
        try:
            job = Scenario(protocol, model, cluster=cluster, stragglers=stragglers.read(law), **ranks)
            jobs.append(replace(job, stragglers_name=law))
        except WrongSetting as error:  # a protocol may need more workers
            refused = error
    if not jobs:
        raise refused
    return jobs


def simulated(job: Scenario, limit_s: float = LIMIT_S) -> Trace:
    """The job's trace in the event world.

    Raises:
        RunFailed: its ranks wait for ever, its text makes a mistake or does not end, or a second run differs.
    """
    from sim.simulation import simulate

    try:
        with within(limit_s):
            trace, again = (simulate(job, "event", 1, want_trace=True).kept_trace for _ in range(2))
    except RunFailed as error:
        raise RunFailed(f"{error} ({_said(job)})") from error
    if not trace.rows.equals(again.rows):
        said = "two simulations differ: a text decides by its settings and by me alone, not by random numbers or clocks of its own"
        raise _wrong(job, said)
    return trace


def gradients(job: Scenario, trace: Trace) -> tuple[int, int]:
    """The samples computed, and those applied: all of them once, where the protocol waits for all, and none twice.

    Raises:
        RunFailed: samples were lost, or counted twice.
    """
    from sim.recording import conformance

    protocol, (computed, applied) = job.protocol, conformance.gradients(trace)
    lost = applied < computed and not protocol.by_arrival and protocol.text_class.data == "own"
    if applied > computed or lost:
        of = "all ranks" if job.by_all_ranks else "rank 0"
        said = f"{computed} samples were computed, and {applied} are in the updates of {of}"
        raise _wrong(job, said + f"; {DROPPING}" * lost)
    return computed, applied


def in_all(counted: list[tuple[int, int]]) -> str:
    """The samples of all jobs, in words."""
    computed, applied = map(sum, zip(*counted, strict=True))
    dropped = f"; {computed - applied:,} came too late or were on their way at the end" if computed > applied else ""
    return f"{computed:,} samples computed, {applied:,} applied once{dropped}"


def messages(jobs: list[Scenario]) -> str:
    """Whether each rank takes something of all that send to it.

    Raises:
        RunFailed: it does not.
    """
    from sim.language.event.world import EventWorld
    from sim.protocols.base import text_of
    from sim.runs.job import job_of

    for job in jobs:
        text = text_of(job)
        world = EventWorld(job_of(job, text), text)
        world.run()
        for rank, mail in enumerate(world.mail):
            for sender in sorted(mail.unheard):
                said = f"rank {rank} takes none of the messages that rank {sender} posts to it"
                raise RunFailed(f"{protocols.name_of(job.protocol)}: {said} ({_said(job)})")
    return "each rank takes some of every rank that posts to it"


def trained(job: Scenario, limit_s: float = LIMIT_S) -> str:
    """How far the weights of ranks that train a small model are from those of one process that has all samples."""
    import numpy as np

    from sim.language import event
    from sim.language.job import Job
    from sim.language.learning import Chain, Values

    model, text = Chain(), job.protocol.text(1, workers=job.workers)
    servers, steps, batch = text.servers, JOB["steps"], JOB["batch"]
    small = Job(servers + job.workers, model.layers(1e-3, 2e-3), steps, batch=batch)
    values, weights = Values(small, model, text.data == "shared"), model.weights()
    try:
        with within(limit_s):
            event.run(small, text, values)
    except WrongSetting as error:
        return f"not tried: {error}"
    owners = [0] if text.data == "shared" else range(servers, small.ranks)
    for step in range(steps):
        given, target = (
            np.concatenate(each) for each in zip(*(model.data(one, step, batch) for one in owners), strict=True)
        )
        weights -= small.rate * model.gradient(weights, given, target) / len(given)
    holding = range(servers) if servers and text.serves == "all" else range(servers, small.ranks)
    ends = [values.vectors[rank]["weights"] for rank in holding]
    gaps = [[np.abs(np.nan_to_num(end - of)).max() for end in ends] for of in (weights, ends[0])]  # NaN was dropped
    off, apart = (max(each) / np.abs(weights).max() for each in gaps)
    if off < ALIKE:
        return f"{job.workers} workers end with the weights of one process that has all samples"
    ranks = f"; ranks end up to {apart:.1%} apart" if apart > ALIKE else ""
    return (
        f"{job.workers} workers end up to {off:.1%} of the largest weight from one process that has all samples{ranks}"
    )


def by_engine(jobs: list[Scenario], limit_s: float = LIMIT_S) -> str:
    """Compare the engine's answers to the jobs with the event world's, where it is compiled and its subset of Python has the texts.

    Raises:
        RunFailed: it says something else.
    """
    import numpy as np

    from sim.simulation import simulate

    alike, refused = 0, ""
    for job in jobs:
        try:
            with within(limit_s):
                fast, exact = simulate(job, "engine", 1), simulate(job, "event", 1)
        except WrongSetting as error:
            refused = error.allowed.removeprefix("auto or event: ")
            continue
        if not (np.allclose(fast.samples, exact.samples) and np.allclose(fast.step_s, exact.step_s, 0, EXACT_S)):
            raise _wrong(job, "the engine and the event world differ")
        alike += 1
    said = f"answers {alike} of the jobs, as the event world does" if alike else "answers none of the jobs"
    return f"{said}; refused: {refused}" if refused else said


def real_jobs(jobs: list[Scenario]) -> list[Scenario]:
    """The jobs that are run for real: the first of each number of workers, or the last of all."""
    found = [next((job for job in jobs if job.workers == workers), None) for workers in REAL_WORKERS]
    return [job for job in found if job is not None] or jobs[-1:]


def by_mpi(given: argparse.Namespace, jobs: list[Scenario]) -> list[tuple[str, str]]:
    """Run the jobs for real, count gradients, and compare the parameters of ranks that update by themselves; lines.

    Raises:
        RunFailed: one failed, did not end or did something else.
    """
    missing = [name for name in NEEDED if not find_spec(name)]
    if missing:
        return [("real run", f"not possible without {', '.join(missing)}")]
    from sim.recording import conformance
    from sim.recording.traces import read

    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{job.workers}.parquet" for job in jobs]
        cells = Path(folder) / "cells.json"
        cells.write_text(json.dumps([_cell(given, job, path) for job, path in zip(jobs, paths, strict=True)]))
        code, said = _ran([sys.executable, "-m", installed("real.campaign"), str(cells)], REAL_TIMES * given.time_limit)
        if code == 2:
            return [("real run", f"refused: {said}")]
        if code:
            raise RunFailed(f"the real run failed: {said}")
        reals = [read(path) for path in paths]
    compared = []
    for job, real in zip(jobs, reals, strict=True):
        computed, applied = conformance.gradients(real)
        if applied > computed:
            raise _wrong(job, f"the real run computed {computed} samples and applied {applied}")
        compared.append(f"{job.workers} workers trained: {computed:,} samples computed, {applied:,} applied")
    apart = [said for real in reals for said in conformance.drifted(real.header)]
    return [("real run", "; ".join(compared)), *(("replicas", said) for said in apart[:1])]


def _ran(line: list[str], limit_s: float) -> tuple[int, str]:
    """A command's exit code, and its last line on stderr.

    Raises:
        RunFailed: it has not ended within so many seconds.
    """
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            said = process.communicate(timeout=limit_s)[1]
        except subprocess.TimeoutExpired:
            process.terminate()  # it ends its ranks
            try:
                process.communicate(timeout=ENDING_S)
            except subprocess.TimeoutExpired:
                process.kill()
            why = "its ranks wait for one another for ever, though simulated ones do not"
            longer = "or the machine is slow and --time-limit SECONDS has to be longer"
            raise RunFailed(f"the real run had not ended after {limit_s:g} s: {why}, {longer}") from None
    return process.returncode, (said.strip().splitlines() or ["nothing was said"])[-1]


def _cell(given: argparse.Namespace, job: Scenario, path: Path) -> list[str]:
    """The options of a real run of a job without sleeps."""
    words = ["--runtime", "mpi", "--protocol", given.protocol, "--workload", given.workload]
    words += ["--workers", job.workers, "--stragglers", "none"]
    words += [word for name, value in JOB.items() for word in (f"--{name}", value)]
    words += [word for setting in given.set for word in ("--set", setting)]
    words += ["--servers", job.servers] if job.protocol.has_servers else []
    return [*map(str, words), "--trace", str(path)]


def _wrong(job: Scenario, said: str) -> RunFailed:
    return RunFailed(f"{protocols.name_of(job.protocol)}: {said} ({_said(job)})")


def _said(job: Scenario) -> str:
    servers = f", {job.servers} servers" if job.protocol.has_servers else ""
    return f"{job.workers} workers{servers}, stragglers {job.stragglers_name}, on {job.cluster.name}"


if __name__ == "__main__":
    command.run(PROGRAM, main)
