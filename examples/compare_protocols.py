"""Which protocol bears stragglers best? In cells, for a notebook; `python compare_protocols.py` in this folder runs them all."""

# %% The job, on hosts that are known by name
from pathlib import Path

from trainsim import Scenario, protocols, read_cluster, read_stragglers, read_workload, simulate

CLUSTER, MODEL = read_cluster("rented.toml"), read_workload("layers.toml")
SLEEPS = "shifted-exponential(mean=100ms, shift=20ms)"


def job(protocol: str, *settings: str, sleeps: str = SLEEPS) -> Scenario:
    """The job under a protocol and a law of sleeps."""
    text, law = protocols.make(protocol, settings), read_stragglers(sleeps)
    return Scenario(text, MODEL, workers=12, batch=64, cluster=CLUSTER, stragglers=law, steps=20)


# %% How fast are three protocols, and how sure is that?
found = {
    "fmb": simulate(job("fmb"), replications=5),
    "amb": simulate(job("amb", "time_limit_s=0.5"), replications=5),
    "allreduce": simulate(job("allreduce"), replications=5),
}
for name, one in found.items():
    low, high = one.interval
    print(f"{name:24} {one.samples_per_s:6,.0f} samples/s, nine runs in ten {low:,.0f} to {high:,.0f}")

# %% How much do their steps vary?
for name, one in found.items():
    steps = one.step_s.ravel()
    print(f"{name:24} {steps.mean():6.3f} s a step, standard deviation {steps.std():.3f} s")

# %% How fast is allreduce under other laws?
for path in sorted(Path("laws").glob("*.toml")):
    one = simulate(job("allreduce", sleeps=str(path)), replications=5)
    print(f"{path.name:24} {one.samples_per_s:6,.0f} samples/s, {one.step_s.mean():.3f} s a step")
