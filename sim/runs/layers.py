"""The layers of a scenario's job in the language: its variables, or parts of those of which rows travel."""

from __future__ import annotations

from functools import cache
from itertools import repeat
from operator import itemgetter

from sim.job.scenario import Scenario
from sim.language.layers import Layer, Rows
from sim.language.text import Text
from sim.model.nominal import layer_shares
from sim.model.workload import Variable


def layers_of(scenario: Scenario, text: Text, compute_s: float) -> tuple[Layer, ...]:
    """A layer for each variable; where rows travel, those that are summed come first, and then each part that a server holds.

    Args:
        compute_s: seconds of a minibatch's gradient, of which each layer takes as much as it has of all items; or all alike where they
            travel one by one.
    """
    held: list[tuple[Variable, int | None]]
    if text.layerwise:
        rows = scenario.traffic.sends_rows
        held = [(one if rows else without_rows(one), server) for one, server in scenario.traffic.placed]
    elif scenario.traffic.sends_rows:
        held = [*zip(scenario.summed, repeat(None)), *sorted(scenario.traffic.placed, key=itemgetter(1))]
    elif scenario.gathered_variables:
        held = [*zip([*scenario.summed, *scenario.gathered_variables], repeat(None))]
    else:
        held = [*zip(map(without_rows, scenario.workload.variables), repeat(None))]
    weights = [1 if text.layerwise else one.size for one, _ in held]
    backward = layer_shares(weights, getattr(text, "order", "parameters"))
    of_forward = compute_s * (1 - sum(backward)) / sum(weights)
    return tuple(
        Layer(
            one.size,
            of_forward * weight,
            compute_s * last,
            one.activation_items,
            rows=Rows(one.shape[0], touched(one, scenario.batch)) if one.rows else None,
            server=server,
        )
        for (one, server), weight, last in zip(held, weights, backward, strict=True)
    )


def without_rows(variable: Variable) -> Variable:
    """A variable whose gradient is dense."""
    return variable.model_copy(update={"rows": None})


def touched(variable: Variable, batch: int):
    """How many rows so many minibatches touch together, as a function."""
    return cache(lambda minibatches: variable.load(batch, minibatches).rows)
