"""Other people's logs as traces: each importer reads one run or several from a path."""

from __future__ import annotations

IMPORTERS = {"amb-csv": "amb_csv", "amb-log": "amb_log", "steps": "steps"}  # the module of each, whose `read` reads
