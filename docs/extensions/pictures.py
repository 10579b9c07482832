"""```{picture} NAME``` is replaced by what the function of that name draws, from the simulator or docs/data, as pages are built."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from docutils import nodes
from matplotlib.figure import Figure
from sphinx.util.docutils import SphinxDirective

FOLDER = "_pictures"


def link() -> Figure:
    """Seconds of a message against its bytes, on a link and through TCP's windows."""
    from sim.platform.cluster import Link, Tcp
    from sim.platform.slow_start import transfer_s

    plain, tcp, drawing = Link(), Tcp(), _figure(3.4)
    axes, sizes = drawing.subplots(), np.logspace(2, 9, 200)
    alone_s = [2 * plain.overhead_s + plain.latency_s + plain.occupancy_s(size) for size in sizes]
    axes.loglog(sizes, alone_s, label="10 Gbit/s, 20 us")
    for latency_s in (5e-3, 50e-3):
        windows = tcp.initial_window_bytes, tcp.window_bytes, 2 * latency_s, plain.bandwidth_bytes_per_s
        far_s = [2 * plain.overhead_s + latency_s + transfer_s(size, *windows)[0] for size in sizes]
        axes.loglog(sizes, far_s, label=f"10 Gbit/s, {latency_s * 1e3:.0f} ms, TCP's windows")
    axes.set(xlabel="bytes", ylabel="seconds")
    axes.legend(frameon=False)
    return drawing


def ports() -> Figure:
    """Four workers whose gradients queue at the master's port."""
    return _gantt("fmb", steps=2)


def ring() -> Figure:
    """The rounds of a ring."""
    return _gantt("allreduce", ["algorithm=ring"], steps=2)


def collectives() -> Figure:
    """Seconds of an allreduce against the number of ranks, by algorithm."""
    from trainsim import Scenario, protocols, read_stragglers, read_workload, simulate

    drawing = _figure(3.6)
    axes, workload = drawing.subplots(), read_workload("mlp")
    for algorithm in ("ring", "halving-doubling", "recursive-doubling", "tree"):
        workers, seconds = (2, 4, 8, 16, 32), []
        for number in workers:
            job = {"workers": number, "steps": 1, "warmup": 1, "stragglers": read_stragglers("none")}
            found = [
                float(
                    simulate(
                        Scenario(protocols.make("allreduce", [f"algorithm={algorithm}"]), workload, **job | more),
                        replications=1,
                    ).step_s.mean()
                )
                for more in ({}, {"workers": 1})
            ]
            seconds.append(found[0] - found[1])
        axes.plot(workers, np.array(seconds) * 1e3, "o-", label=algorithm)
    axes.set(
        xlabel="workers", ylabel="ms a step beyond one worker's", xscale="log", xticks=workers, xticklabels=workers
    )
    axes.minorticks_off()
    axes.legend(frameon=False)
    return drawing


def costs() -> Figure:
    """A line of costs, the noise around it, and how cold caches lengthen work."""
    from sim.laws import LogNormal
    from sim.model.costs import Line, cold_share

    drawing = _figure(3.2)
    left, right = drawing.subplots(1, 2)
    line, samples = Line(base_s=4e-3, slope_s=60e-6), np.repeat(np.arange(64, 577, 64), 12)
    noise = LogNormal(cv=0.08).draw(np.random.default_rng(0), len(samples))
    left.plot(samples, line(samples) * noise * 1e3, ".", color="C0", alpha=0.4, label="steps: the line times noise")
    left.plot([0, 600], [line(0) * 1e3, line(600) * 1e3], "k-", label="base_s + slope_s x samples")
    left.set(xlabel="samples", ylabel="compute, ms", ylim=(0, None))
    left.legend(frameon=False)
    idle_s = np.logspace(-3.5, -1.5, 100)
    right.semilogx(idle_s * 1e3, cold_share(idle_s))
    right.set(xlabel="ms idle before", ylabel="share of cold_s that is added")
    return drawing


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


def polling() -> Figure:
    """When a waiting rank polls, and how late it sees what has come."""
    from sim.platform.polling import late_s, pause_s

    drawing = _figure(3.0)
    left, right = drawing.subplots(1, 2)
    now_s, polls = 0.0, []
    while now_s < 10e-3:
        polls.append(now_s)
        now_s += pause_s(now_s)
    left.plot(np.array(polls) * 1e3, np.zeros(len(polls)), "|", ms=30)
    left.set(xlabel="ms since the wait began: a stroke is a poll", yticks=[])
    waited_s = np.linspace(0, 12e-3, 100)
    right.plot(waited_s * 1e3, [late_s(waited, 0.0) * 1e3 for waited in waited_s])
    right.set(xlabel="ms waited", ylabel="ms until a message is seen, mean", ylim=(0, None))
    return drawing


def intervals() -> Figure:
    """Simulated runs, their prediction interval, and further runs."""
    from sim.base import interval

    rng, drawing = np.random.default_rng(1), _figure(3.0)
    axes = drawing.subplots()
    runs = 100 * rng.lognormal(0, 0.04, 8)
    low, high = interval.of_runs(runs)
    further = 100 * rng.lognormal(0, 0.04, 40)
    axes.axvspan(low, high, color="C0", alpha=0.15, lw=0, label="90 % interval for one more run")
    axes.axvline(interval.middle(runs), color="C0", label="prediction: the geometric mean")
    axes.plot(runs, np.full(len(runs), 1), "o", color="C0", label="simulated runs")
    axes.plot(further, np.zeros(len(further)), "kx", label="further runs")
    axes.set(xlabel="samples/s", yticks=[], ylim=(-1, 3.2))
    axes.legend(frameon=False, ncols=2, loc="upper left", fontsize=8)
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
    published = next(table for table in results.kept("evidence").tables if table.title.startswith("TensorFlow's page"))
    groups["evidence: TensorFlow's page, GPUs"] = [
        (float(real_s), float(said_s), *map(float, ends.split(" to ")))
        for _, _, real_s, said_s, _, ends, _ in published.rows
    ]
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
    axes, tables = drawing.subplots(), {table.title: table for table in results.kept("evidence").tables}
    for said, title in results.EVIDENCE:
        shares = sorted(
            float(row[tables[title].columns.index(results.COVERED)].rstrip("%")) for row in tables[title].rows
        )
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


def worlds() -> Figure:
    """One text by the event world and by the engine: the same step times."""
    from trainsim import Scenario, protocols, read_workload, simulate

    drawing = _figure(3.0)
    left, right = drawing.subplots(1, 2)
    job = Scenario(protocols.make("amb"), read_workload("mnist"), workers=8, steps=60)
    steps = {world: simulate(job, world=world, replications=1).step_s[0] for world in ("event", "engine")}
    left.plot(steps["event"] * 1e3, color="C0", lw=3, alpha=0.5, label="event")
    left.plot(steps["engine"] * 1e3, color="black", lw=0.8, label="engine")
    left.set(xlabel="step", ylabel="ms")
    left.legend(frameon=False)
    right.plot((steps["event"] - steps["engine"]) * 1e9, ".", color="black")
    right.axhspan(-1, 1, color="C0", alpha=0.15, lw=0)
    right.set(xlabel="step", ylabel="difference, ns", ylim=(-2, 2))
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
    one.__name__: one
    for one in (
        *(measured, coverage, beyond),
        *(link, ports, ring, collectives, costs, stragglers, polling, intervals, growth, worlds),
    )
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
