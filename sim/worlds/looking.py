"""What waiting takes: a rank that does not spin in MPI naps and looks, and its looks take the cores from whoever computes."""

from __future__ import annotations

import simpy

from sim.naps import STAGES, looks_per_s


class Looking:
    """Verbs of a rank that waits. The event world gives `world` and `machine`."""

    _watch, _taken = 0, 0.0

    def begin_to_look(self) -> None:
        """From now on, where it takes cores that others may want."""
        if self.world.scenario.cluster.look_s and not self.world.one_work_a_core:
            self._look(self._watch, 0)

    def end_looking(self) -> None:
        """What was waited for is here."""
        self._watch += 1
        if self._taken:
            self._take(0.0)

    def until(self, event: simpy.Event):
        """Wait for an event."""
        if not event.processed:
            self.begin_to_look()
            yield event
            self.end_looking()

    def _look(self, watch: int, stage: int) -> None:
        """Take what looks of one stage of a wait take, all the while: look by look there would be a hundred events for each message."""
        if watch != self._watch:
            return
        cluster, (_, lasts_s) = self.world.scenario.cluster, STAGES[stage]
        self._take(cluster.look_s * looks_per_s(stage, cluster.oversleep_s))
        if stage + 1 < len(STAGES):
            self.world.env.timeout(lasts_s).callbacks.append(lambda _: self._look(watch, stage + 1))

    def _take(self, cores: float) -> None:
        self.machine.cores.take(cores - self._taken)
        self._taken = cores
