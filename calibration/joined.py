"""A profile from sources of one kind or of several, each of which tells what it measured best.

Links are those of nccl-tests, or else of a scaling table, or else those that torch.profiler's traces had. Computing is that of recorded
runs, traces and tables of steps, or else of a scaling table.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from calibration import fit, log_options, nccl_links, probes, profiles, recorded, sources_checked, torch_traces
from calibration.importers import IMPORTERS
from calibration.importers.about import About
from calibration.probes import Probe
from calibration.scaling import profiled
from calibration.seating import seated
from calibration.sources import NCCL, PROFILES, SCALING, STEPS, TIMELINE, TORCH, TRACE, Named, groups
from calibration.torch_messages import link_of
from sim.base.errors import RunFailed, WrongSetting
from sim.model.sizes import ITEM_BYTES
from sim.platform.cluster import Cluster, Link
from sim.platform.other_sizes import told

FAR = 0.1  # of a step, from which a source contradicts the profile
SUMMED_BY = ("allreduce", "ddp", "horovod")  # protocols that have an algorithm


class Linked(NamedTuple):
    """The links that a source tells."""

    of: Named
    made: Cluster

    @property
    def link(self) -> Link:
        """That between hosts, or within the one host that was measured."""
        known = self.made.provenance
        return self.made.local if known and known.local_measured and not known.links_measured else self.made.network


def profile(given: Namespace, named: Sequence[Named]) -> Cluster:
    """The profile of the one cluster that all sources are of.

    Args:
        given: options, as calibration.fit has them.

    Raises:
        WrongSetting: see each source's reader; or sources that do not go together, or with an option.
    """
    name, each = given.name or Path(given.output).stem, given.gpus_per_host
    probe = probes.read(given.probe) if given.probe else None
    _check(given, named, probe)

    def of(one: Named) -> About:
        return log_options.about(given, one)

    linked = _linked(named, name, of, each)
    best = linked[0] if linked else None
    if each is None and best:
        each = best.made.hosts[0].gpus or None
    made = _computing(given, named, name, lambda one: _on(of(one), best), each, probe)
    if made is None:
        assert best is not None  # or else there would be no source
        made = linked[-1].made
    if best and best.made is not made:
        made = _with_links(made, best, each)
    if {one.kind for one in named} <= {TRACE, *IMPORTERS} or len({one._replace(path="") for one in named}) == 1:
        return made
    assert made.provenance is not None  # every source has made one
    notes = (*_of_sources(named, linked), *_off(made, named, of, each), *made.provenance.notes)
    return made.known(notes=notes)


def _off(made: Cluster, named: Sequence[Named], of: Callable[[Named], About], each: int | None) -> list[str]:
    """How far each source is from the profile, simulated, in lines: where one is far, sources contradict one another."""
    worst: dict[str, float] = {}
    try:
        for one in (*groups(named, TORCH), *([one] for one in named if one.kind != TORCH)):
            found, _ = sources_checked.found(made, one, of, each)
            worst[str(one[0])] = max((job.error for job in found), key=abs)
    except (WrongSetting, RunFailed) as refused:
        return [f"how far sources are from the profile is not known: it cannot simulate them ({refused})"]
    said = ", ".join(f"{name} {error:+.1%}" for name, error in worst.items())
    far = ", ".join(name for name, error in worst.items() if abs(error) > FAR)
    contradict = [f"sources contradict one another: {far} by more than {FAR:.0%}"] * bool(far)
    return [f"simulated with the profile, at most: {said}", *contradict]


def _check(given: Namespace, named: Sequence[Named], probe: Probe | None) -> None:
    """Refuse what cannot be joined.

    Raises:
        WrongSetting: a timeline, several tables of scaling, a link besides a measured one, or shared cores with other sources.
    """
    kinds = {one.kind for one in named}
    if len(named) > 1 and TIMELINE in kinds:
        several = f"{len(named)} sources, {TIMELINE} among them"
        raise WrongSetting("TRACE", several, "a timeline alone: it has links and computing")
    if len(tables := [one.path for one in named if one.kind == SCALING]) > 1:
        raise WrongSetting("TRACE", " and ".join(tables), "one table of scaling, with the rows of all")
    for measured, by in ((NCCL in kinds, NCCL), (bool(probe and probe.network), "--probe")):
        if given.link and measured:
            raise WrongSetting("--link", given.link, f"no link beside that which {by} measured")
    if given.shared_cores and not kinds <= {TRACE, *IMPORTERS}:
        raise WrongSetting("--shared-cores", given.shared_cores, "nothing with sources of several kinds")


def _linked(named: Sequence[Named], name: str, of: Callable[[Named], About], each: int | None) -> list[Linked]:
    """What nccl-tests and a table of scaling tell of links, the better source first."""
    found, tests = [], [one for one in named if one.kind == NCCL]
    if tests:
        found.append(Linked(tests[0], nccl_links.profile([one.path for one in tests], name, of(tests[0]).ranks, each)))
    for one in named:
        if one.kind == SCALING:
            about = of(one)
            link = about.link if not tests else None
            made = profiled.profile(one.path, name, about.workload, about.protocol, link)
            found.append(Linked(one, made))
    return found


def _on(about: About, linked: Linked | None) -> About:
    """What is known of a run, with the link that was measured, and the ring of its test where the protocol has an algorithm."""
    if linked is None or about.link is not None:
        return about
    said = any(one.startswith("algorithm=") for one in about.settings)
    sums = about.protocol in (None, *SUMMED_BY) and not said
    settings = (*about.settings, "algorithm=ring") if sums else about.settings
    return replace(about, link=linked.link, tested=f"{linked.of}: link", settings=settings)


def _computing(
    given: Namespace,
    named: Sequence[Named],
    name: str,
    of: Callable[[Named], About],
    each: int | None,
    probe: Probe | None,
) -> Cluster | None:
    """The profile of the sources that tell computing; None if there is none but nccl-tests and a table of scaling."""
    runs = [run for _, run in sources_checked.recorded(named, of)]
    others = [one for one in named if one.kind not in PROFILES]
    if runs and not others:
        return torch_traces.of_runs(runs, name, each)
    if not others:
        return None
    about, protocol = of(others[0]), torch_traces.protocol_of(runs) if runs else None
    link = about.link or (link_of(runs) if runs else None)

    def of_log(one: Named) -> About:
        known = of(one)
        return replace(known, link=link, protocol=known.protocol or protocol)

    sources = list(chain.from_iterable(fit.read(one.path, one.kind, of_log(one)) for one in others))
    if recorded.are_recorded(sources):
        for option in ("probe", "shared_cores"):
            if value := getattr(given, option):
                raise WrongSetting(f"--{option.replace('_', '-')}", value, "nothing with runs of trainsim.Recorder")
        return recorded.profile(sources, name, None if about.tested else about.link)
    sources += [profiles.Source(one.called, one.trace(protocol or "", link)) for one in runs]
    item_bytes = runs[0].gradients.item_bytes if runs else ITEM_BYTES
    made = profiles.make(sources, name, probe, given.shared_cores, link, item_bytes)
    if {one.kind for one in others} != {STEPS}:
        return made
    return seated(made, each, runs[0].run.ranks[0].device if runs else "")


def _with_links(made: Cluster, linked: Linked, each: int | None) -> Cluster:
    """The profile on measured links. Hosts are those of the test where the profile's are of a log that names none."""
    names = "links_measured", "local_measured", "sums_in_links"
    known = {one: getattr(linked.made.provenance, one) for one in names}  # every source has made one
    hosts = made.hosts
    if hosts[0].gpu is None and linked.made.hosts[0].gpu and len(hosts) == 1:
        like = linked.made.hosts[0]
        hosts = (hosts[0].model_copy(update={"gpu": like.gpu, "gpus": hosts[0].slots or each or 1}),)
    links = {"network": linked.made.network, "local": linked.made.local, "hosts": hosts}
    return made.model_copy(update=links).known(**known)


def _of_sources(named: Sequence[Named], linked: Sequence[Linked]) -> list[str]:
    """What each source determined, in lines."""
    computing = [one for one in named if one.kind not in (NCCL, SCALING)]
    notes = []
    for at, one in enumerate(linked):
        what = ["links"] * (at == 0) + ["computing"] * (one.of.kind == SCALING and not computing)
        notes.append(f"{one.of}: {' and '.join(what) or 'neither links nor computing'}, {told(one.link)}")
    return notes + [f"{one}: computing{'' if linked or one.kind != TORCH else ' and links'}" for one in computing]
