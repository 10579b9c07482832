"""What the worlds of sim.event say of 600 drawn jobs, kept for the worlds that take their place: python tests/unit/today.py FILE.

A line for each job: its number (`drawn` makes it again), the protocol, step times, samples and idle shares. Not a test; it goes when
sim.event goes.
"""

import json
import random
import sys
from pathlib import Path

from scenarios import CLUSTERS, SETTINGS, SPARSE, bare

from sim import event, protocols
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.laws import Constant, Exponential, LogNormal
from sim.model.costs import Costs, Line
from sim.model.workload import Variable, Workload
from sim.platform.cluster import Cluster, Host, Link

JOBS = 600


def common(number: int, said: str) -> Scenario:
    """A job of the common kind by its number, of a protocol and its settings: a port and a core for each rank, induced sleeps."""
    rng, (name, *settings) = random.Random(number), said.split()
    workers, sizes = rng.randrange(2, 10), [rng.randrange(1, 300_000) for _ in range(rng.randrange(1, 7))]
    sizes[-1] += -(sum(sizes) + 1) % 2520  # with an item more, parts are equal among any number of workers
    sample_s = 10 ** rng.uniform(-4, -3)
    costs = Costs(
        compute=Line(slope_s=sample_s),
        partition=Line(slope_s=sample_s),
        input=Line(base_s=rng.choice([0.0, 1e-3 if name != "amb" else 0.0])),  # of AMB whatever is computed
        pack=Line(slope_s=rng.choice([0.0, 2.5e-10 if name != "amb" else 0.0])),
        take_up=Line(slope_s=rng.choice([0.0, 2.5e-10 if name != "amb" else 0.0])),
        reduce=Line(slope_s=rng.choice([0.0, 2.5e-10])),
        update=Line(base_s=1e-3, slope_s=rng.choice([0.0, 5e-10])),
        noise=LogNormal(cv=rng.choice([0.0, 0.2])),
    )
    link = Link(
        latency_s=10 ** rng.uniform(-6, -3),
        overhead_s=rng.choice([0.0, 1e-5]),
        gap_s=rng.choice([0.0, 1e-6]),
        bandwidth_bytes_per_s=10 ** rng.uniform(7, 10),
    )
    protocol = protocols.make(name, settings)
    ranks = workers + (0 if protocol.masterless else 1)
    hosts = [Host(name=f"h{k}", speed=rng.uniform(0.5, 1.0)) for k in range(ranks)]
    variables = [Variable(name=f"w{k}", shape=(size,)) for k, size in enumerate(sizes)]
    return Scenario(
        protocol,
        Workload(name="drawn", variables=variables, costs=costs),
        workers,
        steps=8,
        warmup=rng.choice([0, 2]),
        batch=32,
        cluster=Cluster(hosts=hosts, network=link),
        stragglers=Exponential(mean=rng.choice([0.001, 0.02])),
        seed=number,
    )


def drawn(number: int) -> Scenario | None:
    """A job by its number, every second one of the common kind; None if the front door refuses it."""
    rng = random.Random(number)
    if number % 2:
        try:
            return common(number, " ".join(rng.choice(SETTINGS)))
        except WrongSetting:
            return None
    cluster, said = rng.choice([*CLUSTERS]), rng.choice([*SETTINGS, *SPARSE])
    model = "bigram" if said in SPARSE else "toy_fc"
    workers, servers = rng.randrange(1, 8), rng.choice([1, 1, 2])
    law = rng.choice([Constant(value=0.0), Exponential(mean=0.003), Exponential(mean=0.05)])
    workload = bare(model)
    workload = workload.model_copy(
        update={"costs": workload.costs.model_copy(update={"noise": LogNormal(cv=rng.choice([0.0, 0.1]))})}
    )
    size = {"workers": workers, **({"servers": servers} if said[0].startswith("ps") else {})}
    size |= {"steps": rng.randrange(2, 9), "warmup": rng.randrange(3), "batch": rng.choice([16, 64]), "seed": number}
    try:
        return Scenario(
            protocols.make(said[0], list(said[1:])), workload, cluster=CLUSTERS[cluster], stragglers=law, **size
        )
    except WrongSetting:
        return None


def main(path: str) -> None:
    """Run the jobs and write what they come to."""
    number, kept = 0, 0
    with Path(path).open("w") as out:
        while kept < JOBS:
            scenario = drawn(number)
            if scenario is not None:
                found, _ = event.run(scenario, want_trace=False)
                said = {"number": number, "protocol": str(scenario.protocol), "step_s": found.step_s[0].tolist()}
                said |= {"samples": found.samples[0].tolist(), "idle": found.idle_fraction[0].tolist()}
                out.write(json.dumps(said) + "\n")
                kept += 1
            number += 1


if __name__ == "__main__":
    main(sys.argv[1])
