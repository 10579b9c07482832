"""How good is it beyond what was measured? Every published table at hand, with its larger sizes held out in turn.

Each table is fitted by `calibration.fit --from scaling` on its smaller sizes, and its larger ones are what `sim.run` answers with that
profile (experiments.extrapolation.sizes): predictions and intervals are those that a user of both commands gets. By the trivial rule a
step takes as long as on the largest size that was fitted. Tables of what no command fits (sums alone, TensorFlow's servers) are not here.

Sources for choices had a part in the choice of mechanisms and constants; those that figures/sources.toml holds out or keeps back are
predicted with `--held-out` alone, once all choices are made. A row is in several splits.

Besides, answers where nothing but one GPU's step is known: links by name, one host and several.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments import figures
from experiments.extrapolation import cores, scores, sizes
from experiments.extrapolation.held import Held, Refused, by_source, mean_error
from experiments.figures import CHOICE, HELD_OUT, KEPT_BACK, SECOND
from experiments.kit import pages
from sim.base.progress import Progress, advance
from sim.sweeps import pools

if TYPE_CHECKING:
    from rich.table import Table

    from experiments.extrapolation.one_host import Asked

# On 2 quiet cores, for the time left.
TAKES_S = {CHOICE: 80, HELD_OUT: 90, KEPT_BACK: 6, SECOND: 10, "networks": 15, "by name": 60}
LARGEST = {"bert": 2, "imagenet": 2, "cifar10": 4, "deepspeech2": 4}  # hosts of T4 GPUs that are fitted, in a table
T4_TITLE = "T4, fitted on 1 and 2 hosts (CIFAR-10, DeepSpeech2: 1 to 4)"
BAD, USUAL = "published because scaling was bad", "documentation and benchmarks"
OTHERS = "held out or kept back"  # all splits but CHOICE
KEPT = 100  # rows of a source
WIDE = 165  # characters of a line


def run(out: Path, seed: int = 0, held_out: bool | None = None) -> None:
    """Print the marks of each split by source, of T4 hosts and of pairs; networks by name; and answers from one GPU's step.

    Args:
        held_out: whether the sources are predicted, too, that are kept out of every choice.
    """
    left_out = () if held_out else (HELD_OUT, KEPT_BACK, SECOND)
    with Progress("fitting and predicting", sum(s for what, s in TAKES_S.items() if what not in left_out)):
        rows, shown = of_splits(held_out)
        named = sizes.predicted(sizes.with_networks(CHOICE), pools.of_size(None), TAKES_S["networks"])[0]
        from experiments.extrapolation import by_name

        shown += [_t4(rows), _paired(rows), _named_networks(rows, named)]
        shown += _asked("Several hosts of GPUs, from the step of one, links by name", by_name.answers())
        shown += [*_one_host(), *_decoders()]
        advance(TAKES_S["by name"], "from one GPU's step")
    pages.show(*shown, width=WIDE)
    pages.keep([cell for of in by_source(rows).values() for cell in _cells(of)])


def of_splits(held_out: bool | None) -> tuple[list[Held], list[str | Table]]:
    """The rows of all sources for choices, and what is shown of these and, if it is asked for, of those that are held out."""
    chosen: list[Held] = []
    others: list[Held] = []
    shown: list[str | Table] = []
    for split in (CHOICE, HELD_OUT, KEPT_BACK, SECOND)[: 4 if held_out else 1]:
        rows, refused = sizes.predicted(sizes.series_of(split), pools.of_size(None), TAKES_S[split])
        if split == CHOICE:
            chosen = rows
        else:
            others += rows
        shown.append(scores.table(f"Further sources, {split}", rows, lambda row: row.source))
        shown += [*_marks(split, rows), *_refused(split, refused)]
    return chosen, [*shown, *(_marks(OTHERS, others) if others else ())]


def _marks(split: str, rows: Sequence[Held]) -> Iterator[str]:
    """The marks of all sources of a split, and of those of one reason to be published."""
    yield from scores.marks(split, rows)
    bad = {source.name for source in figures.sources() if source.published_because == "scaling"}
    for said, is_bad in ((BAD, True), (USUAL, False)):
        if some := [row for row in rows if (row.source in bad) == is_bad]:
            yield from scores.marks(f"{split}, {said}", some)


def _refused(split: str, refused: Sequence[Refused]) -> Iterator[str]:
    """Rows without a prediction, by what the commands say."""
    counted: Counter[str] = Counter()
    for one in refused:
        counted[one.why] += one.rows
    for why, rows in counted.most_common():
        yield f"{split}: {rows} rows are not predicted: {why}"


def _cells(rows: Sequence[Held]) -> Iterator[dict]:
    """Some rows of a source as they are kept."""
    for row in rows[:: 1 + len(rows) // KEPT]:
        seconds = {"predicted_step_s": row.predicted_s, "predicted_low_s": row.low_s, "predicted_high_s": row.high_s}
        yield {"cell": f"{row.source}, {row.row}; {row.split}", "measured_step_s": row.measured_s, **seconds}


def _t4(rows: Sequence[Held]) -> Table:
    """The T4 rows beyond few hosts, by number of hosts."""
    made = pages.table(
        T4_TITLE, "", "hosts", "rows", "mean abs. error", "bias", "covered by 90 %", "ends apart, a factor"
    )
    for name, up_to in LARGEST.items():
        mine = [row for row in rows if (row.source, row.split) == ("t4", f"{name}: 1 to {up_to} hosts, then more")]
        for hosts in sorted({row.hosts for row in mine}):
            some = [row for row in mine if row.hosts == hosts]
            bias = np.mean([row.predicted_s / row.measured_s - 1 for row in some])
            apart = f"{np.median([row.high_s / row.low_s for row in some]):.2f}"
            cells = f"{mean_error(some):.1%}", f"{bias:+.1%}", f"{scores.covered(some):.0%}", apart
            made.add_row(name, str(hosts), str(len(some)), *cells)
    return made


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


def _paired(rows: Sequence[Held]) -> Table:
    """Of every two rows of a table that were predicted by one fit, the ratio: what one job is unknown by, less what both share.

    A row outside of its own interval is missed by many pairs.
    """
    heads = "pairs", "covered by 90 %", "median width", "missed", "with a row outside of its own"
    made, shares = pages.table("Ratios of two rows of a split, as of --what-if", "source", *heads), []
    for source, of in by_source(rows).items():
        found = scores.ratios(of)
        if not found.off.size:
            continue
        missed = found.off > found.half
        shares.append(1 - float(np.mean(missed)))
        width = f"x or / {np.exp(np.median(found.half)):.2f}"
        counts = f"{missed.sum()}", f"{(missed & (found.outside > 0)).sum()}"
        made.add_row(source, f"{missed.size}", f"{shares[-1]:.0%}", width, *counts)
    made.add_row("average of sources", "", f"{np.mean(shares):.0%}" if shares else "", "", "", "")
    return made


def _named_networks(chosen: Sequence[Held], named: Sequence[Held]) -> Table:
    """Rows of several hosts where the network has a name: without it, and with it as --link says it."""
    heads = "rows", "mean abs. error", "with it", "covered", "with it", "score", "with it"
    made = pages.table("Networks that are named, as by --link", "", *heads)
    for source, of in by_source([row for row in named if row.hosts > 1]).items():
        places = {(row.split, row.row) for row in of}
        unnamed = [row for row in chosen if row.source == source and (row.split, row.row) in places]
        cells = [
            shown(rows)
            for shown in (
                lambda rows: f"{mean_error(rows):.1%}",
                lambda rows: f"{scores.covered(rows):.0%}",
                lambda rows: f"{scores.ours(rows):.2f}",
            )
            for rows in (unnamed, of)
        ]
        made.add_row(source, str(len(of)), *cells)
    return made


def _one_host() -> Iterator[str | Table]:
    """The answers of the product where the step of one GPU is all that is known, and what its constants are learned from."""
    from experiments.extrapolation import links, one_host

    found = one_host.answers()
    yield from _asked("One host of several GPUs, from the step of one, its links by name", found)
    hosts = one_host.learned(found)
    yield f"a step of GPUs that share a host: e^({hosts.mean:.2f} +- {hosts.deviation:.2f}) times that of one alone"
    within, direct = one_host.links(), one_host.direct()
    for where, of in {"within a host": within, "on NVLink": direct, "between hosts": links.factors()}.items():
        known, listed = links.learned(of), ", ".join(f"{times:.1f} ({name})" for name, times in of.items())
        yield f"a byte {where} takes e^({known.mean:.2f} +- {known.spread:.2f}) times as long as its link's name says: {listed}"
    listed = ", ".join(f"{times:.1f} ({name})" for name, times in cores.times().items())
    yield f"a rank of a CPU computes so many times as long as a nominal core: {listed}; spread {cores.spread():.2f}"


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
