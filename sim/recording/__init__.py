"""Traces: rows, files, and what is drawn or compared of them."""
