"""`python -m trainsim`: the same as the console script."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    here = Path.cwd()
    if Path(__file__).resolve().parents[1] != here and not sys.flags.safe_path:
        sys.path.append(sys.path.pop(0))  # the current folder, whose packages may have the names of ours
    from trainsim.main import entry

    entry()
