"""Check a protocol: `python -m sim.protocols.check module:Class` simulates it in both worlds, and compares them.

Each job is small. The first mistake ends the command with one line and exit 1.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, NamedTuple

from sim import command, protocols
from sim.base import ranges
from sim.base.deadline import ended_after
from sim.base.errors import RunFailed, WrongSetting

if TYPE_CHECKING:
    from sim.job.scenario import Scenario

PROGRAM = "sim.protocols.check"
WORKERS, SERVERS, SLEEPS = (1, 2, 3, 4), (1, 2), ("none", "niagara*0.01")
MOST_RANKS = WORKERS[-1] + SERVERS[-1]
JOB = {"batch": 32, "steps": 6, "warmup": 2}
LIMIT_S = 20.0  # of the processor, for a job
LEAST_S, MOST_S = 0.01, 86400
EXACT_S = 1e-9  # times of the engine and of the event world may differ by so much
ALIKE = 1e-9  # weights may, as a share of the largest: sums are made in another order
ENDLESS = "no end within {:g} s of processor time: a loop that does not end, or a job for which --time-limit SECONDS has to be longer"
DIFFER = "a text decides by its settings and by me alone, not by random numbers or clocks of its own"
DROPPING = "a text that drops some on purpose says so: by_arrival = True"


def parser() -> command.Parser:
    """The command line."""
    parser = command.Parser(prog=PROGRAM, description="Check a protocol of your own in small simulated jobs.")
    parser.add_argument("protocol", metavar="MODULE:CLASS", help="your class; or the name of one of ours")
    table = f"""
        --set  NAME=VALUE  list  a setting of the protocol
        --workload  NAME|FILE  text=mlp  the model; bigram has a sparse variable
        --time-limit  SECONDS  float={LIMIT_S}  of the processor for each job
    """
    command.add_options(parser, table)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    given = parser().parse_args(argv)
    ranges.check("--time-limit", given.time_limit, LEAST_S, MOST_S, "seconds")
    jobs = jobs_of(given)
    of = f"{min(job.workers for job in jobs)} to {max(job.workers for job in jobs)} workers"
    found = [checked(job, given.time_limit) for job in jobs]
    lines = [("simulated", f"{len(jobs)} jobs of {of}; none deadlocks, and each repeats itself")]
    lines.append(("gradients", in_all(found)))
    lines.append(("messages", "each rank takes some of every rank that posts to it"))
    lines.append(("trained", trained(jobs[-1], given.time_limit)))
    lines.append(("engine", by_engine([one.slow for one in found])))
    print(protocols.name_of(jobs[0].protocol))
    print(*(f"{label:13} {said}" for label, said in lines), sep="\n")
    return 0


def jobs_of(given: argparse.Namespace) -> list[Scenario]:
    """Small jobs of one to four workers, each rank on a host of its own, two ranks a host, and all on one.

    Raises:
        WrongSetting: the protocol, its settings or the workload are wrong, or no job fits them.
    """
    from sim import stragglers
    from sim.answers import candidates
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
            candidates.refuse(job, "a check")
            jobs.append(replace(job, stragglers_name=law))
        except WrongSetting as error:  # a protocol may need more workers
            refused = error
    if not jobs:
        raise refused
    return jobs


class Checked(NamedTuple):
    """The samples of a job's gradients that were computed and applied, and why the engine did not simulate it; empty if it did."""

    computed: int
    applied: int
    slow: str


def checked(job: Scenario, limit_s: float = LIMIT_S) -> Checked:
    """Simulate a job by the event world, and again by the engine where that understands its text.

    Raises:
        RunFailed: its ranks wait for ever, its text makes a mistake or does not end, the second simulation differs, samples are lost or
            counted twice, or a rank takes nothing of another one that posts to it.
    """
    import numpy as np

    from sim.language import mistakes
    from sim.language.event.observed import ObservedWorld
    from sim.protocols.base import text_of
    from sim.recording import conformance
    from sim.runs.job import job_of
    from sim.runs.outcome import outcome_of, trace_of
    from sim.simulation import simulate

    text = text_of(job)
    mistakes.check(text)
    try:
        with ended_after(limit_s, ENDLESS.format(limit_s)):
            world = ObservedWorld(job_of(job, text), text)
            found, again = outcome_of(job, world.run()), simulate(job, "auto", 1)
    except RunFailed as error:
        raise RunFailed(f"{error} ({_said(job)})") from error
    if not (np.allclose(found.samples, again.samples) and np.allclose(found.step_s, again.step_s, 0, EXACT_S)):
        by = "the engine" if again.world == "engine" else "the event world again"
        raise _wrong(job, f"two simulations differ, of the event world and of {by}: {DIFFER}")
    computed, applied = conformance.gradients(trace_of(job, world, found))
    lost = applied < computed and not job.protocol.by_arrival and job.protocol.text_class.data == "own"
    if applied > computed or lost:
        of = "all ranks" if job.by_all_ranks else "rank 0"
        said = f"{computed} samples were computed, and {applied} are in the updates of {of}"
        raise _wrong(job, said + f"; {DROPPING}" * lost)
    for rank, mail in enumerate(world.mail):
        for sender in sorted(mail.unheard):
            raise _wrong(job, f"rank {rank} takes none of the messages that rank {sender} posts to it")
    return Checked(computed, applied, again.outcome.slow)


def in_all(found: list[Checked]) -> str:
    """The samples of all jobs, in words."""
    computed, applied = sum(one.computed for one in found), sum(one.applied for one in found)
    dropped = f"; {computed - applied:,} came too late or were on their way at the end" if computed > applied else ""
    return f"{computed:,} samples computed, {applied:,} applied once{dropped}"


def trained(job: Scenario, limit_s: float = LIMIT_S) -> str:
    """How far the weights of ranks that train a small model are from those of one process that has all samples."""
    import numpy as np

    from sim.language import event, layers
    from sim.language.job import Job
    from sim.language.learning import Chain, Values

    model, text = Chain(), job.protocol.text(1, workers=job.workers)
    servers, steps, batch = text.servers, JOB["steps"], JOB["batch"]
    small = Job(servers + job.workers, model.layers(1e-3, 2e-3), steps, batch=batch)
    values, weights = Values(small, model, text.data == "shared"), model.weights()
    try:
        with ended_after(limit_s, ENDLESS.format(limit_s)):
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
    if text.keeps == "layers":  # a rank trains those of its stage
        stages = [first * model.width**2 for first in layers.stages(small.layers, small.ranks)]
        ends = [np.concatenate([end[slice(*own)] for end, own in zip(ends, pairwise(stages), strict=True)])]
    gaps = [[np.abs(np.nan_to_num(end - of)).max() for end in ends] for of in (weights, ends[0])]  # NaN was dropped
    off, apart = (max(each) / np.abs(weights).max() for each in gaps)
    if off < ALIKE:
        return f"{job.workers} workers end with the weights of one process that has all samples"
    ranks = f"; ranks end up to {apart:.1%} apart" if apart > ALIKE else ""
    where = f"up to {off:.1%} of the largest weight from one process that has all samples"
    return f"{job.workers} workers end {where}{ranks}"


def by_engine(slow: list[str]) -> str:
    """How many of the jobs the engine answers, and why not the others, in words."""
    alike, refused = slow.count(""), next(filter(None, slow), "")
    said = f"answers {alike} of the jobs, as the event world does" if alike else "answers none of the jobs"
    return f"{said}; refused: {refused}" if refused else said


def _wrong(job: Scenario, said: str) -> RunFailed:
    return RunFailed(f"{protocols.name_of(job.protocol)}: {said} ({_said(job)})")


def _said(job: Scenario) -> str:
    servers = f", {job.servers} servers" if job.protocol.has_servers else ""
    return f"{job.workers} workers{servers}, stragglers {job.stragglers_name}, on {job.cluster.name}"


if __name__ == "__main__":
    command.run(PROGRAM, main)
