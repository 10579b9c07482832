"""A job is run by the engine where it can, and by the event world where not, which takes longer and comes to the same."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from sim.language import event
from sim.language.engine import job as engine
from sim.language.engine.values import NotLowered
from sim.language.job import Job, Result
from sim.language.text import Text

NOT_COMPILED = (
    "the engine is not compiled here (a C compiler is needed when the package is installed); the event world answers"
)


def run(job: Job, text: Text) -> tuple[Result, str]:
    """Run a job to its end; its result, and a line that says why the engine did not run it, or nothing.

    Raises:
        RunFailed: all texts wait for ever.
        WrongText: the text does what no world can run.
        WrongSetting: the protocol cannot have the job.
    """
    if engine._kernel is None:
        return event.run(job, text), NOT_COMPILED
    try:
        return engine.run(job, text), ""
    except NotLowered as error:
        return event.run(job, text), f"{error}; the event world answers"


def replications(job: Job, text: Text, count: int, threads: int | None = None) -> list[Result]:
    """Run a job several times, each with random numbers of its own; the job's replication is the first.

    Args:
        threads: that run at once; one for each core of this machine by default.
    """
    jobs = [replace(job, replication=job.replication + k) for k in range(count)]
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        return [found for found, _ in pool.map(lambda one: run(one, text), jobs)]
