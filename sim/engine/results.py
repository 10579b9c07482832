"""What a run has come to: ends of steps, waits and idle shares."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sim.answers.bottleneck import Arrivals
from sim.answers.outcome import Outcome

if TYPE_CHECKING:
    from sim.engine.arrays.shape import Shape
    from sim.engine.kernel.state import State


class Results:
    """What the arrays of a run say.

    Args:
        shape: of the run.
        state: after it, or after as much of it as there was time for.
    """

    def __init__(self, shape: Shape, state: State):
        self.scenario, self.state, self.meters = shape.scenario, state, shape.meters

    def outcome(self, warmup: int) -> Outcome:
        """Steps after so many, samples, idle shares, and what is noted besides."""
        of, ends_s = self.scenario, self.ends_s
        step_s, samples = np.diff(ends_s, prepend=0.0)[warmup:], self.samples[warmup:].astype(int)
        found = Outcome(step_s[None], samples[None], self.idle_fraction(warmup)[None], self.ran_out, warmup)
        if self.meters and warmup == of.warmup:
            found = replace(found, arrivals=self.arrivals)
        return replace(found, rank_step_s=self.rank_step_s(warmup, len(ends_s))[None]) if of.by_all_ranks else found

    @property
    def arrivals(self) -> Arrivals:
        """How stale gradients are, and how busy the parts of the job, after the warm-up."""
        of, arrays, ends_s = self.scenario, self.state.arrays, self.state.arrays["step_end"]["at_s"]
        warm, rank, port = of.warmup * of.updates_per_step, arrays["rank"], arrays["port"]
        each_s = ends_s[self.updates - 1] - (ends_s[warm - 1] if warm else 0.0)
        taken_s = np.max([port[name] for name in ("out_busy_s", "in_busy_s", "out_credit_s", "in_credit_s")], axis=0)
        serving = np.isin(np.arange(len(port)), of.hosts[: of.servers])
        moved_s, worker = taken_s - port["busy_before_s"], np.arange(of.ranks) >= of.servers
        busy_s = {
            "compute": (rank["computed_s"] - rank["computed_before_s"])[worker],
            "worker port": moved_s[~serving],
            "server port": moved_s[serving],
            "server apply": (rank["applied_s"] - rank["applied_before_s"])[~worker],
        }
        busy = {name: min(1.0, float(seconds.max(initial=0.0) / each_s)) for name, seconds in busy_s.items()}
        (missed,) = arrays["missed"]["value"].nonzero()
        return Arrivals({int(one): int(arrays["missed"]["value"][one]) for one in missed}, busy)

    @property
    def updates(self) -> int:
        """How many rank 0, or all, have made."""
        return int(self.state.record["ends"][0])

    @property
    def ran_out(self) -> int:
        """How often a rank had no more partitions to compute, and time left."""
        return int(self.state.arrays["rank"]["ran_out"].sum())

    @property
    def samples(self) -> np.ndarray:
        """Of each step's updates."""
        each = self.scenario.updates_per_step
        steps = self.state.record["ends"][0] // each
        return self.state.arrays["step_end"]["samples"][: steps * each].reshape(steps, each).sum(axis=1)

    def rank_step_s(self, warmup: int, steps: int) -> np.ndarray:
        """Seconds of each rank's own steps after the warm-up, shape (steps, ranks)."""
        return np.diff(self.state.arrays["own_end"]["value"][:, :steps], axis=1, prepend=0.0)[:, warmup:].T

    @property
    def ends_s(self) -> np.ndarray:
        """When each step ended."""
        each = self.scenario.updates_per_step
        count = self.state.record["ends"][0] // each
        return self.state.arrays["step_end"]["at_s"][each - 1 : count * each : each]

    def idle_fraction(self, warmup: int) -> np.ndarray:
        """Each rank's waits between the end of the warm-up and the last update, as a share of that time.

        Args:
            warmup: steps; the scenario's, or the least where a run ended among them.
        """
        ends_s, arrays = self.ends_s, self.state.arrays
        start_s, end_s = (ends_s[warmup - 1] if warmup else 0.0), ends_s[-1]
        if len(ends_s) < self.scenario.rounds:  # cut: what was added up goes as far as the run
            end_s = max(end_s, self.state.record["now_s"][0], arrays["strand"]["clock_s"].max())
        waits = arrays["wait"][: int(self.state.record["waits"][0])]
        inside_s = np.clip(np.minimum(waits["to_s"], end_s) - np.maximum(waits["from_s"], start_s), 0, None)
        inside_s = np.bincount(waits["rank"], inside_s, self.scenario.ranks).astype(float)
        inside_s += arrays["rank"]["waited_s" if warmup == self.scenario.warmup else "early_s"]
        return inside_s / (end_s - start_s)
