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

JOBS = 600


def drawn(number: int) -> Scenario | None:
    """A job by its number; None if the front door refuses it."""
    rng = random.Random(number)
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
