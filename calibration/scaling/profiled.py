"""A profile from a table of step seconds on several numbers of hosts: `calibration.fit --from scaling`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from math import exp, log
from pathlib import Path

import numpy as np

from calibration.scaling import noticed, table
from calibration.scaling.changes import DIGITS, MOST_ROWS, MOST_SPREAD, at_largest, growth_of, sizes_of
from calibration.scaling.fitting import BETWEEN, Before, fit, named
from calibration.scaling.overlap import Overlap
from calibration.scaling.simulated import Simulated, link_of
from calibration.scaling.steps import Scaling
from sim.answers.summary import seconds
from sim.base.errors import WrongSetting
from sim.base.ranges import MOST_RANKS
from sim.model import workload as workloads
from sim.model.costs import Costs, Line
from sim.model.sizes import ITEM_BYTES
from sim.model.workload import Workload
from sim.platform.cluster import ASSUMED, INNER_S, SERVER, TREE_S, Cluster, Growth, Host, Link, Model, Provenance
from sim.platform.other_sizes import BYTES_OF_GBIT, told

PROTOCOLS = ("ddp", "allreduce")  # the first hides messages behind back-propagation
SERVED = ("ps-sync", "ps-async", "ps-layers")  # with servers; where nobody says which, one of the first two
FEWEST = 2  # rows
LEAST_OFF = 1e-3  # by which a protocol misses rows; less counts as much
ODDS = {"allreduce": log(0.1)}  # assumed, before any row: frameworks hide messages behind back-propagation
SIZES = (1, 2, 3, *(2**power for power in range(2, 21)))  # hosts for which a profile says how well messages are known
MOST_SIMULATED = 64  # ranks for which that is told where steps are simulated
SLOWER = 0.02  # of a logarithm: by so much rows may be further off with the name of a link than without
MOST_OFF = 1.4  # a factor by which a fit may miss its own rows (root mean square)
LEAST_SHOWN = 5e-4  # of contention and computing, in a note
AMONG_OTHERS = {"several": "on several GPUs", "apart": "on several hosts", "doubling": "with each doubling of GPUs"}


def profile(
    path: str,
    name: str,
    workload: str | Workload,
    protocol: str | None = None,
    link: Link | None = None,
) -> Cluster:
    """The profile of the hosts in a table.

    Args:
        protocol: one of PROTOCOLS, or of SERVED; that which meets the table better if None.
        link: between hosts, by name; where rows are of several hosts, its bandwidth is what is known of a byte before them.

    Raises:
        WrongSetting: a table that cannot be, too few rows, another protocol, or a link that is slower than rows show.
    """
    if protocol is not None and protocol not in PROTOCOLS + SERVED:
        allowed = f"{', '.join(PROTOCOLS + SERVED)}, or nothing: the one that meets the table"
        raise WrongSetting("--protocol", protocol, allowed)
    rows, model = table.read(path), workloads.read(workload)
    _check(rows, path)
    if rows.servers is not None and protocol in PROTOCOLS:
        raise WrongSetting("--protocol", protocol, f"{', '.join(SERVED)}: {path} has a column servers")
    able_to = PROTOCOLS[: 1 if (rows.minibatches > 1).any() else None]  # the first alone accumulates
    tried = (protocol,) if protocol else SERVED[:2] if rows.servers is not None else able_to
    between = named(link) if link else BETWEEN
    likes = {one: like(one, model, noticed.alone(rows)) for one in tried}
    found = {one: fit(rows, of, between=between) for one, of in likes.items()}
    best = max(found, key=lambda one: ODDS.get(one, 0.0) - rows.size * log(max(found[one].misses(rows), LEAST_OFF)))
    if link:
        _check_link(link, found[best], fit(rows, likes[best]), rows)
    wrong = next(noticed.contradictions(rows, found[best]), "")
    _check_fit(found[best].misses(rows), rows, path, wrong)
    grown = growth_of(rows, refitting(model, best, rows, between))
    made = _made(found[best], rows, model, name, link)
    settings = settings_of(best)
    notes = [*_of_fits(found, best, rows), *_of_sizes(grown, rows), *noticed.notes(rows, found[best])]
    said = [f"--protocol {best}", *(f"--set {one}" for one in settings)]
    if best in SERVED:
        known = made.provenance or Provenance()
        said += [f"--servers {known.servers} --servers-on {known.servers_on}"]
        notes += ["no column servers: one is taken, on a host of its own"] * (rows.servers is None)
    notes.append(f"simulate it with {' '.join(said)}")
    notes += _of_links(found[best], rows, link)
    if grown:
        grown = grown.model_copy(update=at_largest(rows, found[best]))
    return made.known(
        growth=grown,
        notes=tuple(notes),
        traces=(Path(path).name,),
        protocol=best,
        settings=tuple(settings),
    )


def refitting(
    model: Workload, protocol: str, rows: table.Table, between: Before = BETWEEN
) -> Callable[[table.Table], Scaling]:
    """Fits some of the rows, as a profile was fitted to all of them."""
    alike = like(protocol, model, noticed.alone(rows))
    return lambda some: fit(some, alike, between=between)


def like(protocol: str, model: Workload, alone: tuple[tuple[int, float], ...] = ()) -> Scaling:
    """Steps of a protocol before any fit.

    Args:
        alone: see Scaling.
    """
    held_bytes = float((model.gradient_bytes or ITEM_BYTES) * model.parameters)
    if protocol in SERVED:
        return Simulated(held_bytes, alone=alone, model=model, protocol=protocol)
    overlap = Overlap.of(model) if protocol == "ddp" else None
    return Scaling(held_bytes, overlap=overlap, alone=alone)


def _check(rows: table.Table, path: str) -> None:
    """Refuse rows that are too few, or that tell no batch of one GPU.

    Raises:
        WrongSetting: so few rows that nothing is fitted to them.
    """
    if rows.size < FEWEST:
        allowed = f"at least {FEWEST}: of several batches, GPUs or hosts; of fewer, --from steps with --link, or nccl-tests for the link"
        raise WrongSetting(f"{path}: rows", rows.size, allowed)
    if not np.ptp(rows.minibatch) and not np.ptp(rows.gpus):
        raise WrongSetting(f"{path}: rows", "one batch on one number of GPUs", "several batches, or numbers of GPUs")


def _check_link(link: Link, found: Scaling, free: Scaling, rows: table.Table) -> None:
    """Refuse a network's name that is too slow for the rows.

    Args:
        found, free: fits with the name, and without it.

    Raises:
        WrongSetting: no byte passes as fast as rows show.
    """
    if found.misses(rows) > free.misses(rows) + SLOWER:
        reached = 1 / free.between_s / BYTES_OF_GBIT
        raise WrongSetting("--link", told(link), f"a network as fast as the rows show: they reach {reached:.3g} Gbit/s")


def _check_fit(misses: float, rows: table.Table, path: str, wrong: str = "") -> None:
    """Refuse steps that no constants explain, computed or simulated, and that fall with more hosts, GPUs or samples.

    Steps that grow otherwise than constants say are no mistake of a table's.

    Args:
        misses: root mean square of the logarithm of the nearest fit's seconds over measured ones.
        wrong: rows that contradict one another, in words.

    Raises:
        WrongSetting: it is more than a factor MOST_OFF, and steps of a smaller job are longer by as much.
    """
    times = exp(misses)
    some = rows.where(table.evenly(rows.size, MOST_ROWS))
    larger = np.logical_and.reduce([column[:, None] <= column for column in (some.hosts, some.gpus, some.batch)])
    if times > MOST_OFF and (larger & (some.step_s[:, None] > MOST_OFF * some.step_s)).any():
        given = f"steps that the nearest law misses by a factor {times:.2g}{wrong and '; ' + wrong}"
        allowed = "seconds of steps of one model; batch is that of one GPU; servers are in a column"
        raise WrongSetting(f"{path}: step_s", given, allowed)


def _of_fits(found: dict[str, Scaling], best: str, rows: table.Table) -> Iterator[str]:
    ends = [(float(rows.step_s[at]), int(rows.gpus[at])) for at in (np.argmin(rows.gpus), np.argmax(rows.gpus))]
    yield "read: " + " to ".join(f"{seconds(step_s)} on {gpus} GPU{'s' * (gpus > 1)}" for step_s, gpus in ends)
    most = np.abs(np.log(found[best].step_s(rows) / rows.step_s)).max()  # as simulated, within 1 %
    said = f"{found[best].misses(rows):.1%} (root mean square), at most {most:.1%}"
    yield f"simulated with the profile, {rows.size} of the rows are off by {said}"
    yield from _of_minibatches(rows)
    constants = len(found[best].fitted)
    if rows.size <= constants:
        yield f"{rows.size} rows for {constants} constants leave no residual: what rows do not tell is in the interval"
    for other in found:
        if other != best:
            ours, theirs = (found[one].misses(rows) for one in (best, other))
            hides = f"is taken, as frameworks hide messages, though {other} meets the table as well or better"
            better = f"meets the table better than {other}" if ours <= theirs else hides
            yield f"{best} {better} ({ours:.1%} and {theirs:.1%}, root mean square)"


def _of_sizes(grown: Growth | None, rows: table.Table) -> Iterator[str]:
    if grown is None:
        return
    how = "root mean square; the first counts less, none as more than twice"
    yield f"steps grew by {grown.per_doubling:.1%} with a doubling ({how}): larger sizes are as unsure"
    if len(np.unique(sizes_of(rows))) > 2:
        weight = f"weighs {grown.simulated_weight:.0%} beyond them, and that nothing changes {1 - grown.simulated_weight:.0%}"
        yield f"by how well each told sizes from smaller ones, the simulation {weight}"


def _of_minibatches(rows: table.Table) -> Iterator[str]:
    several = rows.minibatches > 1
    if several.any():
        most = rows.minibatches.max()
        yield f"{several.sum()} of {rows.size} rows accumulate gradients of up to {most:.0f} minibatches: the last one alone hides messages"
        yield "simulate N of them with --set accumulate=N, and --batch of all their samples together"


def settings_of(protocol: str) -> list[str]:
    """The settings that a fitted protocol is simulated with."""
    return [] if protocol in SERVED else ["algorithm=ring"]


def _of_links(found: Scaling, rows: table.Table, link: Link | None) -> Iterator[str]:
    apart = set(rows.hosts[rows.hosts > 1].tolist())
    if not apart:
        yield f"the link was given, not measured: {told(link)}" if link else "links between hosts assumed: 10 Gbit/s"
    elif link:
        times, rate = found.between_s * link.bandwidth_bytes_per_s, told(link).partition(",")[0]
        yield f"a byte between hosts takes {times:.2g} times as long as {rate} says, by rows and by what others reached"
    if apart and not {2.0} < apart and "both_ways" in found.fitted:
        yield (
            f"a byte is taken to need {found.both_ways:.2g} times on two hosts what it needs on more, and the interval holds 1 to 2: "
            "rows of two hosts and of more would tell it"
        )
    longer = [
        f"{getattr(found, name):.1%} {when}"
        for name, when in AMONG_OTHERS.items()
        if getattr(found, name) >= LEAST_SHOWN
    ]
    if longer:
        yield f"computing takes longer: {', '.join(longer)}"
    if found.contention >= LEAST_SHOWN:
        yield f"a byte between hosts takes {found.contention:.1%} longer for each further GPU of a host"
    if found.uneven:
        yield f"links of hosts differ by {found.uneven:.0%} (standard deviation): more hosts wait for a slower one"


def _made(found: Scaling, rows: table.Table, model: Workload, name: str, link: Link | None) -> Cluster:
    apart, gpus = found.between_s > 0, int(rows.most.max())
    compute = Line(base_s=found.base_s, slope_s=found.sample_s)
    longer = {name: getattr(found, name) for name in AMONG_OTHERS}
    made = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    batch = int(rows.minibatch[rows.gpus == rows.gpus.max()].max())
    reading = {"reading": 1 / found.read_s} if found.read_s else {}
    trained = model.model_copy(update=reading)
    beside = rows.beside is not None and bool(rows.beside.all())
    servers = int(rows.servers.max()) if rows.servers is not None else 1
    served = isinstance(found, Simulated)
    known = Provenance(
        made=made,
        servers=servers if served else None,
        servers_on="workers" if beside else "own",
        models={model.name: Model.fitted(trained, batch)},
        batches={model.name: (int(rows.minibatch.min()), int(rows.minibatch.max()))},
        workers=int(rows.gpus.max()),
        hosts=int(rows.hosts.max()),
        links_measured=apart,
        local_measured=bool((rows.gpus[rows.hosts == 1] > 1).any()),
    )
    hosts: tuple[Host, ...] = (Host(count=int(rows.hosts.max()), cores=gpus, gpus=gpus),)
    if served and not beside:
        hosts = (Host(name=SERVER, count=servers), *hosts)
    return Cluster(
        name=name,
        hosts=hosts,
        network=_network(found, gpus) if apart else link or ASSUMED,
        local=_local(found, gpus),
        costs={model.name: Costs(compute=compute, alone=found.alone, error=found.residual, **longer)},
        provenance=known,
    )


def _network(found: Scaling, each: float) -> Link:
    names = "both_ways", "contention", "uneven"
    simulated = isinstance(found, Simulated)
    shape = {"gap_s": found.round_s} | {name: getattr(found, name) for name in names}
    shape |= {} if simulated else {"tree_s": TREE_S, "tree_inner_s": INNER_S}
    most = MOST_SIMULATED if simulated else MOST_RANKS
    sizes = [hosts for hosts in SIZES if hosts <= 4 or hosts * each <= most]
    spreads = tuple(zip(sizes, _spreads(found, sizes, each), strict=True))
    return link_of(found.between_s).model_copy(update=shape | {"spread_by_hosts": spreads})


def _local(found: Scaling, each: float) -> Link:
    (spread,) = _spreads(found, (1,), each)
    return link_of(found.within_s).model_copy(update={"spread_by_hosts": ((1, spread),)} if found.within_s else {})


def _spreads(found: Scaling, hosts: Sequence[int], each: float) -> list[float]:
    """Standard deviation of the logarithm of the messages of a step on so many hosts, each full."""
    number = np.array(hosts, float)
    jobs = table.Table(number, number * each, np.full(len(number), each), *np.ones((3, len(number))))
    unknown = found.unknown(jobs, type(found).messages_s)
    return np.minimum(unknown, MOST_SPREAD).round(DIGITS).tolist()
