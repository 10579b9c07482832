"""Protocols in the language, a file each. TEXTS has them by name."""

from __future__ import annotations

from sim.texts.ddp import Ddp
from sim.texts.fmb import FixedMinibatch
from sim.texts.ps_async import AsynchronousServers

TEXTS = {one.name: one for one in (Ddp, FixedMinibatch, AsynchronousServers)}
