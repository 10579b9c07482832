"""A table of runs to a target that a user brings: `batch`, samples of a step of all workers, and `steps`, updates to the target.

`noise_scale`, in samples, makes a table of a single batch enough: the gradient noise scale of each run
(sim.efficiency.noise.noise_scale_of_run).
"""

from __future__ import annotations

from sim.base import tables
from sim.base.errors import WrongSetting
from sim.efficiency import law

OPTION = "--until"
COLUMNS, NOISE = ("batch", "steps"), "noise_scale"
MOST = 1e12


def read(path: str) -> law.Law:
    """The law of a table in a file; several rows of one batch are repeated runs.

    Raises:
        WrongSetting: there is no such file or column, a value is no number from 1, or all rows are of one batch without a noise scale.
    """
    table = tables.read(path, OPTION, COLUMNS)
    batches, steps = (tables.numbers(table, name, f"{OPTION} {path}", least=1, most=MOST) for name in COLUMNS)
    if len(set(batches)) > 1:
        return law.fit(batches, steps)
    if NOISE not in table.columns:
        given = f"one batch, {batches[0]:g}"
        allowed = f"two batches or more, which say what a larger one saves; or a column {NOISE}, the gradient noise scale in samples"
        raise WrongSetting(f"{OPTION} {path}: batch", given, allowed)
    known = tables.numbers(table, NOISE, f"{OPTION} {path}", least=0, most=MOST)
    return law.of_noise(float(batches[0]), steps.tolist(), float(known.mean()))
