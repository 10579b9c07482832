"""Other people's logs as traces: each importer reads one run or several from a path.

Horovod's timeline is no trace: calibration.timelines makes a profile of it.
"""

from __future__ import annotations

from calibration.importers import amb_csv, amb_log, steps

IMPORTERS = {"amb-csv": amb_csv.read, "amb-log": amb_log.read, "steps": steps.read}
