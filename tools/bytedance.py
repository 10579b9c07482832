"""Laws of ByteDance's straggler traces: `python tools/bytedance.py FOLDER`, which has the traces, writes sim/recorded.

Each trace has the operations of every rank of one job with stragglers, in sampled steps. A rank's slowdown in a step is the sum of its
forward and backward computing over that of the median rank. Ranks of these jobs differ throughout the 1,000 steps recorded; what
varies from step to step besides is below 2 %. The law is therefore a factor that each rank draws once for the whole run, from the
ranks' medians, times a log-normal noise.

Source: ByteDance StragglerAnalysis (Apache-2.0); Lin et al., "Understanding Stragglers in Large Model Training Using What-if
Analysis", OSDI 2025.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import tomli_w

from sim import stragglers
from sim.laws import Empirical, Independent, LogNormal, Persistent, Together

COMPUTING = ("forward-compute", "backward-compute")
REPEATED = 4  # times each rank's slowdown is in the law, so that few draws fall between two ranks'
TRACES = {
    "bytedance-ar": "bytedance_straggler_trace_AR.parquet",
    "bytedance-st": "bytedance_straggler_trace_ST.parquet",
}
HEAD = """# Written by tools/bytedance.py: slowdown of computing of the ranks of one job, over the median rank.
# Figures derived from ByteDance StragglerAnalysis (Apache-2.0); Lin et al., OSDI 2025.
"""


def slowdowns(path: Path) -> np.ndarray:
    """Computing of each rank in each step over that of the median rank, shape (ranks, steps)."""
    table = pd.read_parquet(path)
    rows = table[table["optype"].isin(COMPUTING)]
    seconds = rows.groupby(["rank", "step"])["duration"].sum().unstack("step").to_numpy(float)
    return seconds / np.median(seconds, axis=0)


def law(factors: np.ndarray) -> Together:
    """A factor that each rank keeps, times one that varies."""
    ranks = np.median(factors, axis=1)
    rest = np.log(factors / ranks[:, None])
    kept = [float(f"{value:.4g}") for value in np.sort(ranks) for _ in range(REPEATED)]
    noise = LogNormal(cv=float(f"{np.sqrt(np.expm1(rest.var())):.3g}"))
    return Together(of=(Persistent(factor=Empirical(values=kept), persistence=1.0), Independent(factor=noise)))


if __name__ == "__main__":
    for name, file in TRACES.items():
        found = law(slowdowns(Path(sys.argv[1], file))).model_dump(mode="json", exclude_none=True)
        (stragglers.TRACES / stragglers.RECORDED[name]).write_text(HEAD + tomli_w.dumps(found))
