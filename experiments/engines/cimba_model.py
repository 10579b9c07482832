"""The job in Cimba for Python, whose models are compiled onto a C engine (written for 0.9.6)."""

import cimba as cb
from cimba import inputs

from experiments.engines.job import UPDATE_S, Job


class Worker(cb.Model):
    """Receives parameters, computes, and sends its gradient through the master's port."""

    training: cb.Ref["Training"]
    parameters: cb.Store[int]

    @cb.process
    def work(self):
        for _ in range(self.training.steps):
            self.parameters.get()
            cb.hold(self.training.compute_s.next())
            self.training.port.acquire()
            cb.hold(self.training.port_s)
            self.training.port.release()
            self.training.gradients.put(1)


class Training(cb.Model):
    """The master: sends parameters to all workers, receives all gradients, and updates."""

    steps: cb.Param[int]
    port_s: cb.Param[float]
    compute_s: cb.Input[float]
    workers: list[Worker]
    port: cb.Resource
    gradients: cb.Store[int]
    step_s: cb.Dataset

    @cb.process
    def lead(self):
        for _ in range(self.steps):
            start_s = cb.now()
            for index in range(len(self.workers)):
                cb.hold(self.port_s)
                self.workers[index].parameters.put(1)
            for _gradient in range(len(self.workers)):
                self.gradients.get()
            cb.hold(UPDATE_S)
            self.step_s.record(cb.now() - start_s)


def run(job: Job) -> list[float]:
    """Seconds of each step."""
    training = Training()
    training.steps, training.port_s = job.steps, job.port_s
    training.compute_s = inputs.dist.lognormal(mean=job.mu, sigma=job.sigma)
    training.workers = [Worker() for _ in range(job.workers)]
    for worker in training.workers:
        worker.training = training
    training.step_s = cb.Dataset()
    training.step_s.capture()
    results = cb.Experiment(training, seed=job.seed).run(workers=1, on_failure="raise")
    return results[training].step_s.trial(0, 0)[1].tolist()
