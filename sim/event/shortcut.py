"""Short cuts that are taken while nothing speaks against them."""

from __future__ import annotations


class ShortCutFailed(Exception):
    """Something came in another order than a short cut supposed: the run is made again, without short cuts."""
