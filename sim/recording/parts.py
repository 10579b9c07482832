"""The names of files in the folder of a run that is recorded rank by rank."""

from __future__ import annotations

from pathlib import Path

HEADER_FILE = "header.json"  # of the ranks of a real run of ours
MODEL_FILE = "workload.toml"  # of somebody else's training, which trainsim.Recorder has recorded


def part_file(folder: Path, rank: int) -> Path:
    """The file for a rank's part of a growing trace."""
    return folder / f"rank-{rank:05d}.jsonl"


def facts_file(folder: Path, rank: int) -> Path:
    """The file for what trainsim.Recorder knows of a rank."""
    return folder / f"rank-{rank:05d}.json"
