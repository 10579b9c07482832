"""Compile the kernel, once for an installation: `python -m sim.engine.install`, which `make setup` does.

Without it the first job for which it pays does so (choose.py).
"""

from __future__ import annotations

import sys

from sim.engine import kept


def keep() -> bool:
    """Compile the kernel, unless it is kept or another process does; whether it can be used now."""
    return kept.keep(compile_all)


def compile_all() -> None:
    """Compile the kernel, by running a small job."""
    from sim.engine.replications import Replications
    from sim.job.scenario import Scenario
    from sim.model import workload
    from sim.protocols import make

    Replications(Scenario(make("fmb"), workload.read("mlp"), 2, steps=1, warmup=0)).outcome(0)


def main() -> None:
    """Compile it; where that fails, say so: the event world answers everything."""
    try:
        done, why = keep(), "numba does not compile here, or another process compiles it"
    except Exception as error:
        done, why = False, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    if not done:
        print(f"the engine is not compiled, and answers take longer: {why}", file=sys.stderr)


if __name__ == "__main__":
    main()
