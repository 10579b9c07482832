"""Measurements without training: links, ports."""
