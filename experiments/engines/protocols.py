"""Other jobs of our own engine, whose cost the job of `job.py` does not tell."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.engines.job import Job
from experiments.engines.ours import by_engine
from sim import protocols, stragglers
from sim.collectives.base import swap
from sim.job.scenario import Scenario
from sim.model import workload
from sim.platform import cluster
from sim.protocols.base import Protocol
from sim.simulation import simulate

SLEEPS, V100 = "niagara*0.01", "p3.16xlarge*8"
ENGINE = "engine"


def horovod(job: Job) -> list[float]:
    """Seconds of each step of Horovod on ResNet-50: a ring for each fusion of gradients, while ranks compute."""
    return _simulated(job, "horovod", ["algorithm=ring"], "resnet50", "event")


def horovod_tuned(job: Job) -> list[float]:
    """The same with Open MPI's algorithms, by the engine."""
    return _simulated(job, "horovod", [], "resnet50", ENGINE, job.runs)


def horovod_engine(job: Job) -> list[float]:
    """The job of `horovod`, by the engine."""
    return _simulated(job, "horovod", ["algorithm=ring"], "resnet50", ENGINE, job.runs)


def ring(job: Job) -> list[float]:
    """Seconds of each step of a ring allreduce in the event world."""
    return _simulated(job, "allreduce", ["algorithm=ring"], "resnet50", "event")


def ring_engine(job: Job) -> list[float]:
    """The job of `ring`, by the engine."""
    return _simulated(job, "allreduce", ["algorithm=ring"], "resnet50", ENGINE, job.runs)


def ps_async(job: Job) -> list[float]:
    """Seconds of each step of one asynchronous parameter server: as many updates as there are workers."""
    return _simulated(job, "ps-async", [], "mnist", "event")


def ps_async_engine(job: Job) -> list[float]:
    """The job of `ps_async`, by the engine."""
    return _simulated(job, "ps-async", [], "mnist", ENGINE, job.runs)


def v100(job: Job) -> list[float]:
    """Seconds of each step of an allreduce of GPUs that share hosts and their ports, in the event world."""
    return _simulated(job, "allreduce", [], "resnet50", "event", on=V100)


def v100_engine(job: Job) -> list[float]:
    """The job of `v100`, by the engine."""
    return _simulated(job, "allreduce", [], "resnet50", ENGINE, job.runs, on=V100)


def kbatch(job: Job) -> list[float]:
    """Seconds of each step of a master that updates with as many gradients as there are workers, while nobody waits."""
    return _simulated(job, "kbatch-async", [], "mnist", "event", sleeps=SLEEPS)


def kbatch_engine(job: Job) -> list[float]:
    """The job of `kbatch`, by the engine."""
    return _simulated(job, "kbatch-async", [], "mnist", ENGINE, job.runs, SLEEPS)


def hybrid(job: Job) -> list[float]:
    """Seconds of each step of servers of sparse variables beside an allreduce of dense ones."""
    return _simulated(job, "hybrid", [], "lm1b", "event")


def hybrid_engine(job: Job) -> list[float]:
    """The job of `hybrid`, by the engine."""
    return _simulated(job, "hybrid", [], "lm1b", ENGINE, job.runs)


def layers(job: Job) -> list[float]:
    """Seconds of each step of servers whose variables travel one by one."""
    return _simulated(job, "ps-layers", [], "resnet50", "event")


def layers_engine(job: Job) -> list[float]:
    """The job of `layers`, by the engine."""
    return _simulated(job, "ps-layers", [], "resnet50", ENGINE, job.runs)


@dataclass(frozen=True)
class Gossip(Protocol):
    """D-PSGD on a ring (Lian et al., 2017): each worker swaps its gradient with its two neighbours. A text of one's own."""

    def worker(self, me):
        """What each of them does."""
        whole, count = slice(0, me.scenario.summed_items), len(me.workers)
        for _ in me.steps():
            yield from me.sleep()
            yield from me.compute()
            right, left = (me.rank + 1) % count, (me.rank - 1) % count
            yield from me.exchange(swap(left if me.rank % 2 else right, whole, whole, True))
            yield from me.exchange(swap(right if me.rank % 2 else left, whole, whole, True))
            yield from me.update()


def gossip(job: Job) -> list[float]:
    """Seconds of each step of a text of one's own."""
    return _simulated(job, Gossip(), [], "mnist", "event", sleeps=SLEEPS)


def gossip_engine(job: Job) -> list[float]:
    """The job of `gossip`, by the engine."""
    return _simulated(job, Gossip(), [], "mnist", ENGINE, job.runs, SLEEPS)


def amb_engine(job: Job) -> list[float]:
    """Seconds of each step of anytime minibatch whose workers sleep at random, by the engine."""
    return _simulated(job, "amb", [], "mnist", ENGINE, job.runs, SLEEPS)


def _simulated(
    job: Job,
    protocol: str | Protocol,
    settings: list[str],
    model: str,
    world: str,
    replications: int = 1,
    sleeps: str = "none",
    on: str = "",
) -> list[float]:
    about: dict = {"workers": job.workers, "steps": job.steps, "warmup": 0, "seed": job.seed}
    about |= {"stragglers": stragglers.read(sleeps), "stragglers_name": sleeps}
    about |= {"cluster": cluster.read(on)} if on else {}
    made = protocols.make(protocol, settings) if isinstance(protocol, str) else protocol
    scenario = Scenario(made, workload.read(model), **about)
    if world == ENGINE:
        return by_engine(scenario, replications)
    return simulate(scenario, world, replications).outcome.step_s.ravel().tolist()
