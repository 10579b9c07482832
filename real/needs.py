"""Memory that the ranks of a real run take at least, before any is started; what is too much is refused in a line."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sim.base.errors import WrongSetting
from sim.model.sizes import ITEM_BYTES

if TYPE_CHECKING:
    from sim.job.scenario import Scenario

COPIES = 3  # of the parameters: those, their gradient, and the message that carries one of them
INDEX_BYTES = 8  # of a sample that is drawn


def of_a_rank(scenario: Scenario) -> dict[str, float]:
    """Bytes by the option that they are due to: all but what a model keeps between its layers, which only its operations tell."""
    from real.data.digits import TRAIN

    workload = scenario.workload
    sample_bytes = ITEM_BYTES * math.prod(workload.sample_shape)
    return {
        "--workload": COPIES * ITEM_BYTES * workload.parameters + sample_bytes * TRAIN + ITEM_BYTES * workload.classes,
        "--batch": scenario.batch * (sample_bytes + ITEM_BYTES * workload.classes + INDEX_BYTES),
    }


def check(ranks: int, engine_bytes: float, scenario: Scenario | None = None) -> None:
    """Refuse ranks that do not fit in this machine's memory.

    Args:
        ranks: so many on this machine.
        engine_bytes: of a rank that has loaded its engine.
        scenario: of their run, if it is known.

    Raises:
        WrongSetting: naming the option to which most of it is due.
    """
    import psutil

    needed = {"--workers": engine_bytes if ranks > 1 else 0.0} | (of_a_rank(scenario) if scenario else {})
    free_bytes, rank_bytes = psutil.virtual_memory().available, sum(needed.values())
    if ranks * rank_bytes <= free_bytes:
        return
    do_not_fit = f"{ranks} x {rank_bytes / 1e9:,.3g} GB do not fit in this machine's free memory"
    option = max(needed, key=needed.__getitem__)
    if scenario is None or option == "--workers":
        most = max(0, int(free_bytes // rank_bytes) - 1)
        raise WrongSetting("--workers", ranks - 1, f"at most {most}: {do_not_fit}")
    given = scenario.batch if option == "--batch" else scenario.workload.name
    raise WrongSetting(option, given, f"a smaller one: {do_not_fit}, {free_bytes / 1e9:,.3g} GB")
