"""Simulate distributed training: ranks on the hosts of a cluster run a protocol; a trace records what they did."""

__version__ = "0.1.0"
