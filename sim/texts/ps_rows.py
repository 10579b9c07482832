"""Synchronous parameter servers with a barrier, of models with sparse layers."""

from dataclasses import dataclass

from sim.texts.hybrid import Hybrid


@dataclass(frozen=True)
class RowServers(Hybrid):
    """Parameter servers as the hybrid has them, for all layers: each travels, is added and updated by itself, of sparse ones rows.

    It is what Parallax is compared with (Kim et al., EuroSys 2019, section 2.2), by TensorFlow's replica_device_setter.
    """

    name, least, serves = "ps-rows", {"servers": 1}, "all"
