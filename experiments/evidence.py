"""How good is it beyond what was measured? Every published table at hand, with rows held out in turn.

The simulator's mechanisms (computing, links, algorithms, what distribution costs) are fitted on the rows that are kept; the others are
predicted, with 90 % intervals. The model's ignorance is a law (sim.answers.ignorance), learned from the errors of all tables but the
one that it is used on. By the trivial rule a step takes as long as on the largest number of hosts that was fitted.

The law's numbers for a table come from the others; its form does not. Some twenty forms were tried, and one was chosen by the coverage
and the scores that this experiment prints. The choices were: the grouping of sources (TensorFlow's one host and several are one page,
Horovod's two tables another); no part for messages; a random walk over doublings; the score of which parameters have the lowest mean; how
well a table's smaller sizes tell its larger ones, where there are three, in place of how much steps changed.
New tables may be covered less often. A row is in several splits.

That a byte may take up to twice as long on two hosts as on more, and longer with each GPU of a host (calibration.scaling.steps), was
found on the T4 rows of BERT, ImageNet and CIFAR-10, and is no prediction for them. DeepSpeech2's rows chose no form,
but priors of links were changed later with their error in view. That a byte takes as long on two hosts where no row tells it was chosen
on 18 further sources, and that measured sizes take what they took on 24; none that is held out was in any choice.

Further sources (experiments.extrapolation.sizes) are part of the law, each judged by that of all others. The law of all sources is the
product's (sim.answers.ignorance.LAW); what it would hold of these rows is no test, and is not printed. Those that figures/sources.toml
holds out are no part of it, and predicted by it with `--held-out` alone, once all choices are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments.extrapolation import cores, law, scores, sizes, spread, t4
from experiments.extrapolation.held import Held, Unmeasured, mean_error
from experiments.figures import CHOICE, HELD_OUT
from experiments.kit import pages
from sim.base.home import installed
from sim.base.progress import Progress, advance

if TYPE_CHECKING:
    from rich.table import Table

    from experiments.extrapolation.links import Links
    from experiments.extrapolation.one_host import Asked

SOURCES = {  # module of experiments.extrapolation: seconds that it takes on 2 quiet cores, for the time left
    "t4": 30,
    "sums": 12,
    "tensorflow_page": 1,
    "horovod_page": 1,
    "servers": 30,
    "parallax_figure": 8,
}
LEARNING, ONE_HOST, BY_NAME, FURTHER, NETWORKS = 30, 25, 25, 200, 40  # seconds
FAR = 0.1  # errors of which a row is printed, of tables that are not large
LARGE = 200  # rows
PAGE = "TensorFlow's page, each model from a fit on the other: every row of several GPUs"
OF_MODELS = ("then resnet50", "then inception_v3")
KEPT = 100  # rows of a source
WIDE = 165  # characters of a line
DRAWS = 10_000  # of sources, with replacement
DIGITS = 3  # of a law's standard deviations


def run(out: Path, seed: int = 0, held_out: bool | None = None) -> None:
    """Print the tables of sources, of what was held out, of links, of the law, and the worst rows.

    Args:
        held_out: whether the sources are predicted, too, that are kept out of every choice.
    """
    with Progress(
        "fitting and predicting",
        sum(SOURCES.values()) + LEARNING + ONE_HOST + BY_NAME + NETWORKS + FURTHER * (1 + bool(held_out)),
    ):
        rows, chosen = of_tables(), list(sizes.of_split(CHOICE))
        advance(FURTHER, f"further sources, {CHOICE}")
        of_others = law.left_out([*rows, *chosen])
        learned = law.learned([*rows, *chosen])
        advance(LEARNING, "the law")
        from experiments.extrapolation import by_name, horovod_page, links, one_host, parallax_figure

        in_one_host, on_several = one_host.answers(), by_name.answers()
        advance(ONE_HOST + BY_NAME, "one GPU's step, and links by name")

        clusters = links.factors()
        known = links.learned(clusters)
        unmeasured = [
            ("Horovod's page, nothing fitted but one GPU", list(horovod_page.unmeasured())),
            ("Parallax's figure, nothing fitted on two machines", list(parallax_figure.unmeasured())),
        ]
        every = law.by_source([*rows, *chosen])
        others = [
            *_further(CHOICE, chosen, of_others),
            _named_networks(chosen, of_others),
            f"all {len(every)} sources, each by the law of the others: 90 % intervals hold of rows {_of_sources(every, of_others)}",
            *further(learned, held_out),
        ]
    named = [
        *(_unmeasured(title, of, known) for title, of in unmeasured),
        *_asked("Several hosts of GPUs, from the step of one, links by name", on_several),
    ]
    answers = _answer(rows, of_others, learned)
    printed = [*answers, _links_of_t4(), _links(clusters), *named, *_one_host(in_one_host), *_decoders(), *others]
    pages.show(*printed, width=WIDE)
    pages.keep([cell for of in law.by_source(rows).values() for cell in _cells(of, of_others)])


def _cells(rows: Sequence[Held], of_others: dict[str, law.Law]) -> Iterator[dict]:
    """Some rows of a source as they are kept."""
    for row in rows[:: 1 + len(rows) // KEPT]:
        low_s, high_s = law.interval_s(row, of_others[row.source])
        seconds = {"predicted_step_s": row.predicted_s, "predicted_low_s": low_s, "predicted_high_s": high_s}
        yield {"cell": f"{row.source}, {row.row}; {row.split}", "measured_step_s": row.measured_s, **seconds}


def of_tables() -> list[Held]:
    """The rows that were held out of the tables that the law was learned on."""
    found: list[Held] = []
    for name, seconds in SOURCES.items():
        found += import_module(installed(f"experiments.extrapolation.{name}")).held_out()
        if name not in ("sums", "servers", "parallax_figure"):  # those count their own simulations
            advance(seconds, name)
    return found


def _answer(rows: Sequence[Held], of_others: dict[str, law.Law], learned: law.Law) -> Iterator[str | Table]:
    sources = law.by_source(rows)
    yield _table("By source", sources, of_others)
    by_split: dict[str, list[Held]] = {}
    for row in rows:
        by_split.setdefault(f"{row.source}: {row.split}", []).append(row)
    yield _table("By what was held out", by_split, of_others)
    yield _by_hosts(rows)
    yield spread.table()
    held = [law.covers(row, of_others[row.source]) for row in rows]
    yield f"90 % intervals hold {np.mean(held):.1%} of {len(held)} rows, {_of_sources(sources, of_others)}"
    yield _paired(rows, of_others)
    yield "the law's form was chosen on these tables, its numbers for each on the others: on new tables fewer rows may be covered"
    yield f"the law of all sources, which is the product's: {law.Law(*(round(one, DIGITS) for one in learned))}"
    for changed in (0.02, None, 0.5):
        factors = ", ".join(f"{learned.factor(beyond, changed):.2f} ({beyond})" for beyond in (0, 1, 2, 3, 5))
        known = (
            "nobody knows how well smaller sizes tell larger ones"
            if changed is None
            else f"smaller sizes tell larger ones to {changed:.0%}"
        )
        yield f"  where {known}: within a factor, by doublings beyond: {factors}"
    yield f"nothing changes: off by {law.unchanged(rows):.2f} (standard deviation of the logarithm) for each doubling"
    listed = ", ".join(f"{times:.1f} ({name})" for name, times in cores.times().items())
    yield f"a rank of a CPU computes so many times as long as a nominal core: {listed}; spread {cores.spread():.2f}"
    yield _page(rows, of_others)
    yield _far(rows, of_others)


def further(learned: law.Law, held_out: bool | None) -> Iterator[str | Table]:
    """A table and lines of the sources that are held out of every choice, if it is asked for."""
    if not held_out:
        return
    rows = list(sizes.of_split(HELD_OUT))
    advance(FURTHER, f"further sources, {HELD_OUT}")
    yield from _further(HELD_OUT, rows, dict.fromkeys(law.by_source(rows), learned))


def _further(split: str, rows: Sequence[Held], laws: dict[str, law.Law]) -> Iterator[str | Table]:
    sources = law.by_source(rows)
    yield _table(f"Further sources, {split}", sources, laws)
    yield f"{len(sources)} further sources, {split}: 90 % intervals hold of rows {_of_sources(sources, laws)}"
    of_errors = [mean_error(of) for of in sources.values()], [mean_error(of, "trivial_s") for of in sources.values()]
    ours, unchanged = map(np.array, of_errors)
    said = f"mean error {ours.mean():.1%} (nothing changes: {unchanged.mean():.1%}), median {np.median(ours):.1%}"
    yield f"{said} ({np.median(unchanged):.1%}); worse than nothing changes on {(ours > unchanged).sum()}"
    yield from scores.shown(split, sources, laws)


def _named_networks(chosen: Sequence[Held], of_others: dict[str, law.Law]) -> Table:
    """Rows of several hosts where the network has a name: without it, and with it as what is known of a byte before any row."""
    heads = ("network of a host", "rows", "mean abs. error", "with it", "covered", "with it", "score", "with it")
    made = pages.table("Networks that are named, as by --link", "", *heads)
    for source, named in sizes.with_networks(CHOICE):
        places = {(row.split, row.row) for row in named}
        unnamed = [row for row in chosen if row.source == source.name and (row.split, row.row) in places]
        known, both = of_others[source.name], (unnamed, named)
        errors = [f"{mean_error(rows):.1%}" for rows in both]
        covered = [f"{np.mean([law.covers(row, known) for row in rows]):.0%}" for rows in both]
        of_scores = [f"{scores.of(rows, known).ours:.2f}" for rows in both]
        made.add_row(source.name, source.network, str(len(named)), *errors, *covered, *of_scores)
    advance(NETWORKS, "named networks")
    return made


def _of_sources(sources: dict[str, list[Held]], laws: dict[str, law.Law]) -> str:
    """The share of rows that intervals hold on the average of sources, and what other sources might have shown (the bootstrap)."""
    each = np.array([np.mean([law.covers(row, laws[row.source]) for row in of]) for of in sources.values()])
    drawn = np.random.default_rng(0).choice(each, (DRAWS, len(each))).mean(axis=1)
    low, high = np.quantile(drawn, (0.025, 0.975))
    return f"{each.mean():.1%} on the average of sources (95 % confidence: {low:.1%} to {high:.1%})"


def _table(title: str, groups: dict[str, list[Held]], of_others: dict[str, law.Law]) -> Table:
    def width(rows: Sequence[Held]) -> float:
        spans = [law.interval_s(row, of_others[row.source]) for row in rows]
        return float(np.exp(np.median([np.log(high / low) / 2 for low, high in spans])))

    columns: list[tuple[str, Callable[[tuple[str, list[Held]]], str]]] = [
        ("", lambda item: item[0]),
        ("rows", lambda item: str(len(item[1]))),
        ("mean abs. error", lambda item: f"{mean_error(item[1]):.1%}"),
        ("nothing changes", lambda item: f"{mean_error(item[1], 'trivial_s'):.1%}"),
        ("covered by 90 %", lambda item: f"{np.mean([law.covers(row, of_others[row.source]) for row in item[1]]):.0%}"),
        ("median width", lambda item: f"x or / {width(item[1]):.2f}"),
    ]
    return pages.listed(title, columns, groups.items())


def _paired(rows: Sequence[Held], of_others: dict[str, law.Law]) -> Table:
    """Of every two rows of a table that were held out together, the ratio: what one job is unknown by, less what both share.

    Cancelled is the median share of both variances that they have in common. A row outside of its own interval is missed by many pairs.
    """
    heads = ("pairs", "covered by 90 %", "median width", "cancelled", "missed", "with a row outside of its own")
    made = pages.table("Ratios of two rows of a split, as of --what-if", "source", *heads)
    shares = []
    for source, of in law.by_source(rows).items():
        found = law.ratios(of, of_others[source])
        missed = found.off > found.half
        shares.append(1 - np.mean(missed))
        made.add_row(
            source,
            f"{len(missed)}",
            f"{shares[-1]:.0%}",
            f"x or / {np.exp(np.median(found.half)):.2f}",
            f"{np.median(found.cancelled):.0%}",
            f"{missed.sum()}",
            f"{(missed & found.outside).sum()}",
        )
    made.add_row("average of sources", "", f"{np.mean(shares):.0%}", "", "", "", "")
    return made


def _by_hosts(rows: Sequence[Held]) -> Table:
    """The T4 rows beyond few hosts, by number of hosts."""
    made = pages.table(
        "T4, fitted on 1 and 2 hosts (CIFAR-10, DeepSpeech2: 1 to 4)", "", "hosts", "rows", "mean abs. error", "bias"
    )
    for name, up_to in (("bert", 2), ("imagenet", 2), ("cifar10", 4), ("deepspeech2", 4)):
        mine = [r for r in rows if r.source == f"T4, {name}" and r.split == f"1 to {up_to} hosts, then more"]
        for hosts in dict.fromkeys(row.row.split(" ")[0] for row in mine):
            some = [row for row in mine if row.row.split(" ")[0] == hosts]
            bias = np.mean([row.predicted_s / row.measured_s - 1 for row in some])
            made.add_row(name, hosts, str(len(some)), f"{mean_error(some):.1%}", f"{bias:+.1%}")
    return made


def _far(rows: Sequence[Held], of_others: dict[str, law.Law]) -> Table:
    """Rows outside of their interval, or off by much, of the sources that can be listed."""
    made = pages.table("Rows", "source", "row", "held out", "measured, s", "predicted, s", "error", "90 %", "")
    small = [row for of in law.by_source(rows).values() if len(of) < LARGE for row in of]
    for row in small:
        off = abs(row.predicted_s / row.measured_s - 1)
        if off > FAR or not law.covers(row, of_others[row.source]):
            made.add_row(row.source, row.row, row.split, *_predicted(row, of_others))
    return made


def _page(rows: Sequence[Held], of_others: dict[str, law.Law]) -> Table:
    """Every row of TensorFlow's page of more than one GPU, good or bad: each of two models from a fit on the other one."""
    made = pages.table(PAGE, "row", "held out", "measured, s", "predicted, s", "error", "90 %", "")
    for row in rows:
        if row.source == "TensorFlow page" and row.split.endswith(OF_MODELS):
            made.add_row(row.row, row.split, *_predicted(row, of_others))
    return made


def _predicted(row: Held, of_others: dict[str, law.Law]) -> tuple[str, ...]:
    """Cells: measured, predicted, error, interval, whether it is outside."""
    (low, high), error = law.interval_s(row, of_others[row.source]), row.predicted_s / row.measured_s - 1
    outside = "" if law.covers(row, of_others[row.source]) else "outside"
    return f"{row.measured_s:.4g}", f"{row.predicted_s:.4g}", f"{error:+.1%}", f"{low:.3g} to {high:.3g}", outside


def _links(
    clusters: dict[str, float], title: str = "A byte takes so many times as long as the network's name says"
) -> Table:
    columns = ("cluster", lambda item: item[0]), ("times", lambda item: f"{item[1]:.2f}")
    return pages.listed(title, columns, clusters.items())


def _decoders() -> Iterator[str | Table]:
    """Published rates of decoders, GPUs by name: each source by what all others say (experiments.shares)."""
    from experiments import shares

    heads = ("source", "rows", "measured over predicted", "covered by 90 %", "ends")
    made = pages.table("Training decoders, GPUs by name: each source from all others", *heads)
    sources: dict[str, list[tuple[float, bool, float]]] = {}
    for source, off, half in shares.left_out():
        sources.setdefault(source, []).append((off, abs(off) < half, 2 * half))
    every = []
    for source, rows in sources.items():
        (off, _, ends), held = np.median(rows, axis=0), float(np.mean([row[1] for row in rows]))
        made.add_row(source, str(len(rows)), f"{np.exp(off):.2f}", f"{held:.0%}", f"x {np.exp(ends):.2f}")
        every.append((off, held))
    yield made
    (_, all_held, ends), (off, held) = np.array([row for rows in sources.values() for row in rows]).T, np.array(every).T
    said = f"held {all_held.mean():.0%} of {len(ends)} rows, {held.mean():.0%} on the average of {len(held)} sources"
    yield f"{said}; median of sources off by a factor {np.exp(np.median(abs(off))):.2f}; ends {np.exp(np.median(ends)):.2f} apart"


def _links_of_t4() -> Table:
    """What the fits say of links between hosts, and the error of rows that were all fitted: as near as any fit comes."""
    heads = ("", "fitted on", "links differ by", "a byte on two hosts", "each GPU more", "GB/s", "rows' own error")
    made = pages.table("T4, links between hosts: the median, how they differ, and two hosts", *heads)
    for name in t4.MODELS:
        rows = t4.table(name)
        for up_to in dict.fromkeys((*t4.UP_TO[name], int(rows.hosts.max()))):
            found = t4.fitted(name, rows.where(rows.hosts <= up_to))
            most = rows.where(rows.hosts == up_to)
            own = np.abs(found.step_s(most) / most.step_s - 1).mean()
            links = f"{found.uneven:.1%}", f"x {found.both_ways:.2f}", f"{found.contention:+.1%}"
            rate = f"{1e-9 / found.between_s:.2f}"
            made.add_row(name, f"1 to {up_to} hosts", *links, rate, f"{own:.1%} on {up_to} hosts")
    return made


def _one_host(found: Sequence[Asked]) -> Iterator[str | Table]:
    """The answers of the product where the step of one GPU is all that is known."""
    from experiments.extrapolation import links, one_host

    yield from _asked("One host of several GPUs, from the step of one, its links by name", found)
    hosts, known = one_host.learned(found), links.learned(within := one_host.links())
    yield f"a step of GPUs that share a host: e^({hosts.mean:.2f} +- {hosts.deviation:.2f}) times that of one alone"
    listed = ", ".join(f"{times:.1f} ({name})" for name, times in within.items())
    yield f"a byte within a host takes e^({known.mean:.2f} +- {known.spread:.2f}) times as long as its link's name says: {listed}"
    known = links.learned(direct := one_host.direct())
    yield _links(
        direct, f"A byte on NVLink takes e^({known.mean:.2f} +- {known.spread:.2f}) times as long as its name says"
    )


def _asked(title: str, found: Sequence[Asked]) -> Iterator[str | Table]:
    """The product's answers by source, and a line of their medians."""
    from experiments.extrapolation import one_host

    heads = ("source", "rows", "measured over predicted", "mean abs. error", "covered by 90 %", "median interval")
    made, each = pages.table(title, *heads), []
    for name, of in one_host.sources(found).items():
        off, held = np.array([one.off for one in of]), float(np.mean([one.held for one in of]))
        slower, faster = (
            np.median([one.high_s / one.said_s for one in of]),
            np.median([one.said_s / one.low_s for one in of]),
        )
        error = f"{np.abs(np.exp(-off) - 1).mean():.1%}"
        made.add_row(
            name, str(len(of)), f"{np.exp(np.median(off)):.2f}", error, f"{held:.0%}", f"x {slower:.2f}, / {faster:.2f}"
        )
        each.append((np.exp(np.median(off)), held, slower * faster))
    yield made
    off, held, ends = np.array(each).T
    said = f"{title.partition(',')[0]}, medians of sources: measured over predicted {np.median(off):.2f}, ratio of the interval's ends"
    yield f"{said} {np.median(ends):.1f}; held {held.mean():.0%} of rows on the average of sources"


def _unmeasured(what: str, rows: Sequence[Unmeasured], known: Links) -> Table:
    """Rows of a page as if nobody had measured any like it: the link by its name, the algorithm unknown."""
    spans = [law.of_candidates(row, known) for row in rows]
    inside = [low <= row.measured_s <= high for row, (low, high) in zip(rows, spans, strict=True)]
    told = (
        f"a byte takes e^({known.mean:.2f} +- {known.spread:.2f}) times the wire's; holds {sum(inside)} of {len(rows)}"
    )
    made = pages.table(f"{what}, algorithm unknown; {told}", "row", "measured, s", "candidates, s", "90 %", "")
    for row, (low, high), held in zip(rows, spans, inside, strict=True):
        listed = ", ".join(f"{one:.3g}" for one in row.said_s)
        made.add_row(row.row, f"{row.measured_s:.3g}", listed, f"{low:.3g} to {high:.3g}", "" if held else "outside")
    return made
