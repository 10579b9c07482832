"""`python tests/needs.py`: what jobs are said to need (sim.needs) beside the processor time that they take.

First runs, of two steps, and each further step. The jobs are those of tests/unit/test_needs.py and larger ones.
"""

import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "unit"))
from test_needs import EVENT, job

from sim import event, needs
from sim.engine.replications import Replications

LARGER = {
    f"{name}, {workers} workers, {slots} a host": job(name, settings, workers, slots, model)
    for name, settings, model in (
        ("allreduce", ("algorithm=auto",), "resnet50"),
        ("horovod", ("algorithm=auto",), "resnet50"),
        ("horovod", ("algorithm=ring",), "resnet50"),
        ("ps-sync", ("barrier=true",), "resnet50"),
    )
    for workers, slots in ((64, 1), (64, 8), (256, 1))
}
LEAST_S, MOST_MORE = 0.2, 64  # of a measurement, and further steps in it


def took_s(run) -> float:
    """Processor seconds of a run."""
    begun_s = time.process_time()
    run()
    return time.process_time() - begun_s


def main() -> None:
    """A line for each job and world."""
    print("world   first: said, took (s)      step: said, took (s)       job")
    for world, run in (
        ("event", partial(event.run, want_trace=False)),
        ("engine", lambda one: Replications(one).outcome(0)),
    ):
        for name, one in (EVENT | LARGER).items():
            run(replace(one, workers=2) if one.workers > 2 else one)  # loads all
            first_s, more, took = took_s(partial(run, one)), 2, 0.0
            while took < LEAST_S and more < MOST_MORE:
                more *= 2
                took = took_s(partial(run, replace(one, steps=1 + more))) - first_s
            asked = replace(one, steps=1 + more)
            said_s, step_s = needs.of(one, world).seconds, needs.once_and_step_s(asked, world)[1]
            print(f"{world:6} {said_s:10.4f} {first_s:10.4f}   {step_s:12.6f} {took / more:12.6f}   {name}", flush=True)


if __name__ == "__main__":
    main()
