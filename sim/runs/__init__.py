"""Runs of a scenario: its job of the language, replications by the engine or the event world, and what they come to."""
