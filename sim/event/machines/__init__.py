"""Hosts of the event world: how their cores and ports are shared, and how long messages take."""
