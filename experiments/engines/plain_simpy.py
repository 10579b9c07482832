"""The job as SimPy's documentation would write it: a Store for each inbox, a Resource for the port, a timeout for what takes time."""

from __future__ import annotations

import random
from functools import partial
from itertools import pairwise

import simpy

from experiments.engines.job import UPDATE_S, Job


def worker(env, job, parameters, port, gradients, compute_s):
    """Receives parameters, computes, and sends its gradient through the master's port."""
    for _ in range(job.steps):
        yield parameters.get()
        yield env.timeout(compute_s())
        with port.request() as turn:
            yield turn
            yield env.timeout(job.port_s)
        yield gradients.put(1)


def master(env, job, inboxes, gradients, ends_s):
    """Sends parameters to all workers, receives all gradients, and updates."""
    for _ in range(job.steps):
        for inbox in inboxes:
            yield env.timeout(job.port_s)
            yield inbox.put(1)
        for _ in inboxes:
            yield gradients.get()
        yield env.timeout(UPDATE_S)
        ends_s.append(env.now)


def run(job: Job) -> list[float]:
    """Seconds of each step."""
    env, ends_s = simpy.Environment(), [0.0]
    port, gradients = simpy.Resource(env), simpy.Store(env)
    inboxes = [simpy.Store(env) for _ in range(job.workers)]
    compute_s = partial(random.Random(job.seed).lognormvariate, job.mu, job.sigma)
    for inbox in inboxes:
        env.process(worker(env, job, inbox, port, gradients, compute_s))
    env.run(env.process(master(env, job, inboxes, gradients, ends_s)))
    return [end_s - start_s for start_s, end_s in pairwise(ends_s)]
