"""The result of a search for a number of variable partitions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Search:
    """The result of a search.

    Args:
        best: number of parts.
        tried: seconds of a step by number of parts, in the order in which they were tried.
        fitted: a, b, c of t(P) = b / P + a (P - 1) + c, seconds; None of fewer than 3 points.
    """

    best: int
    tried: dict[int, float]
    fitted: tuple[float, float, float] | None

    def __str__(self):
        tried = ", ".join(f"{parts}: {seconds * 1e3:.4g} ms" for parts, seconds in sorted(self.tried.items()))
        a, b, c = (f"{1e3 * x:.3g}" for x in self.fitted or (0, 0, 0))
        law = f"; t(P) = {b}/P + {a}(P - 1) + {c} ms" if self.fitted else ""
        return f"{self.best} variable partitions, searched for: {tried}{law}"
