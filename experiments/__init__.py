"""Experiments, each named by the question it answers."""
