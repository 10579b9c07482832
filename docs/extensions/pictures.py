"""```{picture} NAME``` is replaced by what the function of that name draws, from the simulator or docs/data, as pages are built."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from docutils import nodes
from matplotlib.figure import Figure
from sphinx.util.docutils import SphinxDirective

FOLDER = "_pictures"


def ports() -> Figure:
    """Four workers whose gradients queue at the master's port."""
    return _gantt("fmb", steps=2)


def ring() -> Figure:
    """The rounds of a ring."""
    return _gantt("allreduce", ["algorithm=ring"], steps=2)


def stragglers() -> Figure:
    """The step of fmb is that of the slowest worker; the step of amb is fixed."""
    from trainsim import Scenario, protocols, read_stragglers, read_workload, simulate

    drawing = _figure(3.4)
    left, right = drawing.subplots(1, 2)
    law = read_stragglers("lognormal(mean=50ms, cv=1.5)")
    ways = {"fmb": ([], 64), "amb": (["time_limit_s=0.25", "partitions=64"], 256)}
    for name, (settings, batch) in ways.items():
        for workers, style in ((4, "-"), (32, "--")):
            job = {"workers": workers, "batch": batch, "steps": 200, "stragglers": law}
            found = simulate(Scenario(protocols.make(name, settings), read_workload("mnist"), **job), replications=2)
            steps, label = np.sort(found.step_s.ravel()), f"{name}, {workers} workers"
            left.plot(steps * 1e3, np.linspace(0, 1, len(steps)), f"C{name == 'amb':d}{style}", label=label)
            samples = np.sort(found.samples.ravel()) / workers
            right.plot(samples, np.linspace(0, 1, len(samples)), f"C{name == 'amb':d}{style}")
    left.set(xlabel="step, ms", ylabel="share of steps", xlim=(0, 1000))
    left.legend(frameon=False, fontsize=8)
    right.set(xlabel="samples a step and worker", xlim=(0, None))
    return drawing


def measured() -> Figure:
    """Predicted against measured steps of real runs and of a published table, with 90 % intervals."""
    import results

    drawing, groups = _figure(4.4), {}
    for name in ("validate", "servers", "collectives", "testbed"):
        groups[name] = [
            (
                (cell["measured_step_s_0"] + cell["measured_step_s_1"]) / 2,
                *(cell[f"predicted_{end}_s"] for end in ("step", "low", "high")),
            )
            for cell in results.kept(name).cells
        ]
    columns = "measured_step_s", "predicted_step_s", "predicted_low_s", "predicted_high_s"
    page = [cell for cell in results.kept("evidence").cells if str(cell["cell"]).startswith("tensorflow_page")]
    groups["evidence: TensorFlow's page, GPUs"] = [tuple(cell[column] for column in columns) for cell in page]
    axes = drawing.subplots()
    for name, jobs in groups.items():
        real_s, said_s, low_s, high_s = np.array(jobs).T
        bars = [np.maximum(said_s - low_s, 0), np.maximum(high_s - said_s, 0)]
        axes.errorbar(real_s, said_s, bars, fmt=".", ms=5, lw=0.8, alpha=0.7, label=f"{name}, {len(jobs)} jobs")
    axes.axline((0.01, 0.01), slope=1, color="black", lw=0.8)
    axes.set(xlabel="measured, s a step", ylabel="predicted, s a step", xscale="log", yscale="log")
    axes.legend(frameon=False)
    return drawing


def coverage() -> Figure:
    """The share of rows that 90 % intervals hold, of each source of published tables."""
    import results

    drawing = _figure(3.2)
    axes = drawing.subplots()
    for said, _, titles in results.EVIDENCE:
        shares = sorted(float(row[results.COVERED].rstrip("%")) for row in results.of_sources(titles))
        axes.plot(np.linspace(0, 100, len(shares)), shares, "o-", ms=3, label=said)
    axes.axhline(90, color="black", lw=0.8, ls="--")
    axes.set(xlabel="% of sources", ylabel="% of a source's rows within")
    axes.legend(frameon=False)
    return drawing


def beyond() -> Figure:
    """The error of T4 hosts against the number of hosts beyond the fitted ones."""
    import results

    drawing = _figure(3.2)
    axes, models = drawing.subplots(), {}
    table = next(table for table in results.kept("evidence").tables if table.title.startswith("T4, fitted on 1 and 2"))
    for model, hosts, _, error, *_ in table.rows:
        models.setdefault(model, []).append((int(hosts), float(error.rstrip("%"))))
    for model, rows in models.items():
        hosts, errors = zip(*rows, strict=True)
        fitted = 2 if hosts[0] == 3 else 4
        axes.plot(np.array(hosts) / fitted, errors, "o-", label=f"{model}, fitted on 1 to {fitted} hosts")
    axes.set(xlabel="times as many hosts as were fitted", ylabel="mean abs. error, %", ylim=(0, None))
    axes.legend(frameon=False)
    return drawing


def growth() -> Figure:
    """Ends of intervals by doublings: of the law without a table, and of tables of several sizes that grew."""
    from sim.answers import growth as tables
    from sim.answers.ignorance import LAW
    from sim.base.interval import of_normal
    from sim.platform.cluster import Growth

    drawing, doublings = _figure(3.2), np.linspace(0.01, 4, 40)
    axes, lines = drawing.subplots(), {}
    slow = np.array([of_normal(LAW.deviation(far)) for far in doublings])
    lines["traces"] = np.array([slow, -LAW.faster * slow]).T
    for grew in (0.0, 0.1, 0.3):
        scale = tables.LAW.scale(grew**2)
        known = Growth(per_doubling=grew, simulated=scale, unchanged=scale, simulated_weight=0.5)
        told = [tables.after(known, far, 0.0) for far in doublings]
        lines[f"a table that grew by {grew:.0%} a doubling"] = np.array([(one.slower, -one.faster) for one in told])
    for number, (said, ends) in enumerate(lines.items()):
        axes.plot(doublings, np.exp(ends), color=f"C{number}", label=(said, "_"))
    axes.set(xlabel="doublings of hosts beyond those that were fitted", ylabel="times the predicted step", yscale="log")
    axes.legend(frameon=False)
    return drawing


def _figure(height_inch: float) -> Figure:
    return Figure(figsize=(8, height_inch), layout="constrained")


def _gantt(name: str, settings: list[str] | None = None, steps: int = 3) -> Figure:
    """A bar an activity, a row a rank, of the first steps of a job of four workers."""
    from sim.plot import COLOURS
    from sim.timeline import rank_name
    from trainsim import Scenario, protocols, read_stragglers, read_workload, simulate

    law = {"stragglers": read_stragglers("niagara*0.005"), "stragglers_name": "niagara*0.005"}
    job = Scenario(protocols.make(name, settings or []), read_workload("mlp"), workers=4, steps=steps, warmup=1, **law)
    trace = simulate(job, "event", 1, want_trace=True).kept_trace
    rows = trace.rows[trace.rows["step"].between(1, steps)]
    drawing = _figure(0.8 + 0.42 * trace.header.ranks)
    axes = drawing.subplots()
    start_s = rows.loc[rows["activity"] != "wait", "start_s"].min()
    for activity, colour in COLOURS.items():
        bars = rows[rows["activity"] == activity]
        if len(bars):
            axes.barh(
                bars["rank"],
                (bars["end_s"] - bars["start_s"]) * 1e3,
                0.8,
                (bars["start_s"] - start_s) * 1e3,
                color=colour,
                label=activity,
            )
    ranks = range(trace.header.ranks)
    axes.set_yticks(ranks, [rank_name(rank, trace.header) for rank in ranks])
    axes.invert_yaxis()
    axes.set(xlabel="ms", xlim=(0, None))
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    return drawing


PICTURES: dict[str, Callable[[], Figure]] = {
    one.__name__: one for one in (measured, coverage, beyond, ports, ring, stragglers, growth)
}


class Picture(SphinxDirective):
    """A picture with its caption, which is the content of the directive."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        path = Path(self.env.srcdir) / FOLDER / f"{name}.svg"
        path.parent.mkdir(exist_ok=True)
        PICTURES[name]().savefig(path)
        caption = " ".join(self.content)
        figure = f"```{{figure}} /{FOLDER}/{name}.svg\n:alt: {PICTURES[name].__doc__}\n\n{caption}\n```"
        return self.parse_text_to_nodes(figure)


def setup(app) -> dict:
    app.add_directive("picture", Picture)
    return {"parallel_read_safe": True}


if __name__ == "__main__":  # README.md's picture: python docs/extensions/pictures.py measured docs/images/measured.png
    import sys

    sys.path.insert(0, str(Path(__file__).parents[1] / "generating"))
    PICTURES[sys.argv[1]]().savefig(sys.argv[2], dpi=100)
