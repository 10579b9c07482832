"""The jobs as SimPy's documentation would write them: a Store for each inbox, a Resource for the port, a timeout for what takes time."""

from __future__ import annotations

import random
from collections import defaultdict
from functools import partial

import simpy

from experiments.engines.job import COMPUTE_S, UPDATE_S, Job


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
    for step in range(job.steps):
        for inbox in inboxes:
            yield env.timeout(job.port_s)
            yield inbox.put(1)
        for _ in inboxes:
            yield gradients.get()
        yield env.timeout(UPDATE_S)
        ends_s[step] = env.now


def fmb(env, job, ends_s):
    """Starts a master and its workers."""
    port, gradients = simpy.Resource(env), simpy.Store(env)
    inboxes = [simpy.Store(env) for _ in range(job.workers)]
    compute_s = partial(random.Random(job.seed).lognormvariate, job.mu, job.sigma)
    for inbox in inboxes:
        env.process(worker(env, job, inbox, port, gradients, compute_s))
    env.process(master(env, job, inboxes, gradients, ends_s))


def ring(env, job, rank, inboxes):
    """Sums a vector by a ring: each part goes to the next rank, twice around but for one hop."""
    for _ in range(2 * (job.workers - 1)):
        yield env.timeout(job.message_s)
        yield inboxes[(rank + 1) % job.workers].put(1)
        yield inboxes[rank].get()


def ddp(env, job, rank, inboxes, ends_s):
    """Sums the first half of the gradient while the second is computed."""
    for step in range(job.steps):
        yield env.timeout(COMPUTE_S * 2 / 3)
        first = env.process(ring(env, job, rank, inboxes))
        yield env.timeout(COMPUTE_S / 3)
        yield first
        yield from ring(env, job, rank, inboxes)
        ends_s[step] = env.now


def local_sgd(env, job, rank, inboxes, ends_s):
    """Sums in every fourth step."""
    for step in range(job.steps):
        yield env.timeout(COMPUTE_S)
        if step % 4 == 3:
            yield from ring(env, job, rank, inboxes)
        ends_s[step] = env.now


def d_psgd(env, job, rank, inboxes, ends_s):
    """Sends its weights to a rank that is so far away, and takes another's."""
    for step, far in enumerate(job.shifts):
        yield env.timeout(COMPUTE_S)
        yield env.timeout(job.message_s)
        yield inboxes[rank, (rank + far) % job.workers].put(1)
        yield inboxes[(rank - far) % job.workers, rank].get()
        ends_s[step] = env.now


OF_RANKS = {"ddp": ddp, "local-sgd": local_sgd, "d-psgd": d_psgd}


def run(job: Job) -> list[float]:
    """Seconds of each step."""
    env, ends_s = simpy.Environment(), [0.0] * job.steps
    if job.text == "fmb":
        fmb(env, job, ends_s)
    else:
        inboxes: dict = defaultdict(partial(simpy.Store, env))
        for rank in range(job.workers):
            env.process(OF_RANKS[job.text](env, job, rank, inboxes, ends_s))
    env.run()
    return [end_s - begin_s for begin_s, end_s in zip([0.0, *ends_s], ends_s, strict=False)]
