"""Check a protocol: `python -m sim.protocols.check module:Class` runs it in every world that can, and compares their records.

Each job is small. The first mistake ends the command with one line and exit 1.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from dataclasses import replace
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim import command, protocols
from sim.base.errors import RunFailed, WrongSetting

if TYPE_CHECKING:
    from sim.job.scenario import Scenario
    from sim.recording.traces import Trace

PROGRAM = "sim.protocols.check"
WORKERS, SERVERS, SLEEPS = (1, 2, 3, 4), (1, 2), ("none", "niagara*0.01")
JOB = {"batch": 32, "steps": 6, "warmup": 2}
REAL_WORKERS = 2
SHARED = "share"  # part of the vector world's reason to leave jobs of two ranks a host to the event world
EXACT_S = 1e-9  # times of the two simulated worlds may differ by so much
DROPPING = "a text that drops some on purpose receives them with take(me, ...)"
NEEDED = ("real", "mpi4py", "tensorflow")  # for a real run


def parser() -> command.Parser:
    """The command line."""
    parser = command.Parser(prog=PROGRAM, description="Check a protocol of your own in every world that can run it.")
    parser.add_argument("protocol", metavar="MODULE:CLASS", help="your class; or the name of one of ours")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the protocol")
    parser.add_argument(
        "--workload", default="mlp", metavar="NAME|FILE", help="the model; bigram has a sparse variable"
    )
    parser.add_argument("--simulate-only", action="store_true", help="no real run, which takes half a minute")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    given = parser().parse_args(argv)
    jobs = jobs_of(given)
    traces = [simulated(job) for job in jobs]
    lines = [("simulated", f"{len(jobs)} jobs of {_range(jobs)}; none deadlocks, and each repeats itself")]
    lines.append(("gradients", gradients(jobs, traces)))
    lines.append(("vector world", by_vector(jobs, traces)))
    lines.append(("real run", "not asked for" if given.simulate_only else by_mpi(given, jobs)))
    print(protocols.name_of(jobs[0].protocol))
    print(*(f"{label:13} {said}" for label, said in lines), sep="\n")
    return 0


def jobs_of(given: argparse.Namespace) -> list[Scenario]:
    """Small jobs of one to four workers, each rank on a host of its own and two ranks a host.

    Raises:
        WrongSetting: the protocol, its settings or the workload are wrong, or no job fits them.
    """
    from sim import stragglers
    from sim.job.scenario import LATER, Scenario
    from sim.model import workload
    from sim.platform.cluster import Cluster, Host

    protocol, model = protocols.make(given.protocol, given.set), workload.read(given.workload)
    together = Cluster(name="two ranks a host", hosts=(Host(name="host", count=4, cores=2),))
    servers = SERVERS if protocol.has_servers else (1,)
    jobs, refused = [], WrongSetting("--protocol", given.protocol, "one that some job fits")
    for workers, count, law, cluster in product(WORKERS, servers, SLEEPS, (LATER, together)):
        ranks: dict[str, Any] = {"workers": workers, "servers": count, **JOB}
        try:
            job = Scenario(protocol, model, cluster=cluster, stragglers=stragglers.read(law), **ranks)
            jobs.append(replace(job, stragglers_name=law))
        except WrongSetting as error:  # a protocol may need more workers
            refused = error
    if not jobs:
        raise refused
    return jobs


def simulated(job: Scenario) -> Trace:
    """The job's trace in the event world.

    Raises:
        RunFailed: its ranks wait for ever, its text makes a mistake, or a second run differs.
    """
    from sim import simulate

    try:
        trace, again = (simulate(job, "event", 1, want_trace=True).kept_trace for _ in range(2))
    except RunFailed as error:
        raise RunFailed(f"{error} ({_said(job)})") from error
    if not trace.rows.equals(again.rows):
        said = "two simulations differ: a text decides by its settings and by me alone, not by random numbers or clocks of its own"
        raise RunFailed(f"{protocols.name_of(job.protocol)}: {said} ({_said(job)})")
    return trace


def gradients(jobs: list[Scenario], traces: list[Trace]) -> str:
    """Whether every gradient was applied once, where the protocol waits for all, and none twice.

    Raises:
        RunFailed: samples were lost, or counted twice.
    """
    from sim.recording import conformance

    found = [(job, conformance.gradients(trace)) for job, trace in zip(jobs, traces, strict=True)]
    for job, samples in found:
        lost = samples.applied < samples.computed and not job.protocol.by_arrival
        if samples.applied > samples.computed or lost:
            said = f"{samples.computed} samples were computed, and {samples.applied} are in the updates of rank 0"
            said += f"; {DROPPING}" * lost
            raise RunFailed(f"{protocols.name_of(job.protocol)}: {said} ({_said(job)})")
    computed, applied = (sum(samples[part] for _, samples in found) for part in (0, 1))
    dropped = f"; {computed - applied:,} came too late or were on their way at the end" if computed > applied else ""
    return f"{computed:,} samples computed, {applied:,} applied once{dropped}"


def by_vector(jobs: list[Scenario], traces: list[Trace]) -> str:
    """Compare the vector world's answers to the jobs with the event world's, where it answers.

    Raises:
        RunFailed: it says something else.
    """
    import numpy as np

    from sim import simulate
    from sim.answers.outcome import of_trace

    alike, refusals = 0, set()
    for job, trace in zip(jobs, traces, strict=True):
        try:
            fast, exact = simulate(job, "vector", 1), of_trace(trace)
        except WrongSetting as error:
            refusals.add(error.allowed.removeprefix("event: "))
            continue
        if not (np.array_equal(fast.samples, exact.samples) and np.allclose(fast.step_s, exact.step_s, 0, EXACT_S)):
            raise RunFailed(f"{protocols.name_of(job.protocol)}: the vector and the event world differ ({_said(job)})")
        alike += 1
    apart = sorted({reason for reason in refusals if SHARED not in reason})
    said = f"answers {alike} of the jobs, as the event world does" if alike else "answers none of the jobs"
    return "; ".join([said, *(f"refused: {reason}" for reason in apart[:1])])


def by_mpi(given: argparse.Namespace, jobs: list[Scenario]) -> str:
    """Compare the records of a real run with those of the simulated one.

    Raises:
        RunFailed: it failed, or did something else.
    """
    missing = [name for name in NEEDED if not find_spec(name)]
    if missing:
        return f"not possible without {', '.join(missing)}"
    job = next((job for job in jobs if job.workers == REAL_WORKERS), jobs[-1])
    from sim.recording.traces import read

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "real.parquet"
        done = subprocess.run(_line(given, job, path), capture_output=True, text=True, check=False)
        said = (done.stderr.strip().splitlines() or ["nothing was said"])[-1]
        if done.returncode == 2:
            return f"refused: {said}"
        if done.returncode:
            raise RunFailed(f"the real run failed: {said}")
        return _compared(job, read(path))


def _line(given: argparse.Namespace, job: Scenario, path: Path) -> list[str]:
    """The command of a real run of a job without sleeps."""
    words = [sys.executable, "-m", "real.run", "--runtime", "mpi", "--protocol", given.protocol]
    words += ["--workload", given.workload, "--workers", job.workers, "--stragglers", "none", "--quiet"]
    words += [word for name, value in JOB.items() for word in (f"--{name}", value)]
    words += [word for setting in given.set for word in ("--set", setting)]
    words += ["--servers", job.servers] if job.protocol.has_servers else []
    return [*map(str, words), "--trace", str(path)]


def _compared(job: Scenario, real: Trace) -> str:
    from sim import simulate, stragglers
    from sim.recording import conformance

    name, samples = protocols.name_of(job.protocol), conformance.gradients(real)
    if samples.applied > samples.computed:
        raise RunFailed(f"{name}: the real run computed {samples.computed} samples and applied {samples.applied}")
    if job.protocol.by_arrival:
        return f"{job.workers} workers trained; the order of arrival decides their record"
    alike = simulate(
        replace(job, stragglers=stragglers.read("none"), stragglers_name="none"), "event", 1, want_trace=True
    ).kept_trace
    mine, theirs = (_record(job, trace) for trace in (real, alike))
    if mine != theirs:
        differs = next(iter((mine - theirs) or (theirs - mine)))
        raise RunFailed(f"{name}: real and simulated record differ, first in (rank, step, activity, ...) {differs}")
    but = ", but for what depends on when gradients are ready" if job.protocol.overlaps else ""
    return f"{job.workers} workers trained, and their record is the simulated one{but} ({len(real.rows)} activities)"


def _record(job: Scenario, trace: Trace):
    """The part of a run's record that the text determines."""
    from sim.recording import conformance

    if job.protocol.overlaps:
        return conformance.settled(trace, job.protocol.uses("reduce_in_cycles"))
    return conformance.record(trace)


def _range(jobs: list[Scenario]) -> str:
    return f"{min(job.workers for job in jobs)} to {max(job.workers for job in jobs)} workers"


def _said(job: Scenario) -> str:
    servers = f", {job.servers} servers" if job.protocol.has_servers else ""
    return f"{job.workers} workers{servers}, stragglers {job.stragglers_name}, on {job.cluster.name}"


if __name__ == "__main__":
    command.run(PROGRAM, main)
