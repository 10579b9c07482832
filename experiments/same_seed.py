"""One seed, one simulated and one real run: the same sleeps, so the same steps are long.

Fitted: runs of 1 and 2 workers, few of them with sleeps. Predicted: 3 workers with niagara, step by step.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from experiments.kit import pages
from experiments.kit.cells import fitted, measure, predict
from experiments.validate import STRAGGLERS
from real.cells import Cell, fitted_cells
from sim.answers.outcome import of_trace


def run(out: Path, seed: int = 0) -> None:
    """Measure, fit, predict; out/same_seed.png and out/side_by_side.json (Perfetto), and the correlations on stdout."""
    from sim import timeline
    from sim.simulation import simulate

    same: dict = {"stragglers": STRAGGLERS, "steps": 100, "seed": seed}
    cells = {"fmb": Cell("fmb", 3, 512, **same), "amb": Cell("amb", 3, 1024, 0.12, **same)}
    runs = [(f"fit-{i}", cell) for i, cell in enumerate(fitted_cells(40, seed))]
    traces = measure([*runs[:6], *cells.items(), *runs[6:]], out / "traces")
    cluster = fitted([name for name, _ in runs], out / "traces", out / "profile.toml")
    pairs = {name: (predict(cell, cluster, 1), of_trace(traces[name])) for name, cell in cells.items()}
    for name, (simulated, real) in pairs.items():
        steps = np.corrcoef(simulated.step_s[0], real.step_s[0])[0, 1]
        error = simulated.step_s.mean() / real.step_s.mean() - 1
        pages.show(f"{name}: correlation of step times {steps:.4f}, mean step {error:+.2%}")
    figure(pairs, out / "same_seed.png")
    simulated = simulate(cells["fmb"].scenario(cluster), "event", 1, want_trace=True).trace
    timeline.write_many([("simulated", simulated), ("measured", traces["fmb"])], out / "side_by_side.json")
    pages.show(f"figure: {out / 'same_seed.png'}; both runs for Perfetto: {out / 'side_by_side.json'}")


def figure(pairs: dict, path: Path) -> None:
    """Step times of both runs laid over each other, a panel a protocol."""
    drawing, panels = pages.figure(len(pairs), 1, (9, 6), sharex=True)
    for axes, (name, (simulated, real)) in zip(panels, pairs.items(), strict=True):
        axes.plot(real.step_s[0] * 1e3, color="C0", lw=2.2, alpha=0.6, label="measured")
        axes.plot(simulated.step_s[0] * 1e3, color="black", lw=0.9, label="simulated")
        correlation = np.corrcoef(simulated.step_s[0], real.step_s[0])[0, 1]
        axes.set(ylabel="step, ms", title=f"{name}: correlation {correlation:.4f}")
    panels[0].legend(frameon=False)
    panels[-1].set(xlabel="step after warm-up")
    pages.save(drawing, path)
