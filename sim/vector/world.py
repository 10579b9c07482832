"""The vector world: one generator stands for all workers and all replications; the event world's answers, much faster.

It runs protocols in which no rank looks at the order of arrival, on clusters in which no two ranks share a core. Anything
else it refuses, before the run or at the verb that it cannot do; it never approximates.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import cached_property

import numpy as np

from sim import verbs
from sim.answers.outcome import Outcome
from sim.base.errors import RunFailed, WrongSetting
from sim.base.ranges import SHORTEST_S
from sim.job.scenario import Scenario
from sim.protocols import name_of
from sim.protocols.base import Protocol
from sim.vector.group import Group
from sim.vector.shared import Neighbours
from sim.vector.together import Refused, Together
from sim.verbs.me import PRIMITIVES
from sim.worlds.texts import role_of, text_of
from sim.worlds.time_budget import Patience

DOES = frozenset(
    [
        "sleep",
        "compute",
        "compute_until",
        "send",
        "receive",
        "take_up",
        "update",
        "evaluate",
        "gather",
        "allreduce",
        "allgather",
        "beside",
        "compute_by_layer",
        "reduce_in_cycles",
        "fetch",
        "pull",
        "push",
        "training",
        "take_first",
        "hear",
        "let_go",
    ]
)  # primitives and verbs


def refusal(scenario: Scenario) -> str | None:
    """Why this world cannot run the scenario, as far as that is known before; None if nothing speaks against it."""
    network, missing = scenario.network, sorted(sorted(verbs_of(scenario.protocol) - DOES), key=PRIMITIVES.__contains__)
    reasons = {
        f"the text uses {missing[0] if missing else ''}, in which ranks differ or messages overtake one another": missing,
        "what a rank adds or updates at once, part by part, has not a core for each part": scenario.traffic.in_parts
        and not scenario.cores_suffice,
        "servers update with the first gradients, and which these are differs between them": scenario.served
        and scenario.protocol.has_servers
        and scenario.protocol.gradients_per_update(scenario.workers) < scenario.workers,
        "messages of servers pass the ports of hosts that ranks share": scenario.served
        and scenario.protocol.has_servers
        and not scenario.apart,
        "ranks on one host share its cores and its port, and so do a runtime's other threads": scenario.cores_shared
        and not _share_ports_alone(scenario),
        "a host's cores are too few for what its rank does at once, or slow one another down": scenario.protocol.overlaps
        and not scenario.cores_suffice,
        "ranks poll while they wait, and see what has come at their next poll": scenario.cluster.poll_s,
        "its ports pass one message after another, each as it comes, whatever a port has sent before": network.fair
        or network.sustained_bytes_per_s
        or network.tcp
        or network.store_and_forward,
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def _share_ports_alone(scenario: Scenario) -> bool:
    """Whether ranks of a host have a core each, copy from one another, and share its port."""
    local = scenario.local
    return scenario.cores_suffice and not (local.wakes and local.latency_s)


def verbs_of(protocol: Protocol) -> frozenset[str]:
    """The primitives and verbs that its texts use; a setting is none, whatever its name."""
    return protocol.names & frozenset((*PRIMITIVES, *verbs.__all__)) - {setting.name for setting in fields(protocol)}


class VectorWorld:
    """The master, if there is one, and the group of workers of one scenario.

    Args:
        scenario: the job.
        replications: their numbers.
        within_s: see `sim.vector.run`.
        rounds: that the texts go through; all if None.
        also: the same job on hosts of other speeds, of which the last replications are.
    """

    def __init__(
        self,
        scenario: Scenario,
        replications: Sequence[int],
        within_s: float = math.inf,
        rounds: range | None = None,
        also: Sequence[Scenario] = (),
    ):
        self.scenario, self.replications = scenario, replications
        self.rounds = range(scenario.rounds) if rounds is None else rounds
        self.patience = Patience(scenario, within_s)
        self.updates: list[tuple[np.ndarray, np.ndarray]] = []  # end and samples of each, shape (replications,)
        self.own_ends_s: list[np.ndarray] = []  # of each rank, shape (replications, ranks), where a step is that of all
        # When warm-up had ended, by its number of steps; of a shorter one too, as long as the run may end early.
        self.lows_s = {} if scenario.warmup else {0: np.zeros(len(replications))}
        jobs = [*[scenario] * (len(replications) - len(also)), *also]
        speeds = np.array([job.speeds for job in jobs])
        first = scenario.servers
        self.master = self._group(range(first), speeds[:, :first])
        self.workers = self._group(range(first, scenario.ranks), speeds[:, first:])
        self.refused: Refused | None = None

    def _group(self, ranks: range, speeds: np.ndarray) -> Group:
        return Group(self, ranks, speeds)

    @cached_property
    def neighbours(self) -> Neighbours | None:
        """How a master and workers send to one another where some share hosts; None where none do."""
        hosts = self.scenario.hosts
        shared = self.scenario.served and len(set(hosts)) < len(hosts)
        return Neighbours(self.scenario, self.refuse) if shared else None

    def run(self) -> Outcome:
        """Run all replications to their end, or until time is over; what they come to.

        Raises:
            Refused: the text does what this world cannot do exactly.
            RunFailed: the ranks wait for one another for ever.
        """
        self.play()
        if not self.patience.over:
            self.patience.check_complete()
        return self._outcome()

    def play(self) -> None:
        """Run the texts to their end, or until there is no time left."""
        texts, idle_turns = deque(self._texts()), 0
        while texts and (self.served_in_rounds or not self.patience.over):
            # A text yields only where its message is not there yet, or where time is over.
            text = texts.popleft()
            progress = self.progress()
            waits = next(text, "done") != "done"
            if self.refused:  # whatever the text has made of it
                raise self.refused
            if waits:
                texts.append(text)
                idle_turns = idle_turns + 1 if self.progress() == progress else 0
                if idle_turns > len(texts):
                    name = name_of(self.scenario.protocol)
                    raise RunFailed(f"deadlock in {name}: master and workers wait for one another for ever")

    @cached_property
    def served_in_rounds(self) -> bool:
        """Whether servers see that training is over, and end by themselves; they then know how long workers wait for them."""
        return bool(self.scenario.served and "training" in verbs_of(self.scenario.protocol))

    @property
    def training_is_over(self) -> bool:
        """Whether there is no further update."""
        return self.patience.over or len(self.updates) >= self.scenario.rounds

    def _texts(self) -> list:
        """Of each group that has ranks, one for all of them."""
        of = self.scenario
        return [text_of(of, role_of(of, group.ranks[0]), Together(group)) for group in self.groups]

    def refuse(self, reason: str) -> Refused:
        """The exception to raise where a text needs the event world; the run ends with it, even if the text catches it."""
        self.refused = self.refused or Refused(reason)
        return self.refused

    def progress(self) -> int:
        """A number that grows with every verb that did something."""
        return self.master.done + self.workers.done

    @property
    def clock_s(self) -> np.ndarray:
        """Where rank 0 is, shape (replications,)."""
        return (self.master if self.scenario.served else self.workers).now_s[:, 0]

    @property
    def first_s(self) -> np.ndarray:
        """Where the rank is that is least far, shape (replications, 1)."""
        return np.min([group.now_s.min(axis=1, keepdims=True) for group in self.groups], axis=0)

    def ended(self, end_s: np.ndarray, samples: np.ndarray) -> None:
        """Rank 0 has made an update."""
        self.updates.append((end_s, samples))
        steps, warmup = len(self.updates), self.scenario.warmup
        if steps in (self.patience.least_warmup, warmup):
            self.lows_s[steps] = end_s
        if steps == warmup + 1:  # from now on there is no shorter one
            self.lows_s = {warmup: self.lows_s[warmup]}

    def end_s(self, steps: int) -> np.ndarray:
        """When so many steps had ended, shape (replications,)."""
        return self.updates[steps - 1][0] if steps else np.zeros(len(self.replications))

    def evaluates(self, step: int) -> bool | np.ndarray:
        """Whether the master evaluates at the end of this step; a bool of all replications, or shape (replications, 1)."""
        return self.scenario.evaluates(step)

    @property
    def groups(self) -> list[Group]:
        """Those that have ranks."""
        return [group for group in (self.master, self.workers) if group.ranks]

    @property
    def ran_out(self) -> np.ndarray:
        """How often a rank had no more partitions to compute, and time left, shape (replications,)."""
        return np.sum([group.ran_out for group in self.groups], axis=0)

    def idle_s(self, warmup: int, low_s: np.ndarray, high_s: np.ndarray) -> np.ndarray:
        """Seconds that each rank waited after a warm-up of so many steps, shape (replications, ranks).

        Args:
            low_s, high_s: when the warm-up and the run end, shape (replications,).
        """
        return np.concatenate([group.idle_s(warmup, low_s, high_s) for group in self.groups], axis=1)

    def _outcome(self) -> Outcome:
        warmup, updates = self.patience.warmup, len(self.updates)
        end_s = np.stack([self.end_s(steps) for steps in range(updates + 1)], axis=1)
        samples = np.stack([samples for _, samples in self.updates], axis=1).astype(int)
        idle_s = self.idle_s(warmup, end_s[:, warmup], end_s[:, -1])
        found = outcome_of(end_s, samples, idle_s, self.ran_out.sum(), warmup)
        if not self.own_ends_s:
            return found
        own_s = np.diff(np.stack(self.own_ends_s, axis=1), axis=1, prepend=0.0)
        return replace(found, rank_step_s=own_s[:, warmup:])


def outcome_of(end_s: np.ndarray, samples: np.ndarray, idle_s: np.ndarray, ran_out: int, warmup: int) -> Outcome:
    """What a run comes to.

    Args:
        end_s: of each step, after a 0; shape (replications, steps + 1).
        samples: shape (replications, steps).
        idle_s: after the warm-up, shape (replications, ranks).
        ran_out, warmup: see Outcome.

    Raises:
        WrongSetting: no time goes by.
    """
    window_s = end_s[:, -1:] - end_s[:, warmup : warmup + 1]
    if not (window_s > SHORTEST_S * (end_s.shape[1] - 1 - warmup)).all():
        raise WrongSetting("costs", "steps that take no time", "costs above 0, or a network that is not free")
    return Outcome(np.diff(end_s, axis=1)[:, warmup:], samples[:, warmup:], idle_s / window_s, int(ran_out), warmup)
