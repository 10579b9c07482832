"""Step times that anybody can log: a table (CSV or parquet) with the columns step, rank and seconds, or the log of a framework.

Optional columns: compute_s (seconds of the step in which the rank computed), samples (of the rank). `logged_steps` reads them. A row is the
duration of one step at one rank, from the end of its last step. Steps are synchronous: a step lasts as long as at the median rank, and at
least as long as the slowest rank computes. Without compute_s nothing shows that ranks differ, and a long step is taken to be long at all of
them. Where some ranks logged, or rank 0 alone, and the user says how many there were, the others are taken to be like these.

Messages are part of a step's seconds. If the link between the hosts is known, the simulator gives their time on it. The rest of the
step is computing (without compute_s) or updating (with it). Where it is not known, links are free in the profile, and
it predicts no other number of workers.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from calibration.importers import rounds
from calibration.importers.about import DEFAULT_PROTOCOL, LINK, About
from calibration.importers.logged_steps import Steps, logged
from sim import protocols, stragglers
from sim.base.errors import WrongSetting
from sim.job.header import IMPORTED
from sim.job.scenario import Scenario
from sim.model import workload as workloads
from sim.model.costs import Costs, Line
from sim.platform.cluster import one_rank_a_host
from sim.platform.other_sizes import told
from sim.recording.traces import Trace
from sim.simulation import simulate

LEAST = 0.01  # of a step that is computing, in steps that were shorter than messages usually take
PLAYED_STEPS, CLOSE = 3, 1e-4  # steps that are simulated, and how close to the measured mean they must come


def read(path: str | Path, about: About) -> tuple[list[Trace], list[str]]:
    """The one run in a table of steps, and how it was read, in lines.

    Raises:
        WrongSetting: no such table, a step or a rank that is missing, numbers that cannot be, or a link that is too slow.
    """
    found = logged(path, about)
    said = [] if found.samples else about.batch_note(workloads.read(about.workload))
    rest = "computing" if found.compute_s is None else "update"
    said.append(
        f"all of a step that messages do not explain is {rest}: simulated, steps are as long as those logged by construction"
    )
    return [trace_of(found, about, Path(path).name)], [*found.notes, *said]


def trace_of(logged: Steps, about: About, source: str, measured: bool = False) -> Trace:
    """The run that steps were logged of.

    Args:
        source: what it is called.
        measured: the link was fitted on the same run, and may be off by what measurements are.

    Raises:
        WrongSetting: see `read`.
    """
    scenario = _scenario(logged, about)
    computed_s, messages_s = _apart(logged, scenario, about, measured)
    head = replace(scenario.header(IMPORTED, communication_in_update=about.link is None), cluster=source)
    ends_s, samples = np.cumsum(logged.length_s).tolist(), np.full(computed_s.shape, scenario.batch)
    return rounds.laid_out(head, ends_s, computed_s, samples, messages_s=messages_s, source=source)


def _scenario(logged: Steps, about: About) -> Scenario:
    """The job that was logged: one rank a host, on the link if it is known.

    Raises:
        WrongSetting: no such protocol, workload or law, or a job that cannot be.
    """
    protocol = protocols.make(about.protocol or DEFAULT_PROTOCOL, list(about.settings))
    if not protocols.is_ours(protocol) or protocol.by_arrival or protocol.delay_std_s or "partitions" in vars(protocol):
        raise WrongSetting(
            "--protocol", about.protocol, "a synchronous one with fixed minibatches, as allreduce or fmb"
        )
    law = stragglers.read(about.stragglers)
    if law.mean > 0:
        raise WrongSetting(
            "--stragglers", about.stragglers, "none: tables of steps do not separate sleeps from computing"
        )
    workload = workloads.read(about.workload)
    cluster = one_rank_a_host(logged.ranks + 1, cores=2)
    steps = len(logged.length_s) - 1
    batch = about.batch_of(workload) if about.batch is not None or not logged.samples else logged.samples
    return Scenario(protocol, workload, logged.ranks, steps, 1, batch, cluster, law)


def _apart(logged: Steps, scenario: Scenario, about: About, measured: bool = False) -> tuple[np.ndarray, float]:
    """Seconds that each rank computed, shape (steps, ranks), and seconds of messages in a step that computing does not hide.

    Raises:
        WrongSetting: messages alone take longer on the link than the steps that were logged.
    """
    if about.link is None:
        return (_alike(logged.length_s, logged.ranks) if logged.compute_s is None else logged.compute_s), 0.0
    mean_s = float(logged.length_s.mean())
    if logged.ranks == 1:  # there are no messages
        return logged.length_s[:, None] if logged.compute_s is None else logged.compute_s, 0.0
    alone_s = _played_s(scenario, 0.0, about)
    computed_s = float(logged.compute_s.max(axis=1).mean()) if logged.compute_s is not None else 0.0
    if not measured and _played_s(scenario, computed_s, about) > mean_s:
        beside = f", and computing {computed_s:.4g} s" if computed_s else ""
        allowed = (
            f"a faster one: a step's messages take {alone_s:.4g} s on it{beside}; the steps logged take {mean_s:.4g} s"
        )
        raise WrongSetting(about.tested or LINK, told(about.link), allowed)
    if logged.compute_s is not None:
        return logged.compute_s, _played_s(scenario, computed_s, about) - computed_s
    messages_s = mean_s - _computed_s(scenario, mean_s, about)
    return _alike(np.maximum(logged.length_s - messages_s, LEAST * logged.length_s), logged.ranks), messages_s


def _alike(seconds: np.ndarray, ranks: int) -> np.ndarray:
    """The same seconds of each rank, shape (steps, ranks)."""
    return np.repeat(seconds[:, None], ranks, axis=1)


def _computed_s(scenario: Scenario, step_s: float, about: About) -> float:
    """Seconds that ranks compute in steps that take so long, messages included."""
    from scipy.optimize import brentq

    def beyond_s(computed_s: float) -> float:
        return _played_s(scenario, computed_s, about) - step_s

    return float(brentq(beyond_s, 0.0, step_s, xtol=CLOSE * step_s)) if beyond_s(step_s) > 0 else step_s


def _played_s(scenario: Scenario, computed_s: float, about: About) -> float:
    """Seconds of a step in which all ranks compute for these seconds and only messages take further time."""
    costs = Costs(compute=Line(base_s=computed_s), item_bytes=about.item_bytes)
    job = replace(
        scenario,
        workload=scenario.workload.model_copy(update={"costs": costs}),
        cluster=scenario.cluster.model_copy(update={"network": about.link}),
        steps=PLAYED_STEPS,
    )
    return float(simulate(job, replications=1).step_s.mean())
