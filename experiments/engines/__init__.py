"""The job of `experiments.speed` (`job.py`) in several engines, a file each, and processes that measure it (`process.py`)."""
