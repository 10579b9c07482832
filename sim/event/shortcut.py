"""Short cuts that are taken while nothing contradicts them."""

from __future__ import annotations


class ShortCutFailed(Exception):
    """A message came in another order than a short cut assumed: the run is repeated without short cuts."""
