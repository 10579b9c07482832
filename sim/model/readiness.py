"""When gradients are ready that are summed while others are computed."""

from __future__ import annotations

from sim.model.nominal import FORWARD_SHARE


def layer_shares(sizes: list[int], order: str) -> list[float]:
    """Each variable's share of a gradient's time, shape (variables,); the forward pass before all of them has the rest.

    Args:
        order: after the forward pass each takes time in proportion to its number of `parameters`, or `uniform`; or all are ready
            at the `end`.
    """
    if order == "end":
        return [0.0] * len(sizes)
    weights = sizes if order == "parameters" else [1] * len(sizes)
    whole = sum(weights)  # once: a model may have 10^5 variables
    return [(1 - FORWARD_SHARE) * weight / whole for weight in weights]
