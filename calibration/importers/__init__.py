"""Other people's logs as traces: each importer reads one run or several from a path.

Horovod's timeline is no trace: calibration.timelines makes a profile of it.
"""

from __future__ import annotations

IMPORTERS = {"amb-csv": "amb_csv", "amb-log": "amb_log", "steps": "steps"}  # the module of each, whose `read` reads
