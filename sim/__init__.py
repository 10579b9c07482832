"""Simulate distributed training: ranks on the hosts of a cluster run a protocol; a trace records their activities.

Programs import what they use from `trainsim`.
"""
