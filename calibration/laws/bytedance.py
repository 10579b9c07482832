"""Laws of ByteDance's straggler traces: `python -m calibration.laws.bytedance FOLDER`, which has the traces, writes sim/recorded.

Each trace has the operations of every rank of one job with stragglers, in sampled steps. A rank's slowdown in a step is the sum of its
forward and backward computing over that of the median rank. Ranks of these jobs differ throughout the 1,000 steps recorded; what
varies from step to step besides is below 2 %. The law is therefore a factor that each rank draws once for the whole run, from the
ranks' medians, times a log-normal noise.

Source: ByteDance StragglerAnalysis (Apache-2.0); Lin et al., "Understanding Stragglers in Large Model Training Using What-if
Analysis", OSDI 2025.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from calibration.laws.ranks import varies
from sim import command, stragglers
from sim.base import tables
from sim.base.files import write_text
from sim.laws import Empirical, Independent, LogNormal, Persistent, Together

COMPUTING = ("forward-compute", "backward-compute")
REPEATED = 4  # times each rank's slowdown is in the law, so that few draws fall between two ranks'
TRACES = {
    "bytedance-ar": "bytedance_straggler_trace_AR.parquet",
    "bytedance-st": "bytedance_straggler_trace_ST.parquet",
}


def slowdowns(path: str | Path) -> np.ndarray:
    """Computing of each rank in each step over that of the median rank, shape (ranks, steps).

    Raises:
        WrongSetting: no such file.
    """
    table = tables.read(path, "FOLDER")
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


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    import tomli_w

    parser = command.Parser(prog="calibration.laws.bytedance", description="Laws of ByteDance's straggler traces.")
    parser.add_argument("folder", metavar="FOLDER", help="that has the two traces")
    folder = Path(parser.parse_args(argv).folder)
    for name, file in TRACES.items():
        factors = slowdowns(folder / file)
        found = varies(dict(enumerate(factors)))
        of_ranks = np.log(factors).mean(axis=1).var() / np.log(factors).var()
        shares = ", ".join(f"{value:.3f}" for value in np.quantile(factors, (0, 0.25, 0.5, 0.75, 0.95, 1)))
        print(
            f"{name}: {factors.shape[0]} ranks, {factors.shape[1]} steps; slowdown at 0, 25, 50, 75, 95, 100 %: {shares}"
        )
        print(f"  {of_ranks:.1%} of the variance is between ranks; slow throughout: {found.slow}")
        head = "# Written by calibration.laws.bytedance: slowdown of computing of the ranks of one job, over the median rank.\n"
        head += "# Figures derived from ByteDance StragglerAnalysis (Apache-2.0); Lin et al., OSDI 2025.\n"
        text = head + tomli_w.dumps(law(factors).model_dump(mode="json", exclude_none=True))
        write_text(stragglers.TRACES / stragglers.RECORDED[name], text)
    return 0


if __name__ == "__main__":
    command.run("calibration.laws.bytedance", main)
