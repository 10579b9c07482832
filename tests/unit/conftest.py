"""Fixtures of several files."""

from engines import as_python, by_numba, compiled

__all__ = ["as_python", "by_numba", "compiled"]
