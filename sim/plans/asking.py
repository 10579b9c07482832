"""A plan, for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim.base.errors import WrongSetting
from sim.base.ranges import LONGEST_S

if TYPE_CHECKING:
    from sim.plans.plan import Plan

WITHIN_S = 60.0


def plan(job: str | None = None, *, within_s: float = WITHIN_S, processes: int | None = None, **asked: Any) -> Plan:
    """The cheapest configurations that meet a target, as sim.plan prints them.

    A script calls it below `if __name__ == "__main__":`, because the processes that it starts import the script.

    Args:
        job: a TOML file with the names below.
        within_s: seconds after which the plan is made of what is known then.
        processes: their number; one a core if None; 1 is this process alone.
        asked: the names of sim.plan's options with underscores, such as workload="resnet50", samples_per_s=3000, hosts=["p3.2xlarge"],
            counts=[1, 2].

    Raises:
        WrongSetting: an unknown name, a value that it cannot have, no target, or no configuration that can be.
        RunFailed: no configuration could be simulated.
    """
    from sim.plans import plan as plans
    from sim.plans import question
    from sim.sweeps import pools

    if isinstance(within_s, bool) or not isinstance(within_s, (int, float)) or not 0 < within_s <= LONGEST_S:
        raise WrongSetting("within_s", within_s, f"seconds above 0, up to {LONGEST_S:,}")
    return plans.answer(question.read(job, asked), pools.of_size(processes), within_s)
